"""The arguments of components: ``make schema`` writes them from ``training_platform/config/component_arguments.py``.

Its annotations are not deferred: Pulumi's analyser reads them as they are.
"""

# ruff: noqa: E501 # what the models say of their fields
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
    """Environment: the start of names in Google Cloud. Example: dev."""
    team: NotRequired[str]
    """Team that the resources are for; default: all teams."""
    labels: NotRequired[dict[str, str]]
    """Labels of every resource, in addition to environment, team and managed-by. Example: {'cost-center': 'research'}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete clusters, node pools, buckets and instances. Default: true."""
    keys: NotRequired[dict[str, str]]
    """Keys of Cloud KMS that encrypt data, by region; default: Google's own."""


class NetworkArgs(TypedDict):
    """A VPC with a NAT gateway in each region. It has no subnets; clusters add them."""

    place: Place
    """Project, environment, labels, protection and keys."""
    regions: list[str]
    """Regions that get a NAT gateway: those with clusters. Example: ['us-central1']."""
    nat_addresses: NotRequired[int]
    """Addresses that are reserved for each gateway. Default: 0."""
    services_range: NotRequired[str]
    """Addresses for private service access; default: none. Example: 10.90.0.0/20."""
    google_apis: NotRequired[NetworkGoogleApis]
    """Addresses to which names of Google's APIs resolve in the VPC; default: public ones."""


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
    """Start of the first window; the others follow it. Default: 2026-01-03T06:00:00Z. Example: 2026-12-20T00:00:00Z."""
    end: NotRequired[str]
    """End of the first window. Default: 2026-01-03T18:00:00Z. Example: 2026-12-20T00:00:00Z."""
    recurrence: NotRequired[str]
    """How the window repeats: an RRULE of RFC 5545. Default: FREQ=WEEKLY;BYDAY=SA,SU. Example: FREQ=WEEKLY;BYDAY=SA,SU."""
    upgrade_freeze: NotRequired[bool]
    """Keep minor versions and nodes until their support ends; default: true with node_pools."""
    exclusions: NotRequired[dict[str, MaintenanceExclusion]]
    """Times without upgrades, by name."""


class GpuNetworksSpec(TypedDict):
    """VPCs for node pools whose VMs have additional network interfaces for GPUDirect. Each interface has a subnet, which is one of the 128 equal parts of `range`: a /16 gives /23, enough for 508 VMs. These VPCs are not peered, so clusters may use the same range, but it must not overlap the cluster's own ranges. Changing it recreates the node pools."""

    range: NotRequired[str]
    """Address range of all of these subnets. Default: 192.168.0.0/16. Example: 10.10.0.0/20."""


class BootDiskSpec(TypedDict):
    """A boot disk."""

    type: NotRequired[str]
    """Disk type; default: pd-balanced where the machine type supports it, else its own default."""
    size_gb: NotRequired[int]
    """Size in GB. Default: 100."""


class SystemPoolSpec(TypedDict):
    """The node pool for controllers, JupyterHub and GKE's own pods. It never scales to 0. In a cluster with `cpu_pools`, no other pods run on it."""

    machine_type: NotRequired[str]
    """Machine type, without TPUs or GPUs. Default: n2-standard-8."""
    min_nodes: NotRequired[int]
    """Fewest VMs over all zones of the cluster. Default: 2."""
    max_nodes: NotRequired[int]
    """Maximum number of VMs over all zones of the cluster; quota is charged for them. Default: 6."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the VMs."""
    fallback_machine_types: NotRequired[list[str]]
    """Machine types for when machine_type is out of stock: each is a node pool of its own that starts empty and grows up to max_nodes; quota is charged for each. Example: ['n2d-standard-8']."""


class CpuPoolSpec(TypedDict):
    """A node pool without TPUs or GPUs, for work such as data preparation, evaluation, Ray heads and notebooks."""

    machine_type: NotRequired[str]
    """Machine type, without TPUs or GPUs. Default: n2-standard-8."""
    min_nodes: NotRequired[int]
    """Fewest VMs over all zones of the cluster. Default: 0."""
    max_nodes: NotRequired[int]
    """Maximum number of VMs over all zones of the cluster; quota is charged for them. Default: 6."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the VMs."""


