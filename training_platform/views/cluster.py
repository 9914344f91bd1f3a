"""Views of clusters, auto-provisioning, compute classes, placement policies, VMs and reservations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import region_of
from training_platform.catalog.types import ChargedCapacity, MachineType
from training_platform.config.reading.finding import Path
from training_platform.resources import resource_types
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.views import fields, inputs
from training_platform.views.inputs import at, keys, rows
from training_platform.views.node_pool import NodePoolView
from training_platform.views.view import Settings, View
from training_platform.views.whole_stack import Program

# Inputs that an Autopilot cluster decides itself; the provider refuses them for it.
_AUTOPILOT_DECIDES = (
    "clusterAutoscaling.enabled", "clusterAutoscaling.resourceLimits", "networkPolicy", "removeDefaultNodePool",
    "defaultMaxPodsPerNode", "enableShieldedNodes", "nodePools", "enableIntranodeVisibility",
    "addonsConfig.networkPolicyConfig", "addonsConfig.dnsCacheConfig", "addonsConfig.statefulHaConfig",
    "binaryAuthorization.enabled",
)  # fmt: skip
DEFAULT_POOL = "default-pool"
_WINDOW = "maintenancePolicy.recurringWindow"
_AUTOSCALING = "clusterAutoscaling"
_DEFAULTS = f"{_AUTOSCALING}.autoProvisioningDefaults"


class Window(NamedTuple):
    """A recurring maintenance window: times in GKE's format, ``2026-01-03T06:00:00Z``, and an RRULE."""

    start: str
    end: str
    recurrence: str


class Exclusion(NamedTuple):
    """A period without upgrades of type ``scope``. Without an end time, it lasts until the version's end of support."""

    name: str
    start: str
    end: str | None
    scope: str


def _exclusion(row: Any) -> Exclusion:
    name, start, end = (inputs.as_text(at(row, (key,))) for key in ("exclusionName", "startTime", "endTime"))
    scope = inputs.as_text(at(row, ("exclusionOptions", "scope")))
    return Exclusion(name, start, end=end, scope="NO_UPGRADES" if scope is None else scope)


class ClusterView(View):
    """A GKE cluster. ``public_endpoint`` says whether its control plane has a public address.

    - ``version`` is the minimum version of its control plane, if it is set.
    - ``pods_range`` is the name of the subnet's secondary range for pods.
    - ``max_pods`` is the number of pods per node for pools that do not set it.
    - ``clashing`` lists the inputs that an Autopilot cluster does not support.
    - ``window`` is None if GKE may upgrade at any time.
    """

    TYPES = (resource_types.CLUSTER,)

    project = fields.project()
    cluster = fields.text("name", place="")
    location = fields.located("location")
    private_nodes = fields.flag("privateClusterConfig.enablePrivateNodes", place="")
    deletion_protection = fields.flag("deletionProtection", default=True)  # the provider's default
    labels = fields.labels("resourceLabels")
    version = fields.text("minMasterVersion")
    release_channel = fields.text("releaseChannel.channel")
    network = fields.reference("network", resource_types.NETWORK, place="")
    subnetwork = fields.reference("subnetwork", resource_types.SUBNETWORK)
    pods_range = fields.text("ipAllocationPolicy.clusterSecondaryRangeName", place="subnet.pods")
    services_range = fields.text("ipAllocationPolicy.servicesSecondaryRangeName", place="subnet.services")
    max_pods = fields.whole("defaultMaxPodsPerNode", place="")
    datapath = fields.text("datapathProvider", place="")
    networking_mode = fields.text("networkingMode", place="")
    multi_networking = fields.flag("enableMultiNetworking", default=False, place="")
    network_policy = fields.flag("networkPolicy.enabled", default=False, place="")
    dataplane_policies = fields.any_flag("enableFqdnNetworkPolicy", "enableCiliumClusterwideNetworkPolicy", place="")
    slice_controller = fields.flag("addonsConfig.sliceControllerConfig.enabled", default=False, place="operators")
    autopilot = fields.flag("enableAutopilot", default=False, place="")
    alpha = fields.flag("enableKubernetesAlpha", default=False, place="")
    gateway = fields.text("gatewayApiConfig.channel", place="")
    fuse_driver = fields.flag("addonsConfig.gcsFuseCsiDriverConfig.enabled", default=False, place="")
    stateful_ha = fields.flag("addonsConfig.statefulHaConfig.enabled", default=False, place="")
    disk_driver = fields.flag("addonsConfig.gcePersistentDiskCsiDriverConfig.enabled", default=True, place="")
    zones = fields.texts("nodeLocations", place="")
    node_version = fields.text("nodeVersion", place="")
    remove_default_pool = fields.flag("removeDefaultNodePool", default=False, place="")
    initial_nodes = fields.whole("initialNodeCount", place="")
    pools_inside = fields.count("nodePools", place="")
    default_machine = fields.text("nodeConfig.machineType", place="")
    workload_pool = fields.text("workloadIdentityConfig.workloadPool", place="")
    tags = fields.count("nodeConfig.resourceManagerTags", place="")

    exclusions = fields.entries("maintenancePolicy.maintenanceExclusions", _exclusion, place="maintenance.exclusions")

    @fields.field("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled", place="")
    def public_endpoint(self) -> bool:
        """Return True if the control plane has a public address."""
        enabled = inputs.as_flag(self.read("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled"))
        private = inputs.as_flag(self.read("privateClusterConfig.enablePrivateEndpoint"))
        if enabled is False or private is True:
            return False
        # Neither switches it off: it has one, unless one of the inputs is unknown, which ``known`` raises.
        inputs.known(enabled)
        inputs.known(private)
        return True

    @fields.field("nodePools", place="")
    def inline_pools(self) -> int:
        """The number of pools in the cluster's inputs. A default pool that is removed is not counted."""
        names = [inputs.known(at(row, ("name",))) for row in inputs.rows(inputs.known(self.read("nodePools")))]
        return len([name for name in names if not (self.remove_default_pool and name in (None, DEFAULT_POOL))])

    @fields.field(*_AUTOPILOT_DECIDES, place="")
    def clashing(self) -> tuple[str, ...]:
        """The inputs that an Autopilot cluster does not support."""
        values = {name: inputs.known(self.read(name)) for name in _AUTOPILOT_DECIDES}
        return tuple(name for name, value in values.items() if value not in (None, False))

    @fields.field(_WINDOW, place="maintenance")
    def window(self) -> Window | None:
        """The maintenance window, or None if GKE may upgrade at any time."""
        block = inputs.known(self.read(_WINDOW))
        if block is None:
            return None
        start, end, recurrence = (
            inputs.known(inputs.as_text(at(block, (name,)))) or "" for name in ("startTime", "endTime", "recurrence")
        )
        return Window(start, end, recurrence=recurrence)


