"""The arguments of components: ``make schema`` writes them from ``training_platform/config/component_arguments.py``.

Its annotations are not deferred: Pulumi's analyser reads them as they are.
"""

# ruff: noqa: E501 # descriptions of the models' fields
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import pulumi

__all__ = [
    "AutoProvisioningSpec",
    "BackupScheduleSpec",
    "BootDiskSpec",
    "ChartOverride",
    "CohortSpec",
    "CpuPoolSpec",
    "ExportSpec",
    "Fallback",
    "FilestoreInstanceArgs",
    "GatewaySpec",
    "GkeClusterArgs",
    "GpuNetworksSpec",
    "GpuSharing",
    "JobSetArgs",
    "JupyterHubArgs",
    "KueueArgs",
    "LocalSsdSpec",
    "Maintenance",
    "MaintenanceExclusion",
    "NetworkArgs",
    "NodePoolSpec",
    "NodePoolsArgs",
    "NotebookTeam",
    "Notebooks",
    "OauthSecret",
    "PathwaysPoolSpec",
    "PersistentResourceArgs",
    "Place",
    "Preemption",
    "PrometheusArgs",
    "ReservationSpec",
    "ResourceFlavorsArgs",
    "ResourcePoolSpec",
    "Share",
    "SubnetSpec",
    "SystemPoolSpec",
    "TaintSpec",
    "TeamBucketArgs",
    "TeamNamespaceArgs",
    "TeamPlace",
    "TeamQueuesArgs",
    "Upgrades",
    "VertexBootDisk",
]

if TYPE_CHECKING:
    NetworkGoogleApis = Literal["private", "restricted"]
    GkeClusterReleaseChannel = Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"]
    MaintenanceExclusionScope = Literal["no-upgrades", "no-minor-upgrades", "no-minor-or-node-upgrades"]
    NodePoolSpecDriver = Literal["default", "latest", "disabled"]
    GpuSharingStrategy = Literal["time-sharing", "mps"]
    LocalSsdSpecUse = Literal["ephemeral", "block"]
    TaintSpecEffect = Literal["NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE"]
    UpgradesStrategy = Literal["surge", "blue-green"]
    NodePoolSpecCapacity = Literal["on-demand", "spot", "flex-start", "queued-provisioning", "reservation"]
    GkeClusterOperators = Literal["slice-controller", "ml-diagnostics"]
    FilestoreInstanceConnection = Literal["direct-peering", "private-service-access"]
    ExportSpecAccess = Literal["read-write", "read-only"]
    ExportSpecSquash = Literal["none", "root"]
    BackupScheduleSpecWeekdays = Literal["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"]
    KueueOperators = Literal["ray", "trainer", "leader-worker-set", "slice-controller", "ml-diagnostics"]
    PrometheusController = Literal["jobset", "kueue"]
    FallbackWhenCanBorrow = Literal["MayStopSearch", "TryNextFlavor"]
    PreemptionWithinQueue = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
    PreemptionReclaim = Literal["Never", "LowerPriority", "Any"]
    PreemptionBorrowWithinCohort = Literal["Never", "LowerPriority"]
    TeamBucketStorageClass = Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"]
else:
    NetworkGoogleApis = GkeClusterReleaseChannel = MaintenanceExclusionScope = NodePoolSpecDriver = GpuSharingStrategy = LocalSsdSpecUse = TaintSpecEffect = UpgradesStrategy = NodePoolSpecCapacity = GkeClusterOperators = FilestoreInstanceConnection = ExportSpecAccess = ExportSpecSquash = BackupScheduleSpecWeekdays = KueueOperators = PrometheusController = FallbackWhenCanBorrow = PreemptionWithinQueue = PreemptionReclaim = PreemptionBorrowWithinCohort = TeamBucketStorageClass = str


class Place(TypedDict):
    """The project, environment, labels, protection and keys that all resources of an environment share."""

    project: str
    """Id of a Google Cloud project. Example: example-train-dev."""
    environment: str
    """Name of the environment; names in Google Cloud begin with it. Example: dev."""
    team: NotRequired[str]
    """Team that the resources are for; default: all teams."""
    labels: NotRequired[dict[str, str]]
    """Labels of every resource, in addition to environment, team and managed-by. Example: {'cost-center': 'research'}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete clusters, node pools, buckets and instances. Default: true."""
    keys: NotRequired[dict[str, str]]
    """Cloud KMS keys that encrypt data, keyed by region; default: Google's own keys."""


class NetworkArgs(TypedDict):
    """A VPC with a NAT gateway in each region. It has no subnets; clusters add them."""

    place: Place
    """Project, environment, labels, protection and keys."""
    regions: list[str]
    """Regions with clusters; each gets a NAT gateway. Example: ['us-central1']."""
    nat_addresses: NotRequired[int]
    """Number of addresses to reserve for each gateway. Default: 0."""
    services_range: NotRequired[str]
    """Address range for private service access; default: none. Example: 10.90.0.0/20."""
    google_apis: NotRequired[NetworkGoogleApis]
    """Kind of addresses to which the names of Google's APIs resolve in the VPC; default: public addresses."""


