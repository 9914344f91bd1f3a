"""A stand-in for Pulumi's kubernetes provider: a gRPC plugin over objects kept in memory.

The engine attaches to it with ``PULUMI_DEBUG_PROVIDERS=kubernetes:PORT``. ``server.serve`` starts it in process,
running this package with ``python -m`` beside one. It answers as pulumi-kubernetes does in what a program can see
(names, ids, diffs, replacements) and refuses what an API server refuses and can be known here: unknown fields and CEL
rules of the CRDs it was given, names already taken, namespaces that do not exist. It runs no controllers, so
status fields stay empty.
"""