_LIMITS = {"cpu": "cpu", "memory": "memory_gb"}


class ResourceLimit(NamedTuple):
    """A limit of node auto-provisioning for all pools of a cluster together: on vCPUs, GB of memory, chips or GPUs."""

    resource: str
    maximum: int | None


class AutoProvisioningView(Settings):
    """Node auto-provisioning in a cluster. ``written`` says whether the program sets defaults for the pools."""

    TYPES = (resource_types.CLUSTER,)

    zones = fields.texts(f"{_AUTOSCALING}.autoProvisioningLocations", place="auto_provisioning.zones")
    written = fields.written(_DEFAULTS)
    disk_type = fields.text(f"{_DEFAULTS}.diskType", place="auto_provisioning.boot_disk.type")
    disk_gb = fields.whole(f"{_DEFAULTS}.diskSize", place="auto_provisioning.boot_disk.size_gb")
    scopes = fields.texts(f"{_DEFAULTS}.oauthScopes", place="auto_provisioning")
    service_account = fields.reference(
        f"{_DEFAULTS}.serviceAccount", resource_types.SERVICE_ACCOUNT, place="auto_provisioning"
    )
    image_type = fields.text(f"{_DEFAULTS}.imageType", place="auto_provisioning")
    strategy = fields.text(f"{_DEFAULTS}.upgradeSettings.strategy", place="auto_provisioning")
    max_surge = fields.whole(f"{_DEFAULTS}.upgradeSettings.maxSurge", place="auto_provisioning")
    max_unavailable = fields.whole(f"{_DEFAULTS}.upgradeSettings.maxUnavailable", place="auto_provisioning")

    limits = fields.entries(
        f"{_AUTOSCALING}.resourceLimits",
        lambda row: ResourceLimit(inputs.as_text(at(row, ("resourceType",))), inputs.as_whole(at(row, ("maximum",)))),
        place="auto_provisioning",
    )

    @classmethod
    def of(cls, planned: StackResource, origin: Path) -> Iterator[Self]:
        """Yield the view if auto-provisioning is enabled or may be enabled."""
        enabled = inputs.as_flag(at(planned.inputs, (_AUTOSCALING, "enabled")))
        return iter(()) if enabled in (None, False) else super().of(planned, origin)

    @fields.field()
    def cluster(self) -> ClusterView:
        """The cluster to which the auto-provisioning belongs."""
        return ClusterView(
            stack=self.stack, type=self.type, name=self.name, origin=self.origin, inputs=self.inputs,
            options=self.options,
        )  # fmt: skip

    def path(self, name: str) -> Path:
        """Return the path of a field. A limit is named after its resource and has its own line."""
        if name not in _LIMITS and self.known("limits") and any(limit.resource == name for limit in self.limits):
            return (*super().path("limits"), "accelerators", name)
        return (*super().path("limits"), _LIMITS[name]) if name in _LIMITS else super().path(name)

    def spelled(self, name: str) -> str:
        """Return the name of a field's input. A limit is a list entry, and the version is an input of the cluster."""
        limits = "minMasterVersion" if name == "version" else f"{_AUTOSCALING}.resourceLimits"
        return super().spelled(name) or limits

    def limit(self, resource: str) -> int | None:
        """Return the limit of a resource, or None."""
        return next((limit.maximum for limit in self.limits if limit.resource == resource), None)

    def accelerators(self) -> Iterator[tuple[ResourceLimit, list[MachineType]]]:
        """Yield every limit above 0 for a known accelerator, with the machines that have this accelerator."""
        for limit in self.limits:
            machines = [
                row for row in MACHINE_TYPES.values() if row.accelerator and row.accelerator.gke_label == limit.resource
            ]
            if machines and limit.maximum != 0:
                yield limit, machines