class SubnetSpec(TypedDict):
    """The address ranges of one cluster. Changing any of them recreates the cluster."""

    name: NotRequired[str]
    """Subnet of the environment's existing network, with these ranges; default: a new one. Example: train-us-central1."""
    nodes: str
    """Primary range of the subnet: one address per VM. Example: 10.10.0.0/20."""
    pods: str
    """Secondary range for pods: each VM gets a block of it. Example: 10.64.0.0/16."""
    services: str
    """Secondary range for Kubernetes Services. Example: 10.10.16.0/20."""
    pods_range: NotRequired[str]
    """Name of the range for pods. Default: pods. Example: pods."""
    services_range: NotRequired[str]
    """Name of the range for Services. Default: services. Example: services."""


class MaintenanceExclusion(TypedDict):
    """A period in which GKE does not upgrade the cluster, for example during a long training run."""

    start: str
    """Start, in UTC. Example: 2026-12-20T00:00:00Z."""
    end: str
    """End, in UTC. Example: 2026-12-20T00:00:00Z."""
    scope: NotRequired[MaintenanceExclusionScope]
    """Which upgrades are excluded. Default: no-upgrades."""


class Maintenance(TypedDict):
    """When GKE may upgrade, in UTC: by default at weekends, in 24 of the week's 168 hours. To upgrade a TPU slice, GKE recreates the whole slice, and jobs restart from their last checkpoint. GKE requires at least 48 hours in every 32 days (newer documents say 92), in windows of at least 4 hours."""

    start: NotRequired[str]
    """Start of the first window; `recurrence` determines the later windows. Default: 2026-01-03T06:00:00Z. Example: 2026-12-20T00:00:00Z."""
    end: NotRequired[str]
    """End of the first window. Default: 2026-01-03T18:00:00Z. Example: 2026-12-20T00:00:00Z."""
    recurrence: NotRequired[str]
    """How the window repeats: an RRULE of RFC 5545. Default: FREQ=WEEKLY;BYDAY=SA,SU. Example: FREQ=WEEKLY;BYDAY=SA,SU."""
    upgrade_freeze: NotRequired[bool]
    """Do not upgrade minor versions and nodes before their support ends; default: true for clusters with node_pools."""
    exclusions: NotRequired[dict[str, MaintenanceExclusion]]
    """Periods without upgrades, keyed by name."""


class GpuNetworksSpec(TypedDict):
    """VPCs for node pools whose VMs have additional network interfaces for GPUDirect. Each interface has a subnet, which is one of the 128 equal parts of `range`: a /16 gives /23, enough for 508 VMs. These VPCs are not peered, so clusters may use the same range, but it must not overlap the cluster's own ranges. Changing it recreates the node pools."""

    range: NotRequired[str]
    """Address range that contains all these subnets. Default: 192.168.0.0/16. Example: 10.10.0.0/20."""


class BootDiskSpec(TypedDict):
    """A boot disk."""

    type: NotRequired[str]
    """Disk type; default: pd-balanced if the machine type supports it, otherwise the machine type's default."""
    size_gb: NotRequired[int]
    """Size in GB. Default: 100."""


class SystemPoolSpec(TypedDict):
    """The node pool for controllers, JupyterHub and GKE's own pods. It never scales to 0. In a cluster with `cpu_pools`, no other pods run on it."""

    machine_type: NotRequired[str]
    """Machine type, without TPUs or GPUs. Default: n2-standard-8."""
    min_nodes: NotRequired[int]
    """Minimum number of VMs over all zones of the cluster. Default: 2."""
    max_nodes: NotRequired[int]
    """Maximum number of VMs over all zones of the cluster; quota is charged for them. Default: 6."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the VMs."""
    fallback_machine_types: NotRequired[list[str]]
    """Machine types to use if machine_type is out of stock. Each becomes a separate node pool that starts empty and can grow to max_nodes; quota is charged for each. Example: ['n2d-standard-8']."""


class CpuPoolSpec(TypedDict):
    """A node pool without TPUs or GPUs, for work such as data preparation, evaluation, Ray heads and notebooks."""

    machine_type: NotRequired[str]
    """Machine type, without TPUs or GPUs. Default: n2-standard-8."""
    min_nodes: NotRequired[int]
    """Minimum number of VMs over all zones of the cluster. Default: 0."""
    max_nodes: NotRequired[int]
    """Maximum number of VMs over all zones of the cluster; quota is charged for them. Default: 6."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the VMs."""


class PathwaysPoolSpec(TypedDict):
    """The node pool for the heads of Pathways jobs. Each head has its own VM, and no other pods run there."""

    machine_type: NotRequired[str]
    """Machine type, without TPUs or GPUs. Default: n2-standard-64."""
    min_nodes: NotRequired[int]
    """Minimum number of VMs over all zones of the cluster. Default: 0."""
    max_nodes: NotRequired[int]
    """Maximum number of VMs over all zones of the cluster. Each running job needs one, and quota is charged for them. Default: 1."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the VMs."""


class GpuSharing(TypedDict):
    """Sharing of one GPU by several pods. The team's quota then counts these shares of a GPU."""

    strategy: NotRequired[GpuSharingStrategy]
    """How pods share a GPU. Default: time-sharing."""
    max_clients: int
    """Number of pods that share one GPU, or one of its partitions. Example: 4."""


