"""A substitute for Pulumi's Kubernetes provider: a plugin, and a simple store of objects.

``plugin`` behaves like the provider in everything that a program can observe: names, ids, diffs, replacements. It keeps
objects in a simple store (``stored_objects``, ``object_store``). The store does those checks of an API server that it
can do alone: it refuses fields that the given CRDs do not define, names that already exist, and missing namespaces.

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
