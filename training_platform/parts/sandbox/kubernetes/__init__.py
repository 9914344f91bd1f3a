"""The sandbox's Kubernetes: a light store, real API servers with controllers, and simulated nodes.

``plugin`` replaces Pulumi's kubernetes provider, and behaves like it in everything that a program can see: names, ids,
diffs, replacements. It keeps objects in a light store (``stored_objects``, ``object_store``), which refuses what can be
refused without an API server: unknown fields by the given CRDs (``definitions``), taken names, missing namespaces. Or
it applies them to real API servers (``api_store``, ``api_servers``) with controllers (``controller_programs``) and
nodes that are only objects (``nodes``).
"""