class LocalSsdSpec(TypedDict):
    """Local SSD. By default, the local SSD that the machine type includes is used for ephemeral storage."""

    count: NotRequired[int]
    """Number of local SSD partitions per VM; default: the number that the machine type includes."""
    use: NotRequired[LocalSsdSpecUse]
    """ephemeral: storage for images and emptyDir volumes; block: raw block devices. Default: ephemeral."""


class TaintSpec(TypedDict):
    """A taint of the nodes. Jobs that Kueue admits tolerate the taints of their flavor."""

    value: str
    """Value of the taint. Example: vision."""
    effect: NotRequired[TaintSpecEffect]
    """What happens to pods that do not tolerate the taint. Default: NO_SCHEDULE."""


class Upgrades(TypedDict):
    """How GKE repairs and upgrades the VMs of a node pool. A multi-host TPU slice is always recreated as a whole."""

    auto_repair: NotRequired[bool]
    """Repairs broken nodes. Default: true, but false for flex-start, which does not support repairs."""
    auto_upgrade: NotRequired[bool]
    """Upgrades nodes. Clusters in a release channel require true. Default: true."""
    strategy: NotRequired[UpgradesStrategy]
    """Upgrade strategy. Default: surge."""
    max_surge: NotRequired[int]
    """surge: number of extra VMs during upgrades; they need quota, and free VMs in the reservation. Default: 0."""
    max_unavailable: NotRequired[int]
    """surge: number of VMs that may be down at the same time during upgrades. Default: 1."""


class ReservationSpec(TypedDict):
    """The reservation that provides VMs: only its name, `any` for every open reservation that matches, or fields. With `any`, VMs that match no reservation are on-demand VMs and are charged as such."""

    name: str
    """Name of the reservation; "*" means any open reservation that matches. Example: h100-pool."""
    project: NotRequired[str]
    """Project that shares the reservation; default: the project of the environment."""
    block: NotRequired[str]
    """Reservation block; the node pool then needs a zone."""
    sub_block: NotRequired[str]
    """Reservation sub-block of the block."""
    chips: NotRequired[int]
    """Chips or GPUs of the whole reservation, for all pools and environments; only one pool needs to state it. Example: 64."""
    starts: NotRequired[str]
    """First day of a future reservation, which has no VMs before that day. Example: 2026-12-01."""
    ends: NotRequired[str]
    """Last day of a future reservation; after that day Google stops the VMs. Example: 2027-02-28."""


class NodePoolSpec(TypedDict):
    """A node pool with TPUs or GPUs. Quota is charged for the maximum number of VMs that the autoscaler may create. The size of a GPU pool is in VMs (`min_nodes`, `max_nodes`). The size of a TPU pool is in slices of one `topology` (`min_slices`, `slices`). A slice with several VMs becomes a separate GKE node pool."""

    accelerator: NotRequired[str]
    """GPU to attach to a machine type that includes no GPUs."""
    accelerator_count: NotRequired[int]
    """Number of GPUs to attach to each VM. Default: 1."""
    gpu_direct: NotRequired[bool]
    """Creates networks for GPUDirect, if the machine type supports it. Without them, use one VM per job. Default: true."""
    topology_aware: NotRequired[bool]
    """Lets Kueue choose the VMs of a job among existing VMs: GPUs close to each other, and whole TPU slices. Default: true for pools of several GPU VMs that are all always running."""
    compact: NotRequired[bool]
    """GPU: compact placement of the VMs; changing it recreates the node pool. Default: false."""
    driver: NotRequired[NodePoolSpecDriver]
    """GPU driver that GKE installs; changing it recreates the node pool. Default: default."""
    partition: NotRequired[str]
    """GPU: size of the MIG partitions of each GPU. Example: 1g.10gb."""
    sharing: NotRequired[GpuSharing]
    """GPU: lets several pods share a GPU; default: one pod per GPU."""
    local_ssd: NotRequired[LocalSsdSpec]
    """Local SSD of each VM."""
    preload_images: NotRequired[list[str]]
    """Disk images with preloaded container images; each becomes a secondary boot disk. Example: ['projects/example-train/global/images/torch']."""
    max_pods: NotRequired[int]
    """Maximum number of pods per VM; default: 16 on hosts of multi-host slices, otherwise 32."""
    taints: NotRequired[dict[str, TaintSpec]]
    """Taints of the nodes, keyed by taint key, in addition to GKE's taints."""
    upgrades: NotRequired[Upgrades]
    """How GKE repairs and upgrades the nodes."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the GKE node pool that have no field here, under their Python names in pulumi-gcp. Example: {'node_config': {'linux_node_config': {'sysctls': {'net.core.somaxconn': '4096'}}}}."""
    machine_type: str
    """Machine type. Example: a3-highgpu-8g."""
    zone: NotRequired[str]
    """Zone of the VMs; required in a regional cluster."""
    capacity: NotRequired[NodePoolSpecCapacity]
    """Provisioning model, which determines the quota that is charged. Default: on-demand."""
    reservation: NotRequired[ReservationSpec]
    """Reservation that provides the VMs: its name, any, or a mapping with its fields."""
    topology: NotRequired[str]
    """TPU: topology of a slice, in chips; required. Example: 4x8."""
    slices: NotRequired[int]
    """TPU: maximum number of slices. Default: 1."""
    min_slices: NotRequired[int]
    """TPU: number of slices that are always running. Default: 0."""
    max_nodes: NotRequired[int]
    """GPU: maximum number of VMs (per zone if the cluster is regional and `zone` is not set). Default: 1."""
    min_nodes: NotRequired[int]
    """GPU: number of VMs that are always running (per zone if the cluster is regional and `zone` is not set). Default: 0."""
    min_provision_nodes: NotRequired[int]
    """GPU: how many of the min_nodes VMs must start when the pool is created; in a stock-out the others start later. Default: all. Removing this field recreates the node pool."""
    max_run_hours: NotRequired[int]
    """flex-start and queued-provisioning: hours after which a VM is deleted."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the VMs."""
    labels: NotRequired[dict[str, str]]
    """Kubernetes labels of the nodes, in addition to GKE's. Example: {'team': 'vision'}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace the resource, even if the environment protects resources. Default: true."""


