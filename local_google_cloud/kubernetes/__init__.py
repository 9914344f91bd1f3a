"""A substitute for Pulumi's Kubernetes provider: a plugin, and a light store of objects.

``plugin`` behaves like the provider in everything that a program can see: names, ids, diffs, replacements. It keeps
objects in a light store (``stored_objects``, ``object_store``), which refuses what can be refused without an API
server: unknown fields by the given CRDs, taken names, missing namespaces.

    with serve(store=ObjectStore(Path("objects.json"))) as port:
        ...  # run the engine with PULUMI_DEBUG_PROVIDERS=kubernetes:<port>
"""

from local_google_cloud.kubernetes.object_store import HELM, Key, ObjectRefused, ObjectStore, pruned
from local_google_cloud.kubernetes.plugin import serve
from local_google_cloud.kubernetes.wire import as_sent, plain_struct, wire_struct

__all__ = [
    "HELM",
    "Key",
    "ObjectRefused",
    "ObjectStore",
    "as_sent",
    "plain_struct",
    "pruned",
    "serve",
    "wire_struct",
]