def cluster_of(pool: NodePoolView, program: Program) -> ClusterView | None:
    """Return a pool's cluster, or None if another program creates it.

    Raises NeedsUnknown if the cluster's name is unknown and the program does not have exactly one cluster.
    """
    clusters = program.all(ClusterView)
    if not pool.known("cluster") and len(clusters) == 1:
        return clusters[0]
    return program.once(_by_name).get(pool.cluster)


def pools_of(cluster: ClusterView, program: Program) -> list[NodePoolView]:
    """Return the node pools that the program creates in a cluster."""
    return program.once(_pools).get(cluster.name, [])


def neighbours(pool: NodePoolView, program: Program) -> list[NodePoolView]:
    """Return all node pools in a pool's cluster, including the pool. Another program may have created the cluster."""
    cluster = cluster_of(pool, program)
    if cluster is not None:
        return pools_of(cluster, program)
    return [other for other in program.all(NodePoolView) if other.known("cluster") and other.cluster == pool.cluster]


def regions_of(program: Program) -> set[str]:
    """Return the regions of all clusters, and of all pools whose cluster another program creates."""
    views: list[ClusterView | NodePoolView] = [*program.all(ClusterView), *program.all(NodePoolView)]
    return {region_of(view.location) for view in views if view.known("location") and view.location}


def version_of(pool: NodePoolView, program: Program) -> str | None:
    """Return the version set for a pool's nodes, or else the minimum version of its cluster; None if neither is set."""
    if pool.version is not None:
        return pool.version
    cluster = cluster_of(pool, program)
    return cluster.version if cluster else None


def _by_name(program: Program) -> dict[str | None, ClusterView]:
    """Return clusters keyed by both their name in Google Cloud and their name in the program; pools may use either."""
    clusters = program.all(ClusterView)
    by_cloud_name = {cluster.cluster: cluster for cluster in clusters if cluster.known("cluster")}
    return {**{cluster.name: cluster for cluster in clusters}, **by_cloud_name}


def _pools(program: Program) -> dict[str, list[NodePoolView]]:
    pools: dict[str, list[NodePoolView]] = defaultdict(list)
    only = len(program.all(ClusterView)) == 1
    for pool in program.all(NodePoolView):
        if (only or pool.known("cluster")) and (cluster := cluster_of(pool, program)):
            pools[cluster.name].append(pool)
    return pools


ONLY_RESERVED = ("Specific", "AnyThenFail")  # affinities that never fall back to on-demand VMs


class ClassPriority(NamedTuple):
    """One priority of a compute class. ``written`` lists the fields that are set.

    ``reservations`` is the number of named reservations. ``accelerator`` is GKE's name of the TPU or GPU type.
    ``wait_seconds`` is how long GKE tries this priority before the next one. ``zones`` is the number of zones in its
    location or in the class's default location.
    """

    written: tuple[str, ...]
    node_pools: tuple[str, ...]
    machine_type: str | None
    spot: bool
    flex_start: bool
    affinity: str | None
    reservations: int
    tpu: bool
    accelerator: str | None
    wait_seconds: int | None
    zones: int = 0

    @property
    def machine(self) -> MachineType | None:
        """The machine type's entry in the catalogue."""
        return MACHINE_TYPES.get(self.machine_type or "")

    @property
    def capacity(self) -> ChargedCapacity:
        """The provisioning model of VMs that GKE creates for the priority."""
        if self.flex_start:
            return "flex-start"
        if self.spot:
            return "spot"
        return "reservation" if self.affinity in ONLY_RESERVED else "on-demand"


