"""The sandbox's Kubernetes: a light store, real API servers with controllers, and simulated nodes.

``plugin`` stands in for Pulumi's kubernetes provider, and answers as it does in everything that a program can see
(names, ids, diffs, replacements). It keeps objects in a light store (``objects``, ``store``), and refuses what an API
server refuses and can be known without one: unknown fields by the CRDs that it was given (``definitions``), taken
names, missing namespaces. Or it applies them to real API servers
(``api_servers``), beside which controllers may run (``controllers``), on nodes that are objects only (``nodes``).
"""