class AutoProvisioningSpec(TypedDict):
    """Node pools that GKE creates for pending pods and deletes when they are empty, within limits of the cluster. The limits count all node pools of the cluster, including those in this file. Quota is charged for the whole limit of each accelerator. Names are GKE's own: `nvidia-h100-80gb` counts GPUs, `tpu-v5-lite-podslice` counts chips."""

    cpu: int
    """Limit for the vCPUs of all node pools together. Example: 1000."""
    memory_gb: int
    """Limit for the memory of all node pools together, in GB. Example: 8000."""
    accelerators: NotRequired[dict[str, int]]
    """Limits for the chips or GPUs of all node pools together, keyed by accelerator type. Example: {'nvidia-h100-80gb': 16}."""
    zones: NotRequired[list[str]]
    """Zones of the node pools that GKE creates; default: the zones of the cluster."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the nodes."""


class GkeClusterArgs(TypedDict):
    """A GKE cluster with its subnet, the service account of its nodes, and its node pools."""

    place: Place
    """Project, environment, labels, protection and keys."""
    network: NotRequired[pulumi.Input[str | None]]
    """Id of the VPC, projects/*/global/networks/*; required unless the cluster is existing. Example: projects/example-train-dev/global/networks/dev."""
    service_account: NotRequired[pulumi.Input[str | None]]
    """E-mail address of the nodes' service account; default: a new account with the roles that nodes need."""
    host_project: NotRequired[str]
    """Host project of a Shared VPC; default: the project of the place."""
    google_groups_domain: NotRequired[str]
    """Domain whose Google groups can get rights in the cluster. Example: example.com."""
    location: str
    """A region, or a zone if the machines are available in only one zone."""
    existing: NotRequired[str]
    """Name of an existing cluster of the project, owned by somebody else, in which to create pools and queues. Example: shared-training."""
    subnet: NotRequired[SubnetSpec]
    """Address ranges of the cluster; required unless the cluster is existing."""
    release_channel: NotRequired[GkeClusterReleaseChannel]
    """GKE release channel. Default: REGULAR."""
    version: NotRequired[str]
    """Minimum version of the control plane, in quotes."""
    maintenance: NotRequired[Maintenance]
    """When GKE may upgrade the cluster."""
    gpu_networks: NotRequired[GpuNetworksSpec]
    """VPCs that this stack creates for GPUDirect."""
    system_pool: NotRequired[SystemPoolSpec]
    """Node pool for controllers and for GKE's own pods."""
    cpu_pools: NotRequired[dict[str, CpuPoolSpec]]
    """Node pools for teams' pods without TPUs or GPUs, keyed by name. If there is one, these pods do not run on the system pool. Example: {'general': {'machine_type': 'n2-standard-16', 'max_nodes': 4}}."""
    pathways: NotRequired[PathwaysPoolSpec]
    """Node pool for heads of Pathways jobs, whose workers are TPU slices; default: none."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, keyed by name."""
    auto_provisioning: NotRequired[AutoProvisioningSpec]
    """Limits for node pools that GKE creates automatically; default: GKE creates none."""
    binary_authorization: NotRequired[bool]
    """true lets pods start only from images that the project's Binary Authorization policy allows. Default: false."""
    fqdn_policies: NotRequired[bool]
    """Allows host names in egress (docs/tenancy.md). Turning it off recreates the cluster. Default: false."""
    operators: NotRequired[list[GkeClusterOperators]]
    """GKE add-ons: the slice controller for TPU 7x, and profiling of training (ml-diagnostics)."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the GKE cluster that have no field here, under their Python names in pulumi-gcp. Example: {'cluster_autoscaling': {'autoscaling_profile': 'BALANCED'}}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace the cluster and its contents, even if the environment protects resources. Default: true."""


