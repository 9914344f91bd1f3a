"""Views of GKE node pools. Names of sizes end in their unit; counts are numbers of VMs or GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import with_gpus
from training_platform.catalog.locations import is_zone
from training_platform.catalog.types import ChargedCapacity, MachineType
from training_platform.config.expansion import ZONES_OF_A_REGIONAL_CLUSTER
from training_platform.config.reading.finding import Path
from training_platform.resources.resource_types import CLUSTER, NODE_POOL, SERVICE_ACCOUNT
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.views import fields
from training_platform.views import inputs as of
from training_platform.views.inputs import at, keys, rows
from training_platform.views.view import Field, View

_ATTACHED = {"accelerator_type": "accelerator", "accelerator_count": "accelerator_count"}
_OF_CLUSTER = ("project", "location", "nodeLocations")
_SLICES = {"max_nodes": "slices", "min_nodes": "min_slices"}
_GPU = "nodeConfig.guestAccelerators"
_NICS = "networkConfig.additionalNodeNetworkConfigs"
_DISK_GB = ("nodeConfig.bootDisk.sizeGb", "nodeConfig.diskSizeGb")
_DISK_TYPE = ("nodeConfig.bootDisk.diskType", "nodeConfig.diskType")
_SPEED = ("nodeConfig.bootDisk.provisionedIops", "nodeConfig.bootDisk.provisionedThroughput")


SURGE_BY_DEFAULT = 1
_BLUE_GREEN = "upgradeSettings.blueGreenSettings"
_BATCHES = f"{_BLUE_GREEN}.standardRolloutPolicy"
_LOCAL_SSD = (
    "nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount", "nodeConfig.localNvmeSsdBlockConfig.localSsdCount",
    "nodeConfig.localSsdCount",
)  # fmt: skip


class Taint(NamedTuple):
    """A node taint. Its effect is written as in GKE's API: ``NO_SCHEDULE``."""

    key: str | None
    effect: str | None


class PoolNic(NamedTuple):
    """An additional network interface: its network and subnet, each given by its name or its logical name."""

    network: str | None
    subnetwork: str | None


def _nics(value: Any) -> Any:
    """Return the additional network interfaces in an input. Names that are not known yet are ``UNKNOWN``."""
    if value is UNKNOWN:
        return UNKNOWN
    return tuple(PoolNic(*(of.as_name(at(row, (key,))) for key in PoolNic._fields)) for row in rows(value))


