"""Views from planned resources, as pulumi-gcp and pulumi-kubernetes name their inputs.

Every spelling is known to the makers of views and nowhere else. What the program leaves out is None, or the provider's
own default where leaving it out decides something (``auto_repair``). A type that no rule reads has no view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from training_platform.config.names import Locator
from training_platform.resources.planned import Planned
from training_platform.rules.adapters import compute_class as class_inputs
from training_platform.rules.adapters import gke as gke_inputs
from training_platform.rules.adapters import gke_settings as settings_inputs
from training_platform.rules.adapters import kueue as kueue_inputs
from training_platform.rules.adapters import network as network_inputs
from training_platform.rules.adapters import services as cloud_inputs
from training_platform.rules.adapters.inputs import Resource
from training_platform.rules.views.gke import Labelled
from training_platform.rules.views.view import View

CLUSTER = gke_inputs.CLUSTER
SUBNETWORK = settings_inputs.SUBNETWORK
NODE_POOL = "gcp:container/nodePool:NodePool"
FILESTORE = "gcp:filestore/instance:Instance"
PERSISTENT_RESOURCE = "gcp:vertex/aiPersistentResource:AiPersistentResource"
BUCKET = "gcp:storage/bucket:Bucket"
ROUTER_NAT = "gcp:compute/routerNat:RouterNat"
CLUSTER_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
RESOURCE_FLAVOR = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
COMPUTE_CLASS = "kubernetes:cloud.google.com/v1:ComputeClass"

MAKERS: Mapping[str, Callable[[Resource], Iterator[View]]] = {
    CLUSTER: gke_inputs.cluster,
    NODE_POOL: gke_inputs.node_pool,
    FILESTORE: cloud_inputs.filestore,
    PERSISTENT_RESOURCE: cloud_inputs.persistent_resource,
    BUCKET: cloud_inputs.bucket,
    ROUTER_NAT: cloud_inputs.gateway,
    settings_inputs.NETWORK: network_inputs.network,
    SUBNETWORK: network_inputs.subnet,
    "gcp:compute/firewall:Firewall": network_inputs.firewall,
    "gcp:compute/resourcePolicy:ResourcePolicy": settings_inputs.resource_policy,
    "gcp:compute/reservation:Reservation": settings_inputs.reservation,
    settings_inputs.ACCOUNT: network_inputs.account,
    "gcp:projects/iAMMember:IAMMember": network_inputs.role_grant,
    "gcp:projects/iAMBinding:IAMBinding": network_inputs.role_grant,
    "kubernetes:storage.k8s.io/v1:StorageClass": network_inputs.storage_class,
    "kubernetes:core/v1:PersistentVolumeClaim": network_inputs.volume_claim,
    "gcp:compute/instance:Instance": cloud_inputs.interfaces,
    "gcp:compute/instanceTemplate:InstanceTemplate": cloud_inputs.interfaces,
    RESOURCE_FLAVOR: kueue_inputs.flavor,
    COMPUTE_CLASS: class_inputs.compute_class,
    CLUSTER_QUEUE: kueue_inputs.cluster_queue,
}

# Where each type takes the labels that Google Cloud bills by.
LABELS: Mapping[str, tuple[str, ...]] = {
    CLUSTER: ("resourceLabels",),
    NODE_POOL: ("nodeConfig", "resourceLabels"),
    FILESTORE: ("labels",),
    PERSISTENT_RESOURCE: ("labels",),
    BUCKET: ("labels",),
    "gcp:vertex/aiTensorboard:AiTensorboard": ("labels",),
    "gcp:artifactregistry/repository:Repository": ("labels",),
    "gcp:monitoring/alertPolicy:AlertPolicy": ("userLabels",),
    "gcp:monitoring/notificationChannel:NotificationChannel": ("userLabels",),
    "gcp:compute/address:Address": ("labels",),
    "gcp:compute/globalAddress:GlobalAddress": ("labels",),
    "gcp:compute/disk:Disk": ("labels",),
    "gcp:compute/instance:Instance": ("labels",),
    "gcp:compute/instanceTemplate:InstanceTemplate": ("labels",),
    "gcp:kms/cryptoKey:CryptoKey": ("labels",),
    "gcp:secretmanager/secret:Secret": ("labels",),
    "gcp:pubsub/topic:Topic": ("labels",),
    "gcp:bigquery/dataset:Dataset": ("labels",),
    "gcp:dns/managedZone:ManagedZone": ("labels",),
}


def views_of_plan(planned: Iterable[Planned], locator: Locator | None = None) -> list[View]:
    """Return the views of a stack's planned resources, each with its section of the stack file where one is given."""
    found: list[View] = []
    for each in planned:
        if each.type not in MAKERS and each.type not in LABELS:
            continue
        resource = Resource(each, locator.path(each.name) if locator else ())
        if each.type in MAKERS:
            found.extend(MAKERS[each.type](resource))
        if each.type in LABELS:
            found.append(Labelled(**resource.head, labels=resource.inputs.labels(*LABELS[each.type])))
    return found