class NodePoolsArgs(TypedDict):
    """The node pools of a cluster that a `GkeCluster` does not create."""

    place: Place
    """Project, environment, labels, protection and keys."""
    cluster: pulumi.Input[str]
    """Name of the cluster in Google Cloud. Example: dev-main."""
    service_account: pulumi.Input[str]
    """E-mail address of the nodes' service account."""
    location: str
    """A region, or a zone if the machines are available in only one zone."""
    system_pool: NotRequired[SystemPoolSpec]
    """Node pool for controllers and for GKE's own pods."""
    cpu_pools: NotRequired[dict[str, CpuPoolSpec]]
    """Node pools for teams' pods without TPUs or GPUs, keyed by name. If there is one, these pods do not run on the system pool. Example: {'general': {'machine_type': 'n2-standard-16', 'max_nodes': 4}}."""
    pathways: NotRequired[PathwaysPoolSpec]
    """Node pool for heads of Pathways jobs, whose workers are TPU slices; default: none."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, keyed by name."""
    gpu_networks: NotRequired[GpuNetworksSpec]
    """VPCs that this stack creates for GPUDirect."""


class ExportSpec(TypedDict):
    """Clients that may mount the share, and what they may do. The first entry with a client's address applies."""

    ranges: list[str]
    """Address ranges of the clients, such as the node ranges of clusters. Example: ['10.12.0.0/20']."""
    access: NotRequired[ExportSpecAccess]
    """Access of these clients. Default: read-write."""
    squash: NotRequired[ExportSpecSquash]
    """root maps the clients' root user to the anonymous user. Nodes create the folders of teams as root. Default: none."""
    anonymous_id: NotRequired[int]
    """User and group id of the anonymous user, if root is squashed; default: 65534. Example: 65534."""


class BackupScheduleSpec(TypedDict):
    """Backups that a Backup and DR plan makes on a schedule, by default once a day. Google enables Backup and DR for Filestore in a project on request (its page on backup plans, read 2026-11-22)."""

    every_hours: NotRequired[int]
    """Hours between the backups of a day."""
    weekdays: NotRequired[list[BackupScheduleSpecWeekdays]]
    """Weekdays with a backup; default: every day."""
    start_hour: NotRequired[int]
    """Hour of the day from which backups start. Default: 0."""
    end_hour: NotRequired[int]
    """Hour of the day after which no backup starts. Default: 6."""
    time_zone: NotRequired[str]
    """IANA name of the time zone of these hours. Default: UTC. Example: Europe/Zurich."""
    keep_days: NotRequired[int]
    """Days for which a backup is kept. Default: 30."""
    locked_days: NotRequired[int]
    """Days during which nobody can delete a backup. Default: 1."""


class FilestoreInstanceArgs(TypedDict):
    """A Filestore instance with one share, its snapshots and its backups."""

    place: Place
    """Project, environment, labels, protection and keys."""
    network: pulumi.Input[str]
    """Name or id of the VPC. Example: projects/example-train-dev/global/networks/dev."""
    services_range: NotRequired[pulumi.Input[str | None]]
    """Name of the VPC's address range for private service access, if the instance joins the VPC that way. Example: dev-services."""
    location: str
    """A zone for zonal tiers, a region for REGIONAL and ENTERPRISE."""
    tier: NotRequired[str]
    """Service tier. Default: ZONAL."""
    capacity_gib: int
    """Capacity in GiB. Example: 1024."""
    share: NotRequired[str]
    """Name of the file share: at most 16 lower-case letters, digits and _. Default: share. Example: share."""
    protocol: NotRequired[str]
    """NFS_V3 or NFS_V4_1; not every tier supports both. Default: NFS_V3. Example: NFS_V3."""
    reserved_range: NotRequired[str]
    """Address range of the instance in the VPC, outside of all subnets. Filestore reads it only at creation; default: Google Cloud chooses a range. Example: 10.20.32.0/24."""
    connection: NotRequired[FilestoreInstanceConnection]
    """How the instance joins the VPC. With private-service-access, its address is in private_services_range. Default: direct-peering."""
    team: NotRequired[str]
    """Name of the only team that may mount the instance; default: every team may, but only the folder with its name."""
    exports: NotRequired[list[ExportSpec]]
    """Clients that may mount the instance; default: all clients that reach its address, including as root."""
    iops: NotRequired[int]
    """Total IOPS, billed in addition to the capacity."""
    iops_per_tib: NotRequired[int]
    """IOPS per TiB, billed in addition to the capacity."""
    snapshots: NotRequired[list[str]]
    """Names of snapshots. Adding a name creates a snapshot, and removing the name deletes the snapshot."""
    backups: NotRequired[BackupScheduleSpec]
    """Schedule of backups; default: no backups."""
    restore_from: NotRequired[str]
    """Backup from which a new instance is restored, in Filestore or in a backup vault. Example: projects/example-train-dev/locations/us-central1/backups/before-move."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the instance that have no field here, under their Python names in pulumi-gcp. Example: {'description': 'Home directories'}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace the resource, even if the environment protects resources. Default: true."""


class ChartOverride(TypedDict):
    """Another version or source for a Helm chart, such as a mirror that a private cluster can reach."""

    version: NotRequired[str]
    """Version of the chart, in quotes; default: the version in the catalogue."""
    chart: NotRequired[str]
    """An OCI reference, a path, or a name in the repository; default: the chart in the catalogue. Example: oci://us-docker.pkg.dev/example-train/charts/kueue."""
    repository: NotRequired[str]
    """URL of the chart repository. Example: https://charts.example.com."""
    digest: NotRequired[str]
    """Digest of the chart, only for an OCI reference. Another package with the same version is then refused. Example: sha256:0000000000000000000000000000000000000000000000000000000000000000."""
    ready_minutes: NotRequired[int]
    """Minutes within which the chart's pods have to be ready. Otherwise a first installation is removed, and an upgrade is rolled back. Default: 10."""