class NodePoolView(View):
    """A GKE node pool. Node counts are per zone, as in GKE; ``zones`` are its ``node_locations``.

    - ``pool`` is its name in GKE.
    - ``max_pods`` is the maximum number of pods per node.
    - ``version`` is None if the pool has the cluster's version.
    - ``upgrades`` says whether the program sets anything about upgrades.
    - ``disk_gb`` and ``disk_type`` describe the boot disk. They are None if the program leaves them out.
    - ``encryption`` is the Cloud KMS key of the boot disk.
    """

    TYPES = (NODE_POOL,)

    project = fields.project()
    cluster = fields.reference("cluster", CLUSTER, place="")
    pool = fields.text("name", place="")
    location = fields.located("location")
    zones = fields.texts("nodeLocations", place="zone")
    version = fields.text("version", place="")
    machine_type = fields.text("nodeConfig.machineType")
    min_cpu_platform = fields.text("nodeConfig.minCpuPlatform", place="")
    max_pods = fields.whole("maxPodsPerNode")
    private_nodes = fields.flag("networkConfig.enablePrivateNodes", place="")
    node_labels = fields.texts_by_key("nodeConfig.labels", place="labels")
    labels = fields.labels("nodeConfig.resourceLabels")

    spot = fields.any_flag("nodeConfig.spot", "nodeConfig.preemptible", place="capacity")
    flex_start = fields.flag("nodeConfig.flexStart", default=False, place="capacity")
    queued = fields.flag("queuedProvisioning.enabled", default=False, place="capacity")
    consume_reservation = fields.text("nodeConfig.reservationAffinity.consumeReservationType", place="capacity")
    reservation = fields.name("nodeConfig.reservationAffinity.values.0")
    reservation_path = fields.text("nodeConfig.reservationAffinity.values.0", place="")
    reservations = fields.count("nodeConfig.reservationAffinity.values", place="reservation")
    max_run_seconds = fields.seconds("nodeConfig.maxRunDuration", place="max_run_hours")

    placement_type = fields.text("placementPolicy.type", place="topology")
    tpu_topology = fields.text("placementPolicy.tpuTopology", place="topology")
    policy = fields.name("placementPolicy.policyName", place="")

    initial_nodes = fields.whole("initialNodeCount", place="")
    node_count = fields.whole("nodeCount", place="")
    min_nodes = fields.whole("autoscaling.minNodeCount")
    max_nodes = fields.whole("autoscaling.maxNodeCount")
    total_min_nodes = fields.whole("autoscaling.totalMinNodeCount", place="min_nodes")
    total_max_nodes = fields.whole("autoscaling.totalMaxNodeCount", place="max_nodes")
    location_policy = fields.text("autoscaling.locationPolicy", place="")

    auto_upgrade = fields.flag("management.autoUpgrade", default=True, place="upgrades.auto_upgrade")
    upgrades = fields.written("upgradeSettings", place="upgrades")
    upgrade_strategy = fields.text("upgradeSettings.strategy", place="upgrades.strategy")
    max_surge = fields.whole("upgradeSettings.maxSurge", place="upgrades.max_surge")
    max_unavailable = fields.whole("upgradeSettings.maxUnavailable", place="upgrades.max_unavailable")

    blue_green = fields.written(_BLUE_GREEN, place="upgrades")
    pool_soak_seconds = fields.seconds(f"{_BLUE_GREEN}.nodePoolSoakDuration", place="upgrades")
    batch_nodes = fields.whole(f"{_BATCHES}.batchNodeCount", place="upgrades")
    batch_share = fields.number(f"{_BATCHES}.batchPercentage", place="upgrades")
    batch_soak_seconds = fields.seconds(f"{_BATCHES}.batchSoakDuration", place="upgrades")
    autoscaled_rollout = fields.written(f"{_BLUE_GREEN}.autoscaledRolloutPolicy", place="upgrades")
    drain_wait_seconds = fields.seconds(f"{_BLUE_GREEN}.autoscaledRolloutPolicy.waitForDrainDuration", place="upgrades")

    accelerator_type = fields.text(f"{_GPU}.type", place="machine_type")
    accelerator_count = fields.whole(f"{_GPU}.count", place="machine_type")
    driver = fields.text(f"{_GPU}.gpuDriverInstallationConfig.gpuDriverVersion")
    partition = fields.text(f"{_GPU}.gpuPartitionSize")
    sharing = fields.text(f"{_GPU}.gpuSharingConfig.gpuSharingStrategy", place="sharing.strategy")
    sharing_clients = fields.whole(f"{_GPU}.gpuSharingConfig.maxSharedClientsPerGpu", place="sharing.max_clients")

    disk_gb = fields.whole(*_DISK_GB, place="boot_disk.size_gb")
    disk_type = fields.text(*_DISK_TYPE, place="boot_disk.type")
    encryption = fields.text("nodeConfig.bootDiskKmsKey")
    storage_pools = fields.count("nodeConfig.storagePools", place="")
    secondary_disks = fields.count("nodeConfig.secondaryBootDisks", place="preload_images")
    local_ssd_count = fields.whole(*_LOCAL_SSD, place="local_ssd.count")
    ephemeral_ssds = fields.whole(_LOCAL_SSD[0], place="local_ssd")
    block_ssds = fields.whole(_LOCAL_SSD[1], place="local_ssd")
    legacy_ssds = fields.whole(_LOCAL_SSD[2], place="local_ssd")
    data_cache_ssds = fields.whole("nodeConfig.ephemeralStorageLocalSsdConfig.dataCacheCount", place="local_ssd")

    image_type = fields.text("nodeConfig.imageType", place="")
    gvnic = fields.flag("nodeConfig.gvnic.enabled", default=False, place="")
    fast_socket = fields.flag("nodeConfig.fastSocket.enabled", default=False, place="")
    image_streaming = fields.flag("nodeConfig.gcfsConfig.enabled", default=False, place="")
    confidential = fields.text("nodeConfig.confidentialNodes.confidentialInstanceType")
    nested = fields.flag("nodeConfig.advancedMachineFeatures.enableNestedVirtualization", default=False, place="")
    maintenance = fields.text("nodeConfig.hostMaintenancePolicy.maintenanceInterval", place="")
    sysctls = fields.texts_by_key("nodeConfig.linuxNodeConfig.sysctls")
    huge_pages_2m = fields.whole("nodeConfig.linuxNodeConfig.hugepagesConfig.hugepageSize2m", place="")
    huge_pages_1g = fields.whole("nodeConfig.linuxNodeConfig.hugepagesConfig.hugepageSize1g", place="")
    shutdown_seconds = fields.whole("nodeConfig.kubeletConfig.shutdownGracePeriodSeconds", place="")
    numa_policy = fields.text("nodeConfig.kubeletConfig.topologyManager.policy", place="")
    network_profile = fields.text("networkConfig.acceleratorNetworkProfile", place="")
    metadata_mode = fields.text("nodeConfig.workloadMetadataConfig.mode", place="")
    scopes = fields.texts("nodeConfig.oauthScopes", place="")
    service_account = fields.reference("nodeConfig.serviceAccount", SERVICE_ACCOUNT, place="")
    tags = fields.count("nodeConfig.resourceManagerTags", place="")

    spot_twice = fields.of_block(
        "nodeConfig", lambda config: all(at(config, (key,)) is True for key in ("spot", "preemptible")), False,
        "nodeConfig.spot", place="capacity",
    )  # fmt: skip
    provisioned = fields.of_block(
        "nodeConfig.bootDisk",
        lambda disk: any(at(disk, keys(path)[-1:]) not in (None, 0) for path in _SPEED), False, *_SPEED, place="",
    )  # fmt: skip
    nics: Field[tuple[PoolNic, ...]] = fields.of_block(_NICS, _nics, (), _NICS, place="gpu_direct")
    taints = fields.entries(
        "nodeConfig.taints", lambda row: Taint(*(of.as_text(at(row, (key,))) for key in Taint._fields))
    )

    @fields.field("management.autoRepair", place="upgrades.auto_repair")
    def auto_repair(self) -> bool | None:
        """Whether GKE repairs the nodes. If the ``management`` block is set, the provider's default is to repair."""
        if of.known(self.read("management")) is None:
            return None
        written = of.as_flag(self.read("management.autoRepair"))
        return True if written is None else bool(of.known(written))

    @fields.field("ignoreChanges", place="")
    def ignored(self) -> tuple[str, ...] | None:
        """The inputs whose changes Pulumi ignores, or None if the plan does not contain them."""
        return tuple(self.options.get("ignoreChanges", ())) if self.options else None

    @fields.field("deleteBeforeReplace", place="")
    def replaced_first(self) -> bool | None:
        """Whether Pulumi deletes the old pool before it creates a replacement; None if the plan does not say."""
        return bool(self.options.get("deleteBeforeReplace", False)) if self.options else None

    def path(self, name: str) -> Path:
        """Return the path of a field in the stack file, where the size of a TPU pool is a number of slices.

        GPUs that are attached to a CPU machine have their own fields. A fallback machine type of the system pool has
        only its own machine type as a field; all other fields belong to the system pool.
        """
        if self.origin[-2:-1] == ("fallback_machine_types",) and name not in self.SHARED:
            below = super().path(name)[len(self.origin) :]
            return self.origin if below in ((), ("machine_type",)) else (*self.origin[:-2], *below)
        machine = MACHINE_TYPES.get(self.machine_type or "") if self.known("machine_type") else None
        if machine is not None and machine.kind == "cpu" and name in _ATTACHED:
            return (*self.origin, _ATTACHED[name])
        tpu = machine is not None and machine.kind == "tpu"
        if name == "placement_type" and machine is not None and not tpu:
            return (*self.origin, "compact")
        path = super().path(name)
        return (*self.origin, _SLICES[str(path[-1])]) if tpu and path and path[-1] in _SLICES else path

    @cached_property
    def machine(self) -> MachineType | None:
        """The machine type's entry in the catalogue, or None; another rule reports unknown machine types.

        For a CPU machine with attached GPUs, the entry combines both if the catalogue allows the combination.
        """
        machine = MACHINE_TYPES.get(self.machine_type or "")
        if machine is None or machine.kind != "cpu":
            return machine
        return with_gpus(machine.name, self.accelerator_type, self.accelerator_count)

    @cached_property
    def capacity(self) -> ChargedCapacity:
        """The provisioning model, which determines the quota that is used. For queued provisioning it is flex-start."""
        if self.flex_start or self.queued:
            return "flex-start"
        if self.spot:
            return "spot"
        return "reservation" if self.consume_reservation == "SPECIFIC_RESERVATION" else "on-demand"

    @property
    def surge_of_upgrades(self) -> int:
        """The number of additional VMs during an upgrade that is not blue-green; GKE's default if it is not set."""
        return (self.max_surge or 0) if self.upgrades else SURGE_BY_DEFAULT

    @property
    def autoscales(self) -> bool:
        """Return True if the pool has a maximum number of VMs, per zone or in total."""
        return self.max_nodes is not None or self.total_max_nodes is not None

    @property
    def least_vms(self) -> int:
        """The minimum number of VMs in all zones: the autoscaler's minimum, or the fixed count."""
        if not self.autoscales:
            return self.most_vms
        return max(self.total_min_nodes or 0, (self.min_nodes or 0) * self.zone_count)

    @property
    def hosts(self) -> int:
        """The number of VMs in one slice of ``tpu_topology``, rounded up; 1 without a valid topology."""
        return self.machine.hosts_of(self.tpu_topology) if self.machine else 1

    @cached_property
    def zone_count(self) -> int:
        """The number of zones to which counts per zone apply."""
        if self.zones:
            return len(self.zones)
        return 1 if is_zone(self.location) else ZONES_OF_A_REGIONAL_CLUSTER

    @cached_property
    def most_vms(self) -> int:
        """The maximum number of VMs in all zones: the autoscaler's maximum, or the fixed count."""
        if self.total_max_nodes:
            return self.total_max_nodes
        per_zone = next((n for n in (self.max_nodes, self.node_count, self.initial_nodes) if n is not None), 1)
        return per_zone * self.zone_count


