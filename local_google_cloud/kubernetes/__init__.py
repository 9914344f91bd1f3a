"""The sandbox's Kubernetes: a plugin in place of Pulumi's kubernetes provider, and a light store.

``plugin`` behaves like the provider in everything that a program can see: names, ids, diffs, replacements. It keeps
objects in a light store (``stored_objects``, ``object_store``), which refuses what can be refused without an API
server: unknown fields by the given CRDs (``definitions``), taken names, missing namespaces.
"""