class JobSetArgs(TypedDict):
    """The JobSet controller, installed from its Helm chart."""

    chart: NotRequired[ChartOverride]
    """Another version or source of the chart."""


class KueueArgs(TypedDict):
    """The Kueue controller, installed from its Helm chart. The node pools determine its size and its time-outs."""

    place: Place
    """Project, environment, labels, protection and keys."""
    cluster: str
    """Name of the GkeCluster. Example: main."""
    chart: NotRequired[ChartOverride]
    """Another version or source of the chart."""
    fair_sharing: NotRequired[bool]
    """true lets teams borrow in proportion to their weights. Default: true."""
    location: str
    """A region, or a zone if the machines are available in only one zone."""
    system_pool: NotRequired[SystemPoolSpec]
    """Node pool for controllers and for GKE's own pods."""
    cpu_pools: NotRequired[dict[str, CpuPoolSpec]]
    """Node pools for teams' pods without TPUs or GPUs, keyed by name. If there is one, these pods do not run on the system pool. Example: {'general': {'machine_type': 'n2-standard-16', 'max_nodes': 4}}."""
    pathways: NotRequired[PathwaysPoolSpec]
    """Node pool for heads of Pathways jobs, whose workers are TPU slices; default: none."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, keyed by name."""
    serving: NotRequired[bool]
    """Lets teams have model servers here: Kueue queues their pods, and autoscalers can read their metrics. Default: false."""
    operators: NotRequired[list[KueueOperators]]
    """Software for other kinds of jobs; slice-controller and ml-diagnostics are GKE's own add-ons. Example: ['ray', 'trainer']."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace the cluster and its contents, even if the environment protects resources. Default: true."""


class PrometheusArgs(TypedDict):
    """The collection of a controller's metrics by Managed Service for Prometheus."""

    place: Place
    """Project, environment, labels, protection and keys."""
    controller: PrometheusController
    """Controller whose metrics are scraped."""


class Share(TypedDict):
    """A share of a ResourceFlavor in a cluster, in chips or GPUs. A cohort's share belongs to all of its members."""

    nominal_quota: int
    """Nominal quota: number of chips or GPUs that the team can always reclaim. Example: 16."""
    borrowing_limit: NotRequired[int]
    """Maximum number of chips or GPUs that the team may borrow; default: no limit."""
    lending_limit: NotRequired[int]
    """Maximum number of chips or GPUs that other teams may borrow from the share; default: all."""


class CohortSpec(TypedDict):
    """Teams that borrow from each other first, such as a department. A cohort can have its own quota."""

    parent: NotRequired[str]
    """Parent cohort; default: the cluster's cohort, which contains all others."""
    weight: NotRequired[int]
    """Weight in fair sharing: weight 2 borrows twice as much as weight 1; weight 0 borrows only what no other team wants. Default: 1."""
    shares: NotRequired[dict[str, dict[str, Share]]]
    """Quota that belongs to no team of the cohort and that all its teams may borrow, keyed by cluster and flavor. Example: {'us-central1': {'h100-reservation': {'nominal_quota': 16}}}."""


class ResourceFlavorsArgs(TypedDict):
    """The ResourceFlavors of a cluster's node pools with their Topologies, job priorities, and cohorts of teams."""

    place: Place
    """Project, environment, labels, protection and keys."""
    cluster: str
    """Name of the GkeCluster. Example: main."""
    priorities: NotRequired[dict[str, int]]
    """Priorities of jobs, keyed by name; a higher number comes first. Example: {'high': 1000}."""
    cohorts: NotRequired[dict[str, CohortSpec]]
    """Cohorts of teams, keyed by name; default: only the cluster's cohort."""
    location: str
    """A region, or a zone if the machines are available in only one zone."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, keyed by name."""


class TeamPlace(TypedDict):
    """The project, environment, team, labels, protection and keys that all resources of a team share."""

    project: str
    """Id of a Google Cloud project. Example: example-train-dev."""
    environment: str
    """Name of the environment; names in Google Cloud begin with it. Example: dev."""
    team: str
    """Team that the resources are for. Example: vision."""
    labels: NotRequired[dict[str, str]]
    """Labels of every resource, in addition to environment, team and managed-by. Example: {'cost-center': 'research'}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete clusters, node pools, buckets and instances. Default: true."""
    keys: NotRequired[dict[str, str]]
    """Cloud KMS keys that encrypt data, keyed by region; default: Google's own keys."""


class TeamNamespaceArgs(TypedDict):
    """A team's namespace, with its members' roles, its jobs' account, and a network policy against other teams."""

    place: TeamPlace
    """Project, environment, team, labels, protection and keys."""
    members: list[str]
    """IAM members of the team. Example: ['group:vision@example.com']."""
    google_service_account: pulumi.Input[str]
    """E-mail address of the Google Cloud service account of the jobs. Example: dev-vision-jobs@example-train-dev.iam.gserviceaccount.com."""
    quota: NotRequired[dict[str, str]]
    """Limits of the namespace, as in `hard` of a ResourceQuota; default: no limits. Example: {'requests.nvidia.com/gpu': '16'}."""
    egress: NotRequired[dict[str, Any]]
    """Destinations that the team's pods may connect to, as the spec of a NetworkPolicy; default: all. Example: {'policyTypes': ['Egress']}."""


