"""Resource types: facts about each kind of resource that the program plans or that rules check.

This module contains the type tokens. ``resource_types.yaml`` contains the facts about each type, including the inputs
whose change replaces a resource. The typed models that rules read (views) refer to resource types by token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from training_platform.catalog.reading import DataPosition, build, read_file

_FILE = Path(__file__).with_suffix(".yaml")

ADDRESS = "gcp:compute/address:Address"
ALERT_POLICY = "gcp:monitoring/alertPolicy:AlertPolicy"
BACKUP_PLAN = "gcp:backupdisasterrecovery/backupPlan:BackupPlan"
BACKUP_PLAN_ASSOCIATION = "gcp:backupdisasterrecovery/backupPlanAssociation:BackupPlanAssociation"
BACKUP_VAULT = "gcp:backupdisasterrecovery/backupVault:BackupVault"
BUCKET = "gcp:storage/bucket:Bucket"
BUDGET = "gcp:billing/budget:Budget"
CLUSTER = "gcp:container/cluster:Cluster"
CRYPTO_KEY_MEMBER = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
DASHBOARD = "gcp:monitoring/dashboard:Dashboard"
DISK = "gcp:compute/disk:Disk"
FILESTORE = "gcp:filestore/instance:Instance"
FILESTORE_SNAPSHOT = "gcp:filestore/snapshot:Snapshot"
FIREWALL = "gcp:compute/firewall:Firewall"
GLOBAL_ADDRESS = "gcp:compute/globalAddress:GlobalAddress"
BUCKET_MEMBER = "gcp:storage/bucketIAMMember:BucketIAMMember"
CUSTOM_ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"
IAM_BINDING = "gcp:projects/iAMBinding:IAMBinding"
IAM_MEMBER = "gcp:projects/iAMMember:IAMMember"
INSTANCE = "gcp:compute/instance:Instance"
INSTANCE_TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
MANAGED_ZONE = "gcp:dns/managedZone:ManagedZone"
LOG_BUCKET = "gcp:logging/projectBucketConfig:ProjectBucketConfig"
LOG_SINK = "gcp:logging/projectSink:ProjectSink"
LOG_VIEW = "gcp:logging/logView:LogView"
LOG_VIEW_MEMBER = "gcp:logging/logViewIamMember:LogViewIamMember"
LUSTRE = "gcp:lustre/instance:Instance"
METADATA_STORE = "gcp:vertex/aiMetadataStore:AiMetadataStore"
NETWORK = "gcp:compute/network:Network"
NETWORK_ATTACHMENT = "gcp:compute/networkAttachment:NetworkAttachment"
NODE_POOL = "gcp:container/nodePool:NodePool"
NOTIFICATION_CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"
PERSISTENT_RESOURCE = "gcp:vertex/aiPersistentResource:AiPersistentResource"
QUOTA_PREFERENCE = "gcp:cloudquota/sQuotaPreference:SQuotaPreference"
RECORD_SET = "gcp:dns/recordSet:RecordSet"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
REPOSITORY_MEMBER = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
RESERVATION = "gcp:compute/reservation:Reservation"
RESOURCE_POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
ROUTER = "gcp:compute/router:Router"
ROUTER_NAT = "gcp:compute/routerNat:RouterNat"
SECRET = "gcp:secretmanager/secret:Secret"  # noqa: S105 # a type, which holds no secret
SECRET_MEMBER = "gcp:secretmanager/secretIamMember:SecretIamMember"  # noqa: S105 # a type
SERVICE = "gcp:projects/service:Service"
SERVICE_ACCOUNT = "gcp:serviceaccount/account:Account"
SERVICE_ACCOUNT_MEMBER = "gcp:serviceaccount/iAMMember:IAMMember"
SERVICE_CONNECTION = "gcp:servicenetworking/connection:Connection"
SERVICE_IDENTITY = "gcp:projects/serviceIdentity:ServiceIdentity"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
TENSORBOARD = "gcp:vertex/aiTensorboard:AiTensorboard"
TOPIC = "gcp:pubsub/topic:Topic"
WORKBENCH = "gcp:workbench/instance:Instance"

CLUSTER_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
OLD_CLUSTER_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta1:ClusterQueue"
COHORT = "kubernetes:kueue.x-k8s.io/v1beta2:Cohort"
COMPUTE_CLASS = "kubernetes:cloud.google.com/v1:ComputeClass"
NAMESPACE = "kubernetes:core/v1:Namespace"
PERSISTENT_VOLUME_CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
RELEASE = "kubernetes:helm.sh/v3:Release"
RESOURCE_FLAVOR = "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
OLD_RESOURCE_FLAVOR = "kubernetes:kueue.x-k8s.io/v1beta1:ResourceFlavor"
TOPOLOGY = "kubernetes:kueue.x-k8s.io/v1beta2:Topology"
STORAGE_CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"

KUBERNETES = "kubernetes:"  # the prefix of the type of every Kubernetes object
_HELM = "kubernetes:helm.sh/"  # a release is no object: its name is at the top of its inputs
_INDEX = re.compile(r"\[[^\[\]]*\]")  # of an item, by its position or its key

FORWARDING_RULES = (
    "gcp:compute/forwardingRule:ForwardingRule",
    "gcp:compute/globalForwardingRule:GlobalForwardingRule",
)

UNCOUNTED = frozenset({
    "gcp:colab/runtime:Runtime",
    "gcp:colab/schedule:Schedule",
    "gcp:composer/environment:Environment",
    "gcp:compute/disk:Disk",
    "gcp:compute/futureReservation:FutureReservation",
    "gcp:compute/instance:Instance",
    "gcp:compute/instanceFromMachineImage:InstanceFromMachineImage",
    "gcp:compute/instanceFromTemplate:InstanceFromTemplate",
    "gcp:compute/instanceGroupManager:InstanceGroupManager",
    "gcp:compute/nodeGroup:NodeGroup",
    "gcp:compute/regionDisk:RegionDisk",
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
    "gcp:compute/regionResizeRequest:RegionResizeRequest",
    "gcp:compute/reservation:Reservation",
    "gcp:compute/resizeRequest:ResizeRequest",
    "gcp:compute/storagePool:StoragePool",
    "gcp:dataflow/flexTemplateJob:FlexTemplateJob",
    "gcp:dataflow/job:Job",
    "gcp:dataproc/batch:Batch",
    "gcp:dataproc/cluster:Cluster",
    "gcp:notebooks/instance:Instance",
    "gcp:notebooks/runtime:Runtime",
    "gcp:tpu/v2QueuedResource:V2QueuedResource",
    "gcp:tpu/v2Vm:V2Vm",
    "gcp:vertex/aiDeploymentResourcePool:AiDeploymentResourcePool",
    "gcp:vertex/aiEndpointWithModelGardenDeployment:AiEndpointWithModelGardenDeployment",
    "gcp:vertex/aiIndexEndpointDeployedIndex:AiIndexEndpointDeployedIndex",
    "gcp:workbench/instance:Instance",
})  # fmt: skip
"""Types that have their own VMs, accelerators or disks. Of these, a stack file can plan only disks of data sets."""


@dataclass(frozen=True, kw_only=True)
class UnmodelledFields:
    """Fields of a request body, with everything below them, that need no field in a stack file, and the reason."""

    why: str
    fields: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """The facts about a resource type.

    - ``kind`` is the noun that reports use.
    - ``labels`` is the input with the labels by which Google Cloud bills, None if the type has none.
    - ``import_id`` is the id with which the cloud resource is imported, made from its inputs.
    - ``listed_under`` is the collection to search by display name, if Google chooses the id.
    - ``adds`` says that the type only adds to something, so creating a resource again changes nothing.
    - ``failed_create`` says that a resource is created again after a failed create, even if it exists.
    - ``permissions`` are the IAM permissions to create, read, change and delete a resource, keyed by collection.
      Permissions for clusters and for a project's policy are left out, because predefined roles contain them.
    - ``shown`` are the inputs that an inventory lists.
    - ``document`` is the discovery document and the message of its inputs, None if no document has them.
    - ``listed`` says how a project's resources are listed (``clients/project_contents.py``): once in a project,
      or once in each ``listed_per``.
    - ``defaults`` names the fields of a body that the API fills in.
    - ``unmodelled`` are further fields of a body that need no field in a stack file.
    - ``replacing`` are inputs whose change creates another resource and deletes the old one with its contents. It
      is None if these inputs are unknown.
    - ``sometimes_replacing`` are inputs that do so only for some values. The table cannot distinguish these
      values, so all values are treated as replacing.

    Other consequences of a change are in ``checks/comparison/effects.yaml``.
    """

    kind: str
    labels: str | None = None
    import_id: str | None = None
    listed_under: str | None = None
    adds: bool = False
    failed_create: bool = False
    permissions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    document: str | None = None
    listed: dict[str, str] | None = None
    listed_per: Literal["project", "zone", "region", "location"] = "project"
    defaults: str = ""
    unmodelled: tuple[UnmodelledFields, ...] = ()
    replacing: dict[str, tuple[str, ...]] | None = None
    sometimes_replacing: dict[str, tuple[str, ...]] | None = None


class _TypeFacts(NamedTuple):
    types: Mapping[str, ResourceType]
    apis: Mapping[str, str]
    object_replacing: frozenset[str]


RESOURCE_TYPES: Mapping[str, ResourceType]
"""All types of ``resource_types.yaml``, keyed by token."""
APIS: Mapping[str, str]
"""The API that each module of pulumi-gcp calls (``gcp:<module>/...``), for the modules that components use."""

if not TYPE_CHECKING:  # hidden from the type checker, which would take any name of this module for granted

    def __getattr__(name):
        if name not in ("RESOURCE_TYPES", "APIS"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _facts().types if name == "RESOURCE_TYPES" else _facts().apis


@cache
def _facts() -> _TypeFacts:
    """Return the content of the file, which is read at the first call."""
    content = read_file(_FILE)
    place = DataPosition(_FILE)
    types = {token: build(ResourceType, row, place.at(token), {}) for token, row in content["types"].items()}
    return _TypeFacts(types, content["apis"], object_replacing=frozenset(content["object_replacing"]))


def api_of(resource_type: str) -> str | None:
    """Return the API that a resource type calls; None for types outside Google Cloud, and for enabled APIs themselves.

    Raises LookupError for a module of pulumi-gcp that is not in ``APIS``, because its API would never be enabled.
    """
    package, _, module_and_type = resource_type.partition(":")
    module = module_and_type.partition("/")[0]
    if package != "gcp" or resource_type == SERVICE:
        return None
    if module not in _facts().apis:
        raise LookupError(f"{resource_type} is of module {module!r}, for which resource_types.yaml has no API")
    return _facts().apis[module]


def imported_as(kind: str, identity: str, project: object) -> str:
    """Return the id with which the provider imports a resource. For a bucket, it must include the project.

    If a bucket were imported by name only, it would have no project, and the first update would replace it.
    """
    return f"{project}/{identity}" if kind == BUCKET else identity


@cache
def labels_path(resource_type: str) -> tuple[str, ...] | None:
    """Return the path of a type's labels by which Google Cloud bills, or None if the type has none."""
    row = _facts().types.get(resource_type)
    return tuple(row.labels.split(".")) if row and row.labels else None