class PathwaysPoolSpec(TypedDict):
    """The node pool for the heads of Pathways jobs. Each head has its own VM, and no other pods run there."""

    machine_type: NotRequired[str]
    """Machine type, without TPUs or GPUs. Default: n2-standard-64."""
    min_nodes: NotRequired[int]
    """Fewest VMs over all zones of the cluster. Default: 0."""
    max_nodes: NotRequired[int]
    """Maximum number of VMs over all zones of the cluster, one for each running job; quota is charged for them. Default: 1."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the VMs."""


class GpuSharing(TypedDict):
    """Sharing of one GPU by several pods. The team's quota then counts these shares of a GPU."""

    strategy: NotRequired[GpuSharingStrategy]
    """How pods share a GPU. Default: time-sharing."""
    max_clients: int
    """Pods that share one GPU, or one of its partitions. Example: 4."""


class LocalSsdSpec(TypedDict):
    """Local SSD. By default, the local SSD that the machine type includes is used for ephemeral storage."""

    count: NotRequired[int]
    """Local SSD partitions per VM; default: those that the machine type includes."""
    use: NotRequired[LocalSsdSpecUse]
    """ephemeral: for images and emptyDir volumes; block: raw block devices. Default: ephemeral."""


class TaintSpec(TypedDict):
    """A taint of the nodes. Jobs that Kueue admits tolerate the taints of their flavor."""

    value: str
    """Value of the taint. Example: vision."""
    effect: NotRequired[TaintSpecEffect]
    """What happens to pods that do not tolerate it. Default: NO_SCHEDULE."""


class Upgrades(TypedDict):
    """How GKE repairs and upgrades the VMs of a node pool. A multi-host TPU slice is always recreated as a whole."""

    auto_repair: NotRequired[bool]
    """Repair broken nodes; default: true, but false for flex-start, which does not support it."""
    auto_upgrade: NotRequired[bool]
    """Upgrade nodes; clusters in a release channel require true. Default: true."""
    strategy: NotRequired[UpgradesStrategy]
    """Upgrade strategy. Default: surge."""
    max_surge: NotRequired[int]
    """surge: extra VMs during upgrades; they need quota, and room in the reservation. Default: 0."""
    max_unavailable: NotRequired[int]
    """surge: VMs that may be down at once during upgrades. Default: 1."""


class ReservationSpec(TypedDict):
    """The reservation that provides VMs: only its name, `any` for every open reservation that matches, or fields. With `any`, VMs that match no reservation are on-demand VMs and are charged as such."""

    name: str
    """Name of the reservation; "*" is any open one that matches. Example: h100-pool."""
    project: NotRequired[str]
    """Project that shares it; default: the project of the environment."""
    block: NotRequired[str]
    """Reservation block; the node pool then needs a zone."""
    sub_block: NotRequired[str]
    """Reservation sub-block of the block."""
    chips: NotRequired[int]
    """Chips or GPUs of the whole reservation, for all pools and environments; one pool states it. Example: 64."""
    starts: NotRequired[str]
    """First day of a future reservation, which has no VMs before it. Example: 2026-12-01."""
    ends: NotRequired[str]
    """Last day of a future reservation; Google then stops the VMs. Example: 2027-02-28."""