class Fallback(TypedDict):
    """The order in which Kueue tries flavors for a job. It uses the first with enough quota. The order is a list because the engine sorts the keys of a mapping. The order of shares in a file has no effect."""

    order: NotRequired[dict[str, list[str]]]
    """Flavors in the order in which Kueue tries them, keyed by cluster. Kueue tries other flavors after these. Example: {'us-central1': ['h100-reservation', 'h100-spot']}."""
    when_can_borrow: NotRequired[FallbackWhenCanBorrow]
    """If a job fits by borrowing: MayStopSearch borrows, TryNextFlavor tries the next flavor first. Default: MayStopSearch."""
    when_can_preempt: NotRequired[FallbackWhenCanBorrow]
    """If a job fits by preemption: MayStopSearch preempts, TryNextFlavor tries the next flavor first. Default: TryNextFlavor."""


class Preemption(TypedDict):
    """The running jobs that a waiting job of the team may stop."""

    within_queue: NotRequired[PreemptionWithinQueue]
    """Which of the team's own jobs may be preempted. Default: LowerPriority."""
    reclaim: NotRequired[PreemptionReclaim]
    """Which jobs of other teams may be preempted if they use quota that the team has lent. Default: Any."""
    borrow_within_cohort: NotRequired[PreemptionBorrowWithinCohort]
    """Which jobs of other teams may be preempted so that the team can borrow their quota; only without fair sharing. Default: Never."""


class TeamQueuesArgs(TypedDict):
    """A team's ClusterQueue in one cluster, and the LocalQueues of its namespace."""

    place: TeamPlace
    """Project, environment, team, labels, protection and keys."""
    cluster: str
    """Name of the GkeCluster. Example: main."""
    namespace: pulumi.Input[str]
    """Namespace of the team. Example: vision."""
    shares: dict[str, Share]
    """Shares of the team, keyed by flavor. Example: {'h100': {'nominal_quota': 16}}."""
    fallback: NotRequired[Fallback]
    """The order in which Kueue tries flavors."""
    cohort: NotRequired[str]
    """Cohort in which the team borrows; default: the cluster's cohort. Example: research."""
    weight: NotRequired[int]
    """Weight in fair sharing: weight 2 borrows twice as much as weight 1; weight 0 borrows only what no other team wants. Default: 1."""
    preemption: NotRequired[Preemption]
    """Running jobs that the team's jobs may preempt."""
    location: str
    """A region, or a zone if the machines are available in only one zone."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, keyed by name."""


class TeamBucketArgs(TypedDict):
    """A team's Cloud Storage bucket. Members can read it, and jobs can write to it."""

    place: TeamPlace
    """Project, environment, team, labels, protection and keys."""
    members: NotRequired[list[str]]
    """IAM members of the team, who may read and add objects. Example: ['group:v@example.com']."""
    jobs: pulumi.Input[str]
    """E-mail address of the service account of the team's jobs, which may read and write objects. Example: dev-vision-jobs@example-train-dev.iam.gserviceaccount.com."""
    location: str
    """Region of the bucket."""
    storage_class: NotRequired[TeamBucketStorageClass]
    """Storage class. Default: STANDARD."""
    size_gib: NotRequired[int]
    """Expected size in GiB, to estimate the cost; default: no estimate."""
    delete_after_days: NotRequired[int]
    """Days after which objects are deleted; default: never."""
    versioning: NotRequired[bool]
    """Keep old versions of objects. Default: false."""
    hierarchical_namespace: NotRequired[bool]
    """Gives the bucket real folders, so that renaming a folder is a single operation. Changing this field replaces the bucket. Default: false."""
    members_write: NotRequired[bool]
    """Lets members overwrite and delete objects; otherwise they can only read and add objects. Default: false."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the bucket that have no field here, under their Python names in pulumi-gcp. Example: {'logging': {'log_bucket': 'example-train-access-logs'}}."""


class GatewaySpec(TypedDict):
    """Access from the internet: a load balancer with Identity-Aware Proxy, which admits only the members."""

    address: str
    """Name of the reserved global address to which the host's DNS record points. Example: notebooks."""
    certificate_map: str
    """Name of the Certificate Manager certificate map with the host's certificate. Example: notebooks."""
    members: list[str]
    """IAM members that Identity-Aware Proxy admits. Example: ['group:ml@example.com']."""


class OauthSecret(TypedDict):
    """The location of the OAuth client secret. The secret itself is never in a stack file or in Pulumi's state."""

    name: NotRequired[str]
    """Name of the Secret in the hub's namespace, or in Secret Manager. Default: jupyterhub-oauth. Example: vision."""
    key: NotRequired[str]
    """Key of the client secret in a Kubernetes Secret. Default: client-secret."""
    secret_manager: NotRequired[bool]
    """true keeps the secret in Secret Manager, where you add its value. false: you create a Kubernetes Secret by hand. Default: false."""