class ComputeClassView(Settings):
    """A custom compute class. ``makes_pools`` says whether GKE creates pools for it."""

    TYPES = (resource_types.COMPUTE_CLASS,)

    compute_class = fields.text("metadata.name")
    makes_pools = fields.flag("spec.nodePoolAutoCreation.enabled", default=False)

    @fields.field("spec.priorities")
    def priorities(self) -> tuple[ClassPriority, ...]:
        """The priorities in order. The class's default zone applies to a priority without a location."""
        zones = inputs.as_count(self.read("spec.priorityDefaults.location.zones"))
        priorities = tuple(_priority(row, zones) for row in rows(self.read("spec.priorities")))
        if any(part is UNKNOWN for priority in priorities for part in priority):
            raise inputs.NotKnownError
        return priorities


def _priority(row: Any, zones: Any) -> ClassPriority:
    def value(path: str) -> Any:
        return at(row, keys(path))

    tpu = inputs.as_text(value("tpu.type"))
    elsewhere = value("location") is not None or value("nodepools") is not None
    return ClassPriority(
        written=tuple(sorted(row)) if isinstance(row, dict) else UNKNOWN,
        node_pools=inputs.as_texts(value("nodepools")),
        machine_type=inputs.as_text(value("machineType")),
        spot=inputs.as_flag(value("spot")) or False,
        flex_start=inputs.as_flag(value("flexStart.enabled")) or False,
        affinity=inputs.as_text(value("reservations.affinity")),
        reservations=inputs.as_count(value("reservations.specific")),
        tpu=value("tpu") is not None,
        accelerator=inputs.as_text(value("gpu.type")) if tpu is None else tpu,
        wait_seconds=inputs.as_whole(value("capacityCheckWaitTimeSeconds")),
        zones=inputs.as_count(value("location.zones")) if elsewhere else zones,
    )


_WORKLOAD = "workloadPolicy"
_GROUP = "groupPlacementPolicy"
_VMS = "specificReservation.instanceProperties"


class ResourcePolicyView(Settings):
    """A Compute Engine resource policy that places VMs."""

    TYPES = (resource_types.RESOURCE_POLICY,)

    project = fields.project()
    region = fields.located("region")
    policy = fields.text("name")
    workload = fields.written(_WORKLOAD)
    workload_type = fields.text(f"{_WORKLOAD}.type")
    topology = fields.text(f"{_WORKLOAD}.acceleratorTopology")
    topology_mode = fields.text(f"{_WORKLOAD}.acceleratorTopologyMode")
    topology_distance = fields.text(f"{_WORKLOAD}.maxTopologyDistance")
    group = fields.written(_GROUP)
    max_distance = fields.whole(f"{_GROUP}.maxDistance")
    gpu_topology = fields.text(f"{_GROUP}.gpuTopology")


class VmView(Settings):
    """A Compute Engine VM, an instance template, or the VMs of a reservation, with their listed GPUs and local SSDs."""

    TYPES = (resource_types.INSTANCE, resource_types.INSTANCE_TEMPLATE, resource_types.RESERVATION)

    machine_type = fields.name("machineType", f"{_VMS}.machineType")
    accelerator_type = fields.name("guestAccelerators.type", f"{_VMS}.guestAccelerators.acceleratorType")
    accelerator_count = fields.whole("guestAccelerators.count", f"{_VMS}.guestAccelerators.acceleratorCount")
    on_host_maintenance = fields.text("scheduling.onHostMaintenance")

    @fields.field("scratchDisks", f"{_VMS}.localSsds", "disks.type")
    def local_ssds(self) -> int:
        """The number of local SSDs in the inputs; in a template, the number of disks of type SCRATCH."""
        listed = [*rows(self.read("scratchDisks")), *rows(self.read(f"{_VMS}.localSsds"))]
        disks = rows(self.read("disks")) if self.type == resource_types.INSTANCE_TEMPLATE else ()
        listed += [disk for disk in disks if inputs.known(inputs.as_text(at(disk, ("type",)))) == "SCRATCH"]
        for row in listed:
            inputs.known(row)  # raises for an unknown one: nobody can count them
        return len(listed)

    @property
    def machine(self) -> MachineType | None:
        """The machine type's entry in the catalogue."""
        return MACHINE_TYPES.get(self.machine_type or "")


class ReservationView(Settings):
    """A reservation of VMs in one zone, with the ``local_ssds`` and GPUs that it lists for each VM."""

    TYPES = (resource_types.RESERVATION,)

    project = fields.project()
    zone = fields.located("zone")
    reservation = fields.text("name")
    machine_type = fields.text(f"{_VMS}.machineType")
    accelerator_type = fields.text(f"{_VMS}.guestAccelerators.acceleratorType")
    accelerator_count = fields.whole(f"{_VMS}.guestAccelerators.acceleratorCount")
    min_cpu_platform = fields.text(f"{_VMS}.minCpuPlatform")
    local_ssds = fields.count(f"{_VMS}.localSsds")
    count = fields.whole("specificReservation.count")
    specific = fields.flag("specificReservationRequired", default=False)