class InlinePoolView(NodePoolView):
    """A node pool in its cluster's inputs: an entry of ``nodePools``, or the default pool if it is not removed.

    Its inputs are the pool's own inputs and those that it takes from the cluster. ``prefix`` is the path of the pool in
    the cluster's inputs.
    """

    TYPES = (CLUSTER,)
    LINES = False
    prefix = ""

    @classmethod
    def of(cls, planned: StackResource, origin: Path) -> Iterator[Self]:
        """Yield the pools of a cluster. The default pool is included only if it is set and not removed."""
        inputs = planned.inputs if isinstance(planned.inputs, Mapping) else {}
        shared = {key: inputs[key] for key in _OF_CLUSTER if key in inputs}
        for index, row in enumerate(rows(inputs.get("nodePools"))):
            if isinstance(row, Mapping) and row.get("nodeConfig") is not None:
                yield cls._inside(planned, origin, {**shared, **row}, f"nodePools[{index}].")
        stays = not inputs.get("removeDefaultNodePool") and not inputs.get("enableAutopilot")
        if stays and inputs.get("nodeConfig") is not None:
            default = {key: inputs[key] for key in ("initialNodeCount", "nodeConfig") if key in inputs}
            yield cls._inside(planned, origin, {**shared, **default, "name": "default-pool"}, "")

    @classmethod
    def _inside(cls, planned: StackResource, origin: Path, inputs: dict[str, Any], prefix: str) -> Self:
        pool = cls(
            stack=planned.stack, type=planned.type, name=planned.name, origin=origin,
            inputs={**inputs, "cluster": planned.name},
        )  # fmt: skip
        pool.prefix = prefix
        return pool

    def spelled(self, name: str) -> str:
        """Return the path of a field's input in the cluster's inputs."""
        return self.prefix + super().spelled(name)


class CreatedPoolView(NodePoolView):
    """A node pool that GKE would create for a priority of a compute class. It has a list of zones."""

    zones = fields.texts("nodeLocations", place="zones")