class NodePoolSpec(TypedDict):
    """A node pool with TPUs or GPUs. Quota is charged for the maximum number of VMs that the autoscaler may create. The size of a GPU pool is in VMs (`min_nodes`, `max_nodes`). The size of a TPU pool is in slices of one `topology` (`min_slices`, `slices`). A slice with several VMs becomes a separate GKE node pool."""

    accelerator: NotRequired[str]
    """GPU that is attached to a machine type without GPUs of its own."""
    accelerator_count: NotRequired[int]
    """GPUs that are attached to each VM. Default: 1."""
    gpu_direct: NotRequired[bool]
    """Networks for GPUDirect, if the machine type supports it; without them, use one VM per job. Default: true."""
    topology_aware: NotRequired[bool]
    """Kueue picks the VMs of a job: GPUs near each other, TPU slices whole; only among existing VMs. Default: yes for GPUs of several VMs that all run from the start."""
    compact: NotRequired[bool]
    """GPU: compact placement of the VMs; changing it recreates the node pool. Default: false."""
    driver: NotRequired[NodePoolSpecDriver]
    """GPU driver that GKE installs; changing it recreates the node pool. Default: default."""
    partition: NotRequired[str]
    """GPU: size of the MIG partitions of each GPU. Example: 1g.10gb."""
    sharing: NotRequired[GpuSharing]
    """GPU: lets several pods share a GPU; default: no."""
    local_ssd: NotRequired[LocalSsdSpec]
    """Local SSD of each VM."""
    preload_images: NotRequired[list[str]]
    """Disk images with preloaded container images, as secondary boot disks. Example: ['projects/example-train/global/images/torch']."""
    max_pods: NotRequired[int]
    """Maximum number of pods per VM; default: 16 on hosts of multi-host slices, else 32."""
    taints: NotRequired[dict[str, TaintSpec]]
    """Taints of the nodes, by key, in addition to GKE's."""
    upgrades: NotRequired[Upgrades]
    """Repairs and upgrades of the nodes."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the GKE node pool that have no field here, as pulumi-gcp's Python spells them. Example: {'node_config': {'linux_node_config': {'sysctls': {'net.core.somaxconn': '4096'}}}}."""
    machine_type: str
    """Machine type. Example: a3-highgpu-8g."""
    zone: NotRequired[str]
    """Zone of the VMs; required in a regional cluster."""
    capacity: NotRequired[NodePoolSpecCapacity]
    """Provisioning model; it decides which quota is charged. Default: on-demand."""
    reservation: NotRequired[ReservationSpec]
    """Reservation that the VMs come from: its name, any, or in full."""
    topology: NotRequired[str]
    """TPU: topology of a slice, in chips; required. Example: 4x8."""
    slices: NotRequired[int]
    """TPU: maximum number of slices. Default: 1."""
    min_slices: NotRequired[int]
    """TPU: slices that are always running. Default: 0."""
    max_nodes: NotRequired[int]
    """GPU: maximum number of VMs; in a regional cluster without zone, per zone. Default: 1."""
    min_nodes: NotRequired[int]
    """GPU: VMs that are always running; in a regional cluster without zone, per zone. Default: 0."""
    min_provision_nodes: NotRequired[int]
    """GPU: VMs of min_nodes that suffice to create the pool in a stock-out; the others come later. Default: all. Leaving it out again recreates the node pool."""
    max_run_hours: NotRequired[int]
    """flex-start and queued-provisioning: hours after which a VM is deleted."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the VMs."""
    labels: NotRequired[dict[str, str]]
    """Kubernetes labels of the nodes, in addition to GKE's. Example: {'team': 'vision'}."""
    deletion_protection: NotRequired[bool]
    """false allows a change to delete or replace it, where the environment protects such resources. Default: true."""


class AutoProvisioningSpec(TypedDict):
    """Node pools that GKE creates for pending pods and deletes when they are empty, within limits of the cluster. The limits count all node pools of the cluster, including those in this file. Quota is charged for the whole limit of each accelerator. Names are GKE's own: `nvidia-h100-80gb` counts GPUs, `tpu-v5-lite-podslice` counts chips."""

    cpu: int
    """Limit for the vCPUs of all node pools together. Example: 1000."""
    memory_gb: int
    """Limit for the memory of all node pools together, in GB. Example: 8000."""
    accelerators: NotRequired[dict[str, int]]
    """Limits for the chips or GPUs of all node pools together, by accelerator type. Example: {'nvidia-h100-80gb': 16}."""
    zones: NotRequired[list[str]]
    """Zones of the node pools it creates; default: the zones of the cluster."""
    boot_disk: NotRequired[BootDiskSpec]
    """Boot disks of the nodes."""