def has_known_replacements(resource_type: str) -> bool:
    """Return True if it is known which inputs replace a resource of this type. For Kubernetes objects it always is."""
    row = _facts().types.get(resource_type)
    return resource_type.startswith(KUBERNETES) or (row is not None and row.replacing is not None)


@cache
def replacing_inputs(resource_type: str, *, sometimes: bool = True) -> frozenset[str]:
    """Return the paths of the inputs whose change replaces a resource; empty for a type that is not in the table.

    With ``sometimes``, inputs that replace it only for some values are included.
    """
    row = _facts().types.get(resource_type)
    inputs = _paths(row.replacing if row else None)
    if resource_type.startswith(KUBERNETES) and not resource_type.startswith(_HELM):
        inputs |= _facts().object_replacing
    if sometimes:
        inputs |= _sometimes_replacing_inputs(resource_type)
    return inputs


def forces_replacement(
    resource_type: str, path: str, came_or_went: str | None = None, *, also: Iterable[str] = ()
) -> bool:
    """Return True if the change of one input replaces its resource.

    ``path`` is an input such as ``nodeConfig.guestAccelerators[0].type``. If only one side has the input,
    ``came_or_went`` is the outermost part of the path that the other side does not have; otherwise it is None. ``also``
    are paths that a program registers with ``replaceOnChanges``; each applies to everything below it.
    """
    forcing = replacing_inputs(resource_type)
    plain = general_path(path)
    patterns = (*also, *(field.removesuffix(".*") for field in forcing if field.endswith(".*")))
    if plain in forcing or any(covers(pattern, plain) for pattern in patterns):
        return True
    return came_or_went is not None and not forcing.isdisjoint(_between(general_path(came_or_went), plain))


