"""The register of resource types: what the program knows of each kind of resource that it plans or that rules judge.

A token stands here and nowhere else. Views say by these tokens which types they are made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

ADDRESS = "gcp:compute/address:Address"
ALERT_POLICY = "gcp:monitoring/alertPolicy:AlertPolicy"
BACKUP_PLAN = "gcp:backupdisasterrecovery/backupPlan:BackupPlan"
BACKUP_PLAN_ASSOCIATION = "gcp:backupdisasterrecovery/backupPlanAssociation:BackupPlanAssociation"
BACKUP_VAULT = "gcp:backupdisasterrecovery/backupVault:BackupVault"
BUCKET = "gcp:storage/bucket:Bucket"
BUDGET = "gcp:billing/budget:Budget"
CLUSTER = "gcp:container/cluster:Cluster"
CRYPTO_KEY = "gcp:kms/cryptoKey:CryptoKey"
CRYPTO_KEY_MEMBER = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
DASHBOARD = "gcp:monitoring/dashboard:Dashboard"
DATASET = "gcp:bigquery/dataset:Dataset"
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
LUSTRE = "gcp:lustre/instance:Instance"
METADATA_STORE = "gcp:vertex/aiMetadataStore:AiMetadataStore"
NETWORK = "gcp:compute/network:Network"
NETWORK_ATTACHMENT = "gcp:compute/networkAttachment:NetworkAttachment"
NODE_POOL = "gcp:container/nodePool:NodePool"
NOTIFICATION_CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"
PERSISTENT_RESOURCE = "gcp:vertex/aiPersistentResource:AiPersistentResource"
QUOTA_PREFERENCE = "gcp:cloudquota/sQuotaPreference:SQuotaPreference"
RAY_CLUSTER = "pulumi-python:dynamic/vertex:RayCluster"  # our own, of modules/vertex/ray_cluster.py
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

KUBERNETES = "kubernetes:"  # what the type of every Kubernetes object starts with


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """What is known of a type of resource.

    ``kind`` is what reports call one; ``labels`` is the input with the labels that Google Cloud bills by, None where it
    takes none. ``loses`` says what its replacement loses, for types whose replacement the guard of a change reports.
    ``import_id`` is the id under which the cloud has one, from its inputs; ``listed_under`` the collection to look
    through by display name, where Google chooses the id; an ``adds`` type only adds to something, so that to create it
    again changes nothing. A ``failed_create`` type is made anew after a create that failed, whatever became of it.
    ``shown`` are the inputs that an inventory lists.
    """

    kind: str
    labels: str | None = None
    loses: str | None = None
    import_id: str | None = None
    listed_under: str | None = None
    adds: bool = False
    failed_create: bool = False
    shown: tuple[str, ...] = ()


# Import ids: https://www.pulumi.com/registry/packages/gcp/api-docs/, section Import of each type.
_PROJECT = "projects/{project}"
_LOCAL = "projects/{project}/locations/{location}"
REGISTER: Mapping[str, ResourceType] = {
    ADDRESS: ResourceType(
        kind="address",
        labels="labels",
        import_id="projects/{project}/regions/{region}/addresses/{name}",
        shown=("region",),
    ),
    ALERT_POLICY: ResourceType(
        kind="alert policy", labels="userLabels", listed_under="projects/{project}/alertPolicies/"
    ),
    BACKUP_PLAN: ResourceType(kind="backup plan", import_id=f"{_LOCAL}/backupPlans/{{backupPlanId}}"),
    BACKUP_PLAN_ASSOCIATION: ResourceType(
        kind="use of a backup plan", import_id=f"{_LOCAL}/backupPlanAssociations/{{backupPlanAssociationId}}"
    ),
    BACKUP_VAULT: ResourceType(
        kind="backup vault",
        labels="labels",
        loses="its backups are lost, but for those that are locked, which stop it",
        import_id=f"{_LOCAL}/backupVaults/{{backupVaultId}}",
    ),
    BUCKET: ResourceType(
        kind="bucket", labels="labels", import_id="{name}", shown=("name", "location", "forceDestroy")
    ),
    BUCKET_MEMBER: ResourceType(kind="role on a bucket", adds=True),
    BUDGET: ResourceType(kind="budget", listed_under="billingAccounts/{billingAccount}/budgets/"),
    CLUSTER: ResourceType(
        kind="cluster",
        labels="resourceLabels",
        loses="everything that runs in it ends",
        import_id=f"{_LOCAL}/clusters/{{name}}",
        # The provider deletes a cluster's first pool only after its create succeeded.
        failed_create=True,
        shown=("location", "deletionProtection", "releaseChannel.channel"),
    ),
    CRYPTO_KEY: ResourceType(kind="key", labels="labels"),
    CRYPTO_KEY_MEMBER: ResourceType(kind="role on a key", adds=True),
    CUSTOM_ROLE: ResourceType(kind="custom role", import_id=f"{_PROJECT}/roles/{{roleId}}"),
    DASHBOARD: ResourceType(kind="dashboard", listed_under="projects/{project}/dashboards/"),
    DATASET: ResourceType(kind="dataset", labels="labels"),
    DISK: ResourceType(
        kind="disk",
        labels="labels",
        loses="all of its data is lost",
        import_id="projects/{project}/zones/{zone}/disks/{name}",
    ),
    FILESTORE: ResourceType(
        kind="Filestore instance",
        labels="labels",
        loses="all of its data is lost",
        import_id=f"{_LOCAL}/instances/{{name}}",
        shown=("tier", "location", "fileShares.capacityGb", "deletionProtectionEnabled"),
    ),
    FILESTORE_SNAPSHOT: ResourceType(
        kind="snapshot", labels="labels", import_id=f"{_LOCAL}/instances/{{instance}}/snapshots/{{name}}"
    ),
    FIREWALL: ResourceType(kind="firewall rule", import_id=f"{_PROJECT}/global/firewalls/{{name}}"),
    GLOBAL_ADDRESS: ResourceType(
        kind="global address", labels="labels", import_id=f"{_PROJECT}/global/addresses/{{name}}"
    ),
    IAM_BINDING: ResourceType(kind="role of several members", adds=True),
    IAM_MEMBER: ResourceType(kind="role of a member", adds=True),
    INSTANCE: ResourceType(kind="VM", labels="labels"),
    INSTANCE_TEMPLATE: ResourceType(kind="template of VMs", labels="labels"),
    LUSTRE: ResourceType(
        kind="Managed Lustre instance",
        labels="labels",
        loses="all of its data is lost",
        import_id=f"{_LOCAL}/instances/{{instanceId}}",
        shown=("location", "capacityGib", "perUnitStorageThroughput"),
    ),
    MANAGED_ZONE: ResourceType(
        kind="DNS zone", labels="labels", import_id=f"{_PROJECT}/managedZones/{{name}}", shown=("dnsName",)
    ),
    NETWORK: ResourceType(kind="VPC", import_id=f"{_PROJECT}/global/networks/{{name}}"),
    METADATA_STORE: ResourceType(
        kind="metadata store",
        loses="experiments and lineage of all teams of the project are lost",
        import_id="projects/{project}/locations/{region}/metadataStores/{name}",
    ),
    NETWORK_ATTACHMENT: ResourceType(
        kind="network attachment", import_id=f"{_PROJECT}/regions/{{region}}/networkAttachments/{{name}}"
    ),
    NODE_POOL: ResourceType(
        kind="node pool",
        labels="nodeConfig.resourceLabels",
        loses="its jobs end, and its capacity may not be available again",
        import_id=f"{_LOCAL}/clusters/{{cluster}}/nodePools/{{name}}",
        shown=(
            "nodeConfig.machineType",
            "nodeLocations",
            "nodeConfig.spot",
            "nodeConfig.flexStart",
            "nodeConfig.reservationAffinity.values",
            "placementPolicy.tpuTopology",
            "autoscaling.minNodeCount",
            "autoscaling.maxNodeCount",
            "autoscaling.totalMaxNodeCount",
            "nodeConfig.bootDisk",
        ),
    ),
    NOTIFICATION_CHANNEL: ResourceType(
        kind="notification channel", labels="userLabels", listed_under="projects/{project}/notificationChannels/"
    ),
    PERSISTENT_RESOURCE: ResourceType(
        kind="persistent resource",
        labels="labels",
        loses="its jobs are cancelled, and its machines may not be available again",
        import_id=f"{_LOCAL}/persistentResources/{{name}}",
        shown=("resourcePools",),
    ),
    QUOTA_PREFERENCE: ResourceType(kind="quota request"),
    RAY_CLUSTER: ResourceType(
        kind="Ray cluster",
        labels="labels",
        loses="its jobs are cancelled, and its machines may not be available again",
        import_id=f"{_LOCAL}/persistentResources/{{name}}",
        shown=("resourcePools", "resourceRuntimeSpec.raySpec"),
    ),
    RECORD_SET: ResourceType(
        kind="DNS record",
        import_id=f"{_PROJECT}/managedZones/{{managedZone}}/rrsets/{{name}}/{{type}}",
        shown=("name", "type", "rrdatas"),
    ),
    REPOSITORY: ResourceType(kind="repository", labels="labels", import_id=f"{_LOCAL}/repositories/{{repositoryId}}"),
    REPOSITORY_MEMBER: ResourceType(kind="role on a repository", adds=True),
    RESERVATION: ResourceType(kind="reservation"),
    RESOURCE_POLICY: ResourceType(kind="resource policy"),
    ROUTER: ResourceType(kind="router", import_id=f"{_PROJECT}/regions/{{region}}/routers/{{name}}"),
    ROUTER_NAT: ResourceType(kind="NAT gateway", import_id="{project}/{region}/{router}/{name}"),
    SECRET: ResourceType(
        kind="secret",
        labels="labels",
        loses="its versions are lost",
        import_id=f"{_PROJECT}/secrets/{{secretId}}",
    ),
    SECRET_MEMBER: ResourceType(kind="role on a secret", adds=True),
    SERVICE: ResourceType(kind="API", adds=True),
    SERVICE_ACCOUNT_MEMBER: ResourceType(kind="role on a service account", adds=True),
    SERVICE_CONNECTION: ResourceType(kind="private service access", import_id="{network}:{service}"),
    SERVICE_IDENTITY: ResourceType(kind="service agent", adds=True),
    SERVICE_ACCOUNT: ResourceType(
        kind="service account",
        import_id="projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com",
    ),
    SUBNETWORK: ResourceType(kind="subnet", import_id=f"{_PROJECT}/regions/{{region}}/subnetworks/{{name}}"),
    TENSORBOARD: ResourceType(
        kind="TensorBoard", labels="labels", listed_under="projects/{project}/locations/{region}/tensorboards/"
    ),
    TOPIC: ResourceType(kind="topic", labels="labels"),
    WORKBENCH: ResourceType(
        kind="Workbench instance",
        labels="labels",
        loses="all of its notebooks are lost",
        import_id=f"{_LOCAL}/instances/{{name}}",
        shown=("gceSetup.machineType",),
    ),
    CLUSTER_QUEUE: ResourceType(kind="ClusterQueue", shown=("spec.resourceGroups",)),
    COHORT: ResourceType(kind="Cohort", shown=("spec.parentName", "spec.resourceGroups")),
    COMPUTE_CLASS: ResourceType(kind="ComputeClass"),
    OLD_CLUSTER_QUEUE: ResourceType(kind="ClusterQueue", shown=("spec.resourceGroups",)),
    OLD_RESOURCE_FLAVOR: ResourceType(kind="ResourceFlavor"),
    NAMESPACE: ResourceType(kind="Namespace"),
    PERSISTENT_VOLUME_CLAIM: ResourceType(kind="PersistentVolumeClaim"),
    RELEASE: ResourceType(kind="Helm release", shown=("chart", "version", "namespace")),
    RESOURCE_FLAVOR: ResourceType(kind="ResourceFlavor"),
    TOPOLOGY: ResourceType(kind="Topology"),
    STORAGE_CLASS: ResourceType(kind="StorageClass"),
}

APIS: Mapping[str, str] = {
    "artifactregistry": "artifactregistry.googleapis.com",
    "backupdisasterrecovery": "backupdr.googleapis.com",
    "billing": "billingbudgets.googleapis.com",
    "cloudquota": "cloudquotas.googleapis.com",
    "compute": "compute.googleapis.com",
    "container": "container.googleapis.com",
    "dns": "dns.googleapis.com",
    "filestore": "file.googleapis.com",
    "kms": "cloudkms.googleapis.com",
    "logging": "logging.googleapis.com",
    "lustre": "lustre.googleapis.com",
    "monitoring": "monitoring.googleapis.com",
    "projects": "cloudresourcemanager.googleapis.com",
    "secretmanager": "secretmanager.googleapis.com",
    "serviceaccount": "iam.googleapis.com",
    "servicenetworking": "servicenetworking.googleapis.com",
    "storage": "storage.googleapis.com",
    "vertex": "aiplatform.googleapis.com",
    "workbench": "notebooks.googleapis.com",
}
"""The API behind each module of pulumi-gcp that components use: ``gcp:<module>/...`` calls it."""


def api_of(resource_type: str) -> str | None:
    """Return the API that a resource's type calls; None for a type that is not Google Cloud's, and for APIs themselves.

    Raises LookupError for a module of pulumi-gcp that ``APIS`` lacks: its API would never be enabled.
    """
    package, _, rest = resource_type.partition(":")
    module = rest.partition("/")[0]
    if package != "gcp" or resource_type == SERVICE:
        return None
    if module not in APIS:
        raise LookupError(f"{resource_type} is of module {module!r}, which the register has no API for")
    return APIS[module]


def imported_as(kind: str, identity: str, project: object) -> str:
    """Return the id by which the provider imports a thing: a bucket's with its project.

    By its name alone a bucket is imported without one, and the first update would replace it.
    """
    return f"{project}/{identity}" if kind == BUCKET else identity


@cache
def labels_path(resource_type: str) -> tuple[str, ...] | None:
    """Return the keys under which a type takes the labels that Google Cloud bills by; None where it takes none."""
    row = REGISTER.get(resource_type)
    return tuple(row.labels.split(".")) if row and row.labels else None