class GkeClusterArgs(TypedDict):
    """A GKE cluster with its subnet, the service account of its nodes, and its node pools."""

    place: Place
    """Project, environment, labels, protection and keys."""
    network: NotRequired[pulumi.Input[str | None]]
    """Id of the VPC, projects/*/global/networks/*; required unless the cluster is existing. Example: projects/example-train-dev/global/networks/dev."""
    service_account: NotRequired[pulumi.Input[str | None]]
    """E-mail address of the account of the nodes; default: a new one with their roles."""
    host_project: NotRequired[str]
    """Project of a Shared VPC; default: the place's."""
    google_groups_domain: NotRequired[str]
    """Domain whose Google groups may have rights in the cluster. Example: example.com."""
    location: str
    """A region, or a zone for machines that are in one zone only."""
    existing: NotRequired[str]
    """Name of a cluster of the project that is somebody else's, to make pools and queues in. Example: shared-training."""
    subnet: NotRequired[SubnetSpec]
    """Address ranges of the cluster; required unless it is existing."""
    release_channel: NotRequired[GkeClusterReleaseChannel]
    """GKE release channel. Default: REGULAR."""
    version: NotRequired[str]
    """Lowest version of the control plane, in quotes."""
    maintenance: NotRequired[Maintenance]
    """When GKE may upgrade the cluster."""
    gpu_networks: NotRequired[GpuNetworksSpec]
    """VPCs of this stack for GPUDirect."""
    system_pool: NotRequired[SystemPoolSpec]
    """Node pool of the controllers and of GKE's own pods."""
    cpu_pools: NotRequired[dict[str, CpuPoolSpec]]
    """Node pools for pods of teams without TPUs or GPUs, by name; with one, the system pool takes none. Example: {'general': {'machine_type': 'n2-standard-16', 'max_nodes': 4}}."""
    pathways: NotRequired[PathwaysPoolSpec]
    """Node pool for heads of Pathways jobs, whose workers are TPU slices; default: none."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, by name."""
    auto_provisioning: NotRequired[AutoProvisioningSpec]
    """Limits for node pools that GKE creates by itself; default: it creates none."""
    binary_authorization: NotRequired[bool]
    """Pods start only from images that the project's Binary Authorization policy allows. Default: false."""
    fqdn_policies: NotRequired[bool]
    """Lets egress name hosts, for which docs/tenancy.md; turning it off recreates the cluster. Default: false."""
    operators: NotRequired[list[GkeClusterOperators]]
    """Add-ons of GKE: the slice controller of TPU 7x, and profiles of training."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the GKE cluster that have no field here, as pulumi-gcp's Python spells them. Example: {'cluster_autoscaling': {'autoscaling_profile': 'BALANCED'}}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace it with its content, although the environment protects it. Default: true."""


class NodePoolsArgs(TypedDict):
    """The node pools of a cluster that a `GkeCluster` does not create."""

    place: Place
    """Project, environment, labels, protection and keys."""
    cluster: pulumi.Input[str]
    """Name of the cluster in Google Cloud. Example: dev-main."""
    service_account: pulumi.Input[str]
    """E-mail address of the account of the nodes."""
    location: str
    """A region, or a zone for machines that are in one zone only."""
    system_pool: NotRequired[SystemPoolSpec]
    """Node pool of the controllers and of GKE's own pods."""
    cpu_pools: NotRequired[dict[str, CpuPoolSpec]]
    """Node pools for pods of teams without TPUs or GPUs, by name; with one, the system pool takes none. Example: {'general': {'machine_type': 'n2-standard-16', 'max_nodes': 4}}."""
    pathways: NotRequired[PathwaysPoolSpec]
    """Node pool for heads of Pathways jobs, whose workers are TPU slices; default: none."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, by name."""
    gpu_networks: NotRequired[GpuNetworksSpec]
    """VPCs of this stack for GPUDirect."""


class ExportSpec(TypedDict):
    """Clients that may mount the share, and their access. The first entry that contains a client's address applies."""

    ranges: list[str]
    """Address ranges of the clients, such as the nodes' ranges of clusters. Example: ['10.12.0.0/20']."""
    access: NotRequired[ExportSpecAccess]
    """What they may do. Default: read-write."""
    squash: NotRequired[ExportSpecSquash]
    """root turns the clients' root into the anonymous user; nodes create the folders of teams as root. Default: none."""
    anonymous_id: NotRequired[int]
    """User and group id of the anonymous user if root is squashed; default: 65534. Example: 65534."""


class BackupScheduleSpec(TypedDict):
    """Scheduled backups by a plan of Backup and DR. By default, one backup each day. Google enables Backup and DR for Filestore in a project on request (its page on backup plans, read 2026-11-22)."""

    every_hours: NotRequired[int]
    """Hours between backups of a day."""
    weekdays: NotRequired[list[BackupScheduleSpecWeekdays]]
    """Days with a backup; default: each day."""
    start_hour: NotRequired[int]
    """Hour of the day from which backups start. Default: 0."""
    end_hour: NotRequired[int]
    """Hour of the day after which none starts. Default: 6."""
    time_zone: NotRequired[str]
    """Time zone of the hours, an IANA name. Default: UTC. Example: Europe/Zurich."""
    keep_days: NotRequired[int]
    """Days that a backup is kept. Default: 30."""
    locked_days: NotRequired[int]
    """Days during which nobody can delete a backup. Default: 1."""