def is_turned_on(resource_type: str, path: str, value: object) -> bool:
    """Return True if an input is a switch that is being turned on. Only turning it off replaces the resource."""
    return value is True and general_path(path) in _sometimes_replacing_inputs(resource_type)


def general_path(path: str) -> str:
    """Return a path with each position in a list replaced by ``[*]``."""
    return _INDEX.sub("[*]", path)


def covers(pattern: str, path: str) -> bool:
    """Return True if a path matches a pattern such as ``resourcePools[*].replicaCount``, or is below it."""
    pattern = general_path(pattern)
    path = general_path(path)
    return path == pattern or path.startswith((f"{pattern}.", f"{pattern}["))


def _between(outer: str, inner: str) -> Iterator[str]:
    """Yield the prefixes of a path, from an outer path to the whole path. Some of them end in a list."""
    part = inner
    while part.startswith(outer):
        yield part
        yield part.removesuffix("[*]")
        part = part.rpartition(".")[0]


@cache
def _sometimes_replacing_inputs(resource_type: str) -> frozenset[str]:
    row = _facts().types.get(resource_type)
    return _paths(row.sometimes_replacing if row else None)


def _paths(fields: Mapping[str, tuple[str, ...]] | None) -> frozenset[str]:
    """Return the full paths of fields, which are keyed by the part of the inputs that contains them.

    The part ``.`` means the inputs themselves. The field ``.`` means the part itself.
    """
    paths = set()
    for part, names in (fields or {}).items():
        for name in names:
            if name == ".":
                paths.add(part.removesuffix("[*]"))
            elif part == ".":
                paths.add(name)
            else:
                paths.add(f"{part}.{name}")
    return frozenset(paths)