class NotebookTeam(TypedDict):
    """Members of a team whose notebooks run in the team's namespace and queue, and use its share of the flavors."""

    users: list[str]
    """Accounts that may start these notebooks. Example: ['ada@example.com']."""
    pools: list[str]
    """Node pools of this cluster on which these notebooks may run. Example: ['a100']."""


class Notebooks(TypedDict):
    """JupyterHub in a cluster, with home directories on Filestore, and a profile for each pool in `pools`."""

    filestore: str
    """Filestore instance of the environment for the home directories. Example: homes."""
    host: NotRequired[str]
    """Host name at which browsers reach the hub; default: localhost, with port-forward."""
    gateway: NotRequired[GatewaySpec]
    """A load balancer for `host`; default: none, so you direct `host` to the hub yourself."""
    oauth_client_id: str
    """OAuth client id of your Google sign-in. Example: notebooks.apps.example.com."""
    oauth_secret: NotRequired[OauthSecret]
    """Location of the OAuth client secret."""
    allowed_domain: str
    """Domain whose accounts may sign in. Example: example.com."""
    pools: NotRequired[list[str]]
    """Node pools of this cluster whose VMs notebooks may use. The capacity of these pools is promised to no team. Example: ['gpu-notebooks']."""
    teams: NotRequired[dict[str, NotebookTeam]]
    """Teams whose members run notebooks in the team's queue, on its share and with a lower priority than its jobs, keyed by team. Example: {'vision': {'users': ['ada@example.com'], 'pools': ['a100']}}."""
    buckets: NotRequired[bool]
    """Gives all notebooks a service account that can read the buckets of data sets for all teams. Default: false."""
    idle_minutes: NotRequired[int]
    """Minutes after which a notebook without a browser and without kernel output ends. Default: 60."""
    image: NotRequired[str]
    """Notebook image with its tag; default: the image in the catalogue. Example: us-docker.pkg.dev/example-train/images/notebook:2026-11."""
    home_gib: NotRequired[int]
    """Size of the volume claim for all home directories, in GiB. Default: 512."""


class JupyterHubArgs(TypedDict):
    """JupyterHub: notebooks for everyone in a domain."""

    place: Place
    """Project, environment, labels, protection and keys."""
    cluster: str
    """Name of the GkeCluster. Example: main."""
    home_claim: pulumi.Input[str]
    """PersistentVolumeClaim for all home directories, in the hub's namespace, jupyterhub. Example: homes."""
    chart: NotRequired[ChartOverride]
    """Another version or source of the chart."""
    location: str
    """A region, or a zone if the machines are available in only one zone."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, keyed by name."""
    notebooks: Notebooks
    """JupyterHub. This component does not use the name of its Filestore instance."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace the cluster and its contents, even if the environment protects resources. Default: true."""


class VertexBootDisk(TypedDict):
    """The boot disk of a VM of Vertex AI. Both fields are always sent to Vertex AI, since sources disagree on its defaults, which differ from those of GKE."""

    type: NotRequired[str]
    """Disk type. Default: pd-ssd."""
    size_gb: NotRequired[int]
    """Size in GB. Default: 100."""


class ResourcePoolSpec(TypedDict):
    """Identical VMs of a persistent resource, with the same machine type and boot disk."""

    machine_type: str
    """Machine type, including its GPUs. Example: a2-highgpu-1g."""
    accelerator: NotRequired[str]
    """GPU that is attached to an N1 machine type; default: none. Example: t4."""
    accelerator_count: NotRequired[int]
    """Number of attached GPUs. Default: 1."""
    replicas: NotRequired[int]
    """Number of VMs; with max_replicas, the minimum. Default: 1."""
    max_replicas: NotRequired[int]
    """Maximum number of VMs; this field turns autoscaling on."""
    boot_disk: NotRequired[VertexBootDisk]
    """Boot disks of the VMs."""


class PersistentResourceArgs(TypedDict):
    """Machines that Vertex AI keeps running, and bills, between training jobs."""

    place: TeamPlace
    """Project, environment, team, labels, protection and keys."""
    network_attachment: NotRequired[pulumi.Input[str | None]]
    """Network attachment through which the VMs reach a VPC; default: none. Example: projects/example-train/regions/us-central1/networkAttachments/vertex."""
    machine_type: str
    """Machine type, including its GPUs. Example: a2-highgpu-1g."""
    accelerator: NotRequired[str]
    """GPU that is attached to an N1 machine type; default: none. Example: t4."""
    accelerator_count: NotRequired[int]
    """Number of attached GPUs. Default: 1."""
    replicas: NotRequired[int]
    """Number of VMs; with max_replicas, the minimum. Default: 1."""
    max_replicas: NotRequired[int]
    """Maximum number of VMs; this field turns autoscaling on."""
    boot_disk: NotRequired[VertexBootDisk]
    """Boot disks of the VMs."""
    region: str
    """Region of Vertex AI."""
    more_pools: NotRequired[dict[str, ResourcePoolSpec]]
    """Further pools, keyed by name. A job runs on the pools that have its machine types and disks."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the persistent resource that have no field here, under their Python names in pulumi-gcp. Example: {'resource_pools': [{'machine_spec': {'min_cpu_platform': 'Intel Ice Lake'}}]}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace the resource, even if the environment protects resources. Default: true."""