class FilestoreInstanceArgs(TypedDict):
    """A Filestore instance with one share, its snapshots and its backups."""

    place: Place
    """Project, environment, labels, protection and keys."""
    network: pulumi.Input[str]
    """Name or id of the VPC. Example: projects/example-train-dev/global/networks/dev."""
    services_range: NotRequired[pulumi.Input[str | None]]
    """Name of the VPC's range for private service access, if the instance joins by it. Example: dev-services."""
    location: str
    """A zone for zonal tiers, a region for REGIONAL and ENTERPRISE."""
    tier: NotRequired[str]
    """Service tier. Default: ZONAL."""
    capacity_gib: int
    """Capacity in GiB. Example: 1024."""
    share: NotRequired[str]
    """Name of the file share: lower-case letters, digits and _, at most 16. Default: share. Example: share."""
    protocol: NotRequired[str]
    """NFS_V3 or NFS_V4_1; not every tier supports both. Default: NFS_V3. Example: NFS_V3."""
    reserved_range: NotRequired[str]
    """Its address range in the VPC, free of subnets, read at creation; default: Google Cloud picks one. Example: 10.20.32.0/24."""
    connection: NotRequired[FilestoreInstanceConnection]
    """How it joins the VPC; private-service-access takes an address of private_services_range. Default: direct-peering."""
    team: NotRequired[str]
    """Name of the one team that may mount it; default: any team, each held to a folder of its name."""
    exports: NotRequired[list[ExportSpec]]
    """Who may mount it; default: whoever reaches its address, also as root."""
    iops: NotRequired[int]
    """IOPS in total, paid for apart from the capacity."""
    iops_per_tib: NotRequired[int]
    """IOPS per TiB, paid for apart from the capacity."""
    snapshots: NotRequired[list[str]]
    """Snapshots by name: a new name takes one, a removed name deletes it."""
    backups: NotRequired[BackupScheduleSpec]
    """Backups on a schedule; default: none."""
    restore_from: NotRequired[str]
    """Backup, of Filestore or of a backup vault, that a new instance starts with. Example: projects/example-train-dev/locations/us-central1/backups/before-move."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the instance that have no field here, as pulumi-gcp's Python spells them. Example: {'description': 'Home directories'}."""
    deletion_protection: NotRequired[bool]
    """false allows a change to delete or replace it, where the environment protects such resources. Default: true."""


class ChartOverride(TypedDict):
    """Another version or source for a Helm chart, such as a mirror that a private cluster can reach."""

    version: NotRequired[str]
    """Version of the chart, in quotes; default: the catalogue's."""
    chart: NotRequired[str]
    """An OCI reference, a path, or a name in the repository; default: the catalogue's. Example: oci://us-docker.pkg.dev/example-train/charts/kueue."""
    repository: NotRequired[str]
    """URL of the chart repository. Example: https://charts.example.com."""
    digest: NotRequired[str]
    """Digest of the chart, which has to be an OCI reference: no other package of that version is taken. Example: sha256:0000000000000000000000000000000000000000000000000000000000000000."""
    ready_minutes: NotRequired[int]
    """Minutes until the chart's pods have to be ready; then a first installation is removed, and an upgrade goes back to the version before. Default: 10."""


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
    """Teams borrow in proportion to their weights. Default: true."""
    location: str
    """A region, or a zone for machines that are in one zone only."""
    system_pool: NotRequired[SystemPoolSpec]
    """Node pool of the controllers and of GKE's own pods."""
    cpu_pools: NotRequired[dict[str, CpuPoolSpec]]
    """Node pools for pods of teams without TPUs or GPUs, by name; with one, the system pool takes none. Example: {'general': {'machine_type': 'n2-standard-16', 'max_nodes': 4}}."""
    pathways: NotRequired[PathwaysPoolSpec]
    """Node pool for heads of Pathways jobs, whose workers are TPU slices; default: none."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, by name."""
    serving: NotRequired[bool]
    """Teams may have model servers here: Kueue queues their pods, and autoscalers see their metrics. Default: false."""
    operators: NotRequired[list[KueueOperators]]
    """Software for other kinds of jobs; slice-controller and ml-diagnostics are GKE's own add-ons. Example: ['ray', 'trainer']."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace it with its content, although the environment protects it. Default: true."""


class PrometheusArgs(TypedDict):
    """The collection of a controller's metrics by Managed Service for Prometheus."""

    place: Place
    """Project, environment, labels, protection and keys."""
    controller: PrometheusController
    """Controller whose metrics are scraped."""


class Share(TypedDict):
    """A team's or a cohort's share of a ResourceFlavor in a cluster, in chips or GPUs. Members share a cohort's."""

    nominal_quota: int
    """Nominal quota: chips or GPUs that the team can always get back. Example: 16."""
    borrowing_limit: NotRequired[int]
    """Maximum that the team may borrow; default: no limit."""
    lending_limit: NotRequired[int]
    """Maximum that other teams may borrow from it; default: all of it."""


class CohortSpec(TypedDict):
    """Teams that borrow from each other first, such as a department. A cohort can have its own quota."""

    parent: NotRequired[str]
    """Parent cohort; default: the cluster's, which contains all others."""
    weight: NotRequired[int]
    """Weight in fair sharing: 2 borrows twice as much as 1; 0 borrows what nobody wants. Default: 1."""
    shares: NotRequired[dict[str, dict[str, Share]]]
    """Quota that no team of it has been promised and all may borrow, by cluster and flavor. Example: {'us-central1': {'h100-reservation': {'nominal_quota': 16}}}."""


class ResourceFlavorsArgs(TypedDict):
    """The ResourceFlavors of a cluster's node pools with their Topologies, job priorities, and cohorts of teams."""

    place: Place
    """Project, environment, labels, protection and keys."""
    cluster: str
    """Name of the GkeCluster. Example: main."""
    priorities: NotRequired[dict[str, int]]
    """Priorities of jobs, by name; higher first. Example: {'high': 1000}."""
    cohorts: NotRequired[dict[str, CohortSpec]]
    """Cohorts of teams, by name; default: only the cluster's."""
    location: str
    """A region, or a zone for machines that are in one zone only."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, by name."""


class TeamPlace(TypedDict):
    """The project, environment, team, labels, protection and keys that all resources of a team share."""

    project: str
    """Id of a Google Cloud project. Example: example-train-dev."""
    environment: str
    """Environment: the start of names in Google Cloud. Example: dev."""
    team: str
    """Team that the resources are for. Example: vision."""
    labels: NotRequired[dict[str, str]]
    """Labels of every resource, in addition to environment, team and managed-by. Example: {'cost-center': 'research'}."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete clusters, node pools, buckets and instances. Default: true."""
    keys: NotRequired[dict[str, str]]
    """Keys of Cloud KMS that encrypt data, by region; default: Google's own."""


class TeamNamespaceArgs(TypedDict):
    """A team's namespace, with its members' roles, its jobs' account, and a network policy against other teams."""

    place: TeamPlace
    """Project, environment, team, labels, protection and keys."""
    members: list[str]
    """IAM members of the team. Example: ['group:vision@example.com']."""
    google_service_account: pulumi.Input[str]
    """E-mail address of the account in Google Cloud that jobs act as. Example: dev-vision-jobs@example-train-dev.iam.gserviceaccount.com."""
    quota: NotRequired[dict[str, str]]
    """Limits of the namespace, the hard part of a ResourceQuota; default: nothing bounds its objects. Example: {'requests.nvidia.com/gpu': '16'}."""
    egress: NotRequired[dict[str, Any]]
    """Destinations of the team's pods, the spec of a NetworkPolicy; default: all. Example: {'policyTypes': ['Egress']}."""


class Fallback(TypedDict):
    """The order in which Kueue tries flavors for a job. It uses the first with enough quota. The order is a list because the engine sorts the keys of a mapping. The order of shares in a file has no effect."""

    order: NotRequired[dict[str, list[str]]]
    """Flavors of each cluster in the order in which Kueue tries them; the others follow. Example: {'us-central1': ['h100-reservation', 'h100-spot']}."""
    when_can_borrow: NotRequired[FallbackWhenCanBorrow]
    """If a job fits by borrowing: MayStopSearch borrows, TryNextFlavor tries the next flavor first. Default: MayStopSearch."""
    when_can_preempt: NotRequired[FallbackWhenCanBorrow]
    """If a job fits by preemption: MayStopSearch preempts, TryNextFlavor tries the next flavor first. Default: TryNextFlavor."""


class Preemption(TypedDict):
    """The running jobs that a waiting job of the team may stop."""

    within_queue: NotRequired[PreemptionWithinQueue]
    """Jobs of the team itself. Default: LowerPriority."""
    reclaim: NotRequired[PreemptionReclaim]
    """Jobs of others that use what the team has lent. Default: Any."""
    borrow_within_cohort: NotRequired[PreemptionBorrowWithinCohort]
    """Jobs of others, so that the team borrows in their place; only without fair sharing. Default: Never."""


class TeamQueuesArgs(TypedDict):
    """A team's ClusterQueue in one cluster, and the LocalQueues of its namespace."""

    place: TeamPlace
    """Project, environment, team, labels, protection and keys."""
    cluster: str
    """Name of the GkeCluster. Example: main."""
    namespace: pulumi.Input[str]
    """Namespace of the team. Example: vision."""
    shares: dict[str, Share]
    """Shares of the team, by flavor. Example: {'h100': {'nominal_quota': 16}}."""
    fallback: NotRequired[Fallback]
    """The order in which Kueue tries flavors."""
    cohort: NotRequired[str]
    """Cohort in which the team borrows; default: the cluster's. Example: research."""
    weight: NotRequired[int]
    """Weight in fair sharing: 2 borrows twice as much as 1; 0 borrows what nobody wants. Default: 1."""
    preemption: NotRequired[Preemption]
    """Whose running jobs the team's jobs may stop."""
    location: str
    """A region, or a zone for machines that are in one zone only."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, by name."""


class TeamBucketArgs(TypedDict):
    """A team's Cloud Storage bucket. Members can read it, and jobs can write to it."""

    place: TeamPlace
    """Project, environment, team, labels, protection and keys."""
    members: NotRequired[list[str]]
    """IAM members of the team, who read and add objects. Example: ['group:v@example.com']."""
    jobs: pulumi.Input[str]
    """E-mail address of the account of the team's jobs, which reads and writes objects. Example: dev-vision-jobs@example-train-dev.iam.gserviceaccount.com."""
    location: str
    """Region of the bucket."""
    storage_class: NotRequired[TeamBucketStorageClass]
    """Storage class. Default: STANDARD."""
    size_gib: NotRequired[int]
    """Expected GiB, to estimate its cost; default: no estimate."""
    delete_after_days: NotRequired[int]
    """Days after which objects are deleted; default: never."""
    versioning: NotRequired[bool]
    """Keep old versions of objects. Default: false."""
    hierarchical_namespace: NotRequired[bool]
    """Real folders, so that renaming one is a single operation; changing it replaces the bucket. Default: false."""
    members_write: NotRequired[bool]
    """Lets members overwrite and delete objects; otherwise they only read and add objects. Default: false."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the bucket that have no field here, as pulumi-gcp's Python spells them. Example: {'logging': {'log_bucket': 'example-train-access-logs'}}."""


class GatewaySpec(TypedDict):
    """Access from the internet: a load balancer with Identity-Aware Proxy, which admits only the members."""

    address: str
    """Reserved global address, to which the host's DNS record leads, by name. Example: notebooks."""
    certificate_map: str
    """Certificate map of Certificate Manager with the host's certificate, by name. Example: notebooks."""
    members: list[str]
    """IAM members that Identity-Aware Proxy lets in. Example: ['group:ml@example.com']."""


class OauthSecret(TypedDict):
    """The location of the OAuth client secret. The secret itself is never in a stack file or a state."""

    name: NotRequired[str]
    """Name of the Secret in the hub's namespace, or in Secret Manager. Default: jupyterhub-oauth. Example: vision."""
    key: NotRequired[str]
    """Key of a Kubernetes Secret that holds the client secret. Default: client-secret."""
    secret_manager: NotRequired[bool]
    """Keep it in Secret Manager, where you add its value; false: a Secret that you create by hand. Default: false."""


class NotebookTeam(TypedDict):
    """Members of a team whose notebooks run in the team's namespace and queue, and use its share of the flavors."""

    users: list[str]
    """Accounts that may start them. Example: ['ada@example.com']."""
    pools: list[str]
    """Node pools of this cluster that they may run on. Example: ['a100']."""


class Notebooks(TypedDict):
    """JupyterHub in a cluster, with home directories on Filestore, and a profile for each pool in `pools`."""

    filestore: str
    """Filestore instance of the environment that holds the home directories. Example: homes."""
    host: NotRequired[str]
    """Host name at which browsers reach the hub; default: localhost, by port-forward."""
    gateway: NotRequired[GatewaySpec]
    """A load balancer for host; default: none, so that host leads to what you put there."""
    oauth_client_id: str
    """OAuth client id of your Google sign-in. Example: notebooks.apps.example.com."""
    oauth_secret: NotRequired[OauthSecret]
    """Where the OAuth client secret is."""
    allowed_domain: str
    """Domain whose accounts may sign in. Example: example.com."""
    pools: NotRequired[list[str]]
    """Node pools of this cluster that notebooks may take hosts of; no team is promised what they hold. Example: ['gpu-notebooks']."""
    teams: NotRequired[dict[str, NotebookTeam]]
    """Teams whose people have notebooks on the team's own share, in its queue, below its jobs. Example: {'vision': {'users': ['ada@example.com'], 'pools': ['a100']}}."""
    buckets: NotRequired[bool]
    """Gives everybody's notebooks a service account that reads buckets of data sets for all teams. Default: false."""
    idle_minutes: NotRequired[int]
    """Minutes after which a notebook that does nothing ends. Default: 60."""
    image: NotRequired[str]
    """Notebook image with its tag; default: the one in the catalogue. Example: us-docker.pkg.dev/example-train/images/notebook:2026-11."""
    home_gib: NotRequired[int]
    """Size of the volume claim for all home directories, in GiB. Default: 512."""


class JupyterHubArgs(TypedDict):
    """JupyterHub: notebooks for everyone in a domain."""

    place: Place
    """Project, environment, labels, protection and keys."""
    cluster: str
    """Name of the GkeCluster. Example: main."""
    home_claim: pulumi.Input[str]
    """PersistentVolumeClaim in the hub's namespace, jupyterhub, that holds all homes. Example: homes."""
    chart: NotRequired[ChartOverride]
    """Another version or source of the chart."""
    location: str
    """A region, or a zone for machines that are in one zone only."""
    node_pools: NotRequired[dict[str, NodePoolSpec]]
    """Node pools with TPUs or GPUs, by name."""
    notebooks: Notebooks
    """The hub; the name of its Filestore instance is not read here."""
    deletion_protection: NotRequired[bool]
    """false lets a change delete or replace it with its content, although the environment protects it. Default: true."""


class VertexBootDisk(TypedDict):
    """The boot disk of a VM of Vertex AI. Both fields are always sent to Vertex AI, since sources disagree on its defaults, which differ from those of GKE."""

    type: NotRequired[str]
    """Disk type. Default: pd-ssd."""
    size_gb: NotRequired[int]
    """Size in GB. Default: 100."""


class ResourcePoolSpec(TypedDict):
    """Identical VMs of a persistent resource, with the same machine type and boot disk."""

    machine_type: str
    """Machine type; its GPUs come with it. Example: a2-highgpu-1g."""
    accelerator: NotRequired[str]
    """GPU that is attached to an N1 machine type; default: none. Example: t4."""
    accelerator_count: NotRequired[int]
    """Number of attached GPUs. Default: 1."""
    replicas: NotRequired[int]
    """Number of VMs; with max_replicas, the minimum. Default: 1."""
    max_replicas: NotRequired[int]
    """Maximum number of VMs; turns autoscaling on."""
    boot_disk: NotRequired[VertexBootDisk]
    """Boot disks of the VMs."""


class PersistentResourceArgs(TypedDict):
    """Machines that Vertex AI keeps running, and bills, between training jobs."""

    place: TeamPlace
    """Project, environment, team, labels, protection and keys."""
    network_attachment: NotRequired[pulumi.Input[str | None]]
    """Network attachment through which its VMs reach a VPC; default: none. Example: projects/example-train/regions/us-central1/networkAttachments/vertex."""
    machine_type: str
    """Machine type; its GPUs come with it. Example: a2-highgpu-1g."""
    accelerator: NotRequired[str]
    """GPU that is attached to an N1 machine type; default: none. Example: t4."""
    accelerator_count: NotRequired[int]
    """Number of attached GPUs. Default: 1."""
    replicas: NotRequired[int]
    """Number of VMs; with max_replicas, the minimum. Default: 1."""
    max_replicas: NotRequired[int]
    """Maximum number of VMs; turns autoscaling on."""
    boot_disk: NotRequired[VertexBootDisk]
    """Boot disks of the VMs."""
    region: str
    """Region of Vertex AI."""
    more_pools: NotRequired[dict[str, ResourcePoolSpec]]
    """Further pools, by name; a job runs on the pools with its machines and disks."""
    provider_inputs: NotRequired[dict[str, Any]]
    """Inputs of the persistent resource that have no field here, as pulumi-gcp's Python spells them. Example: {'resource_pools': [{'machine_spec': {'min_cpu_platform': 'Intel Ice Lake'}}]}."""
    deletion_protection: NotRequired[bool]
    """false allows a change to delete or replace it, where the environment protects such resources. Default: true."""
