"""Derives GKE node pools, numbers of VMs per slice, labels, and Kueue's ResourceFlavors from a stack file's pools.

This also works for values that Google Cloud would refuse, such as an illegal topology: the nearest sensible numbers are
used, so that the program can run and the rules can report all errors together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.types import Accelerator, MachineType, NetworkDevices
from training_platform.config.model.capacity import Capacity
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.compute_class import class_of_pools
from training_platform.config.model.environment import Environment
from training_platform.config.model.node_pool import POOL_LABEL, SLICE_LEVELS, CpuPoolSpec, NodePoolSpec
from training_platform.config.names import pool_name
from training_platform.config.reading.finding import Path

FLAVOR_LABEL = "training-platform/flavor"
# The name in Google's own tools of the pool for heads of Pathways jobs, so that their manifests fit. These do not taint
# it; here other pods would occupy its large VMs. Source: AI-Hypercomputer/xpk, core/kueue_manager.py, read 2026-11-22.
HEADS_NAME = "cpu-np"
HEADS_TAINT = ("training-platform/pathways", "true")
# GKE's own pods tolerate this taint and no other. Source: Cluster Toolkit v1.95.0, gke-cluster, whose system pools have
# it by default, read 2026-06-25; that every pod of GKE's own tolerates it is (unverified).
SYSTEM_NAME = "system"
SYSTEM_TAINT = ("components.gke.io/gke-managed-components", "true")
SYSTEM_TOLERATIONS = ({"key": SYSTEM_TAINT[0], "operator": "Equal", "value": SYSTEM_TAINT[1], "effect": "NoSchedule"},)
# Above all priorities that teams' pods may have. GKE admits system-cluster-critical, the priority of its own pods, only
# in kube-system (unverified).
SYSTEM_PRIORITY = "training-platform-system"
SYSTEM_PRIORITY_VALUE = 1_000_000_000
SYSTEM_POOL_SURGE = 1  # additional VMs during an upgrade of a system pool
ZONES_OF_A_REGIONAL_CLUSTER = 3  # GKE's default; the factor of counts per zone if no zone is named
GPU_DIRECT_LABEL = "training-platform/gpu-direct"
GPU_DIRECT_OFF = "off"
QUEUED_LABEL = "cloud.google.com/gke-queued"
NETWORK_DRIVER_LABEL = "cloud.google.com/gke-networking-dra-driver"
CLASS_LABEL = "cloud.google.com/compute-class"
ARCHITECTURE_LABEL = "kubernetes.io/arch"
RESERVED_LABELS = ("training-platform/reserved-from", "training-platform/reserved-until")


class GkePool(NamedTuple):
    """A GKE node pool: its logical name, and the minimum and maximum number of VMs over all of its zones."""

    name: str
    min_nodes: int
    max_nodes: int


@dataclass(frozen=True, kw_only=True)
class ExpandedPool:
    """A pool of the stack file with all values that follow from its machine type and location.

    ``hosts`` is the number of VMs per slice, 1 for GPUs. ``zone`` is None if the cluster is regional and the pool names
    no zone. ``compute_class`` is the compute class that the pool belongs to. A pool that GKE creates for a class has no
    ``gke_pools``. ``network_devices`` are the devices that its pods claim, or None if GKE has no driver for them on its
    VMs.
    """

    cluster: str
    name: str
    spec: NodePoolSpec
    machine: MachineType
    accelerator: Accelerator
    region: str
    zone: str | None
    hosts: int
    gke_pools: tuple[GkePool, ...]
    compute_class: str | None = None
    network_devices: NetworkDevices | None = None

    @property
    def path(self) -> Path:
        """The pool's path below the environment's section."""
        return ("clusters", self.cluster, "node_pools", self.name)

    @property
    def multi_host(self) -> bool:
        """Whether a slice consists of several VMs. Each such slice is a GKE node pool of its own."""
        return self.hosts > 1

    @property
    def tolerated(self) -> dict[str, str]:
        """Taints that GKE adds to the nodes because of their hardware, as key and value. Their effect is NoSchedule.

        Source for Arm: GKE docs, prepare to deploy an Arm workload in a Standard cluster, read 2026-11-21.
        """
        taints: dict[str, str] = {}
        if self.accelerator.kind != "cpu":
            taints[self.accelerator.resource] = "present"
        if self.machine.architecture == "arm64":
            taints[ARCHITECTURE_LABEL] = "arm64"
        return taints

    @property
    def max_nodes(self) -> int:
        """The maximum number of VMs over all GKE node pools and zones."""
        return sum(pool.max_nodes for pool in self.gke_pools)

    @property
    def min_nodes(self) -> int:
        """The minimum number of VMs over all GKE node pools and zones."""
        return sum(pool.min_nodes for pool in self.gke_pools)

    @property
    def max_nodes_per_request(self) -> int:
        """The maximum number of VMs that a ProvisioningRequest can get. All are in one zone of one GKE node pool.

        Source: kubernetes-sigs/autoscaler as GKE publishes it (7d25050), provisioningrequests/scaleup/reasons.
        """
        zones = 1 if self.zone else ZONES_OF_A_REGIONAL_CLUSTER
        return max((pool.max_nodes // zones for pool in self.gke_pools), default=0)

    @property
    def max_chips(self) -> int:
        """The maximum number of chips or GPUs."""
        return self.max_nodes * self.machine.chips

    @property
    def places_per_gpu(self) -> int:
        """The maximum number of pods on a GPU: its partitions, times the number of pods that can share a partition."""
        partitions = self.accelerator.partitions.get(self.spec.partition or "", 1)
        return partitions * (self.spec.sharing.max_clients if self.spec.sharing else 1)

    @property
    def max_places(self) -> int:
        """The maximum number of chips or GPUs as Kueue counts them: a GPU counts once for each pod that can use it."""
        return self.max_chips * self.places_per_gpu

    @property
    def policy_topology(self) -> str | None:
        """The topology of the workload policy that connects the VMs, if there is one."""
        if not self.machine.workload_policy:
            return None
        return self.machine.nvlink_domain or (self.spec.topology if self.multi_host else None)

    @property
    def chips_per_slice(self) -> int:
        """The least that a job can use: the chips of a slice, the GPUs of a VM, or one pod's part of a shared GPU."""
        return self.hosts * self.machine.chips if self.places_per_gpu == 1 else 1


class CpuPool(NamedTuple):
    """A pool without TPUs or GPUs: its path in the cluster's section, its GKE name, and its taint's key and value."""

    path: Path
    spec: CpuPoolSpec
    name: str
    taint: tuple[str, str] | None


def cpu_pools(cluster: ClusterSpec) -> Iterator[CpuPool]:
    """Yield those pools of a cluster that have no TPUs or GPUs. The system pool and its fallbacks are last.

    If the cluster has another pool for ordinary pods, the system pool is reserved for system pods.
    """
    for path, spec in cluster.pools_without_chips.items():
        if path[0] == "system_pool":
            name = SYSTEM_NAME if path == ("system_pool",) else f"{SYSTEM_NAME}-{spec.machine_type}"
            yield CpuPool(path, spec, name=name, taint=SYSTEM_TAINT if cluster.cpu_pools else None)
        elif path == ("pathways",):
            yield CpuPool(path, spec, name=HEADS_NAME, taint=HEADS_TAINT)
        else:
            yield CpuPool(path, spec, name=str(path[-1]), taint=None)


_NO_ACCELERATOR = Accelerator(
    name="cpu", kind="cpu", title="CPU", gke_label="", hbm_gb=0, peak_bf16_tflops=None, topologies=None, quotas={},
    fallback={}, vertex=None, partitions={}, source="",
)  # fmt: skip


def cpu_flavor(cluster_name: str, cluster: ClusterSpec, name: str) -> Flavor:
    """Return one of a cluster's ``cpu_pools`` as a flavor for jobs. Kueue has no such flavor and counts no CPUs."""
    spec = cluster.cpu_pools[name]
    zone = cluster.location if is_zone(cluster.location) else None
    pool = ExpandedPool(
        cluster=cluster_name,
        name=name,
        # Not validated, since the model is for pools with accelerators.
        spec=NodePoolSpec.model_construct(machine_type=spec.machine_type, boot_disk=spec.boot_disk),
        machine=MACHINE_TYPES[spec.machine_type],
        accelerator=_NO_ACCELERATOR,
        region=region_of(cluster.location),
        zone=zone,
        hosts=1,
        gke_pools=(GkePool(name, spec.min_nodes, max_nodes=spec.max_nodes),),
    )
    return Flavor(name=name, accelerator=_NO_ACCELERATOR, topology=None, capacity="on-demand", pools=(pool,))


def pools(environment: Environment) -> Iterator[ExpandedPool]:
    """Yield every accelerator pool of an environment, in the order of the file."""
    for name, cluster in environment.clusters.items():
        yield from cluster_pools(name, cluster)


def cluster_pools(cluster_name: str, cluster: ClusterSpec) -> tuple[ExpandedPool, ...]:
    """Return the accelerator pools of a cluster. They are cached in it, since quotas, rules and reports need them."""
    if cluster_name not in cluster.expanded:
        classes = class_of_pools(cluster.compute_classes)
        cluster.expanded[cluster_name] = tuple(
            _pool(cluster_name, cluster, name, spec, classes.get(name), gke_name=pool_name(cluster_name, name))
            for name, spec in cluster.node_pools.items()
        )
    return cluster.expanded[cluster_name]


def auto_provisioned_pools(cluster_name: str, cluster: ClusterSpec) -> Iterator[ExpandedPool]:
    """Yield the pools that GKE may create for compute classes. Only the cluster's limits bound the number of VMs."""
    for name, compute_class in cluster.compute_classes.items():
        for member, priority in compute_class.members(name):
            if priority.machine_type:
                yield _pool(cluster_name, cluster, member, priority.as_pool, name)


def auto_provisioned_chips(cluster_name: str, cluster: ClusterSpec) -> dict[str, int]:
    """Return how many chips or GPUs auto-provisioning may add, keyed by GKE's name of the accelerator.

    The limits of auto-provisioning include the cluster's own pools. These are subtracted here at their maximum.
    """
    available_chips = dict(cluster.auto_provisioning.accelerators) if cluster.auto_provisioning else {}
    for pool in cluster_pools(cluster_name, cluster):
        if pool.accelerator.gke_label in available_chips:
            available_chips[pool.accelerator.gke_label] -= pool.max_chips
    return {label: max(0, chips) for label, chips in available_chips.items()}


def _pool(
    cluster_name: str,
    cluster: ClusterSpec,
    name: str,
    spec: NodePoolSpec,
    compute_class: str | None,
    *,
    gke_name: str | None = None,
) -> ExpandedPool:
    """Return a pool with all derived values. Without ``gke_name``, GKE creates the pool, and ``gke_pools`` is empty."""
    machine = spec.machine
    assert machine.accelerator is not None  # the model takes only machine types with chips
    zone = spec.zone or (cluster.location if is_zone(cluster.location) else None)
    hosts = machine.hosts_of(spec.topology)
    zones = 1 if zone else ZONES_OF_A_REGIONAL_CLUSTER
    return ExpandedPool(
        cluster=cluster_name,
        name=name,
        spec=spec,
        machine=machine,
        accelerator=machine.accelerator,
        region=region_of(zone or cluster.location),
        zone=zone,
        hosts=hosts,
        gke_pools=tuple(_gke_pools(gke_name, spec, machine, hosts, zones)) if gke_name else (),
        compute_class=compute_class,
        network_devices=cluster.network_devices(machine) if spec.gpu_direct else None,
    )


def pool_labels(pool: ExpandedPool) -> dict[str, str]:
    """Return the Kubernetes labels that we add to a pool's nodes, in addition to GKE's own labels.

    GKE taints nodes of queued provisioning, but does not label them.
    """
    reservation = pool.spec.reservation
    days = (reservation.starts, reservation.ends) if reservation else (None, None)
    labels = {**pool.spec.labels, FLAVOR_LABEL: flavor_name(pool)}
    if pool.spec.capacity == "queued-provisioning":
        labels[QUEUED_LABEL] = "true"
    if pool.compute_class:
        labels[CLASS_LABEL] = pool.compute_class
    if pool.machine.gpudirect and not pool.spec.gpu_direct:
        labels[GPU_DIRECT_LABEL] = GPU_DIRECT_OFF
    if pool.network_devices:
        labels[NETWORK_DRIVER_LABEL] = "true"
    labels |= {label: day for label, day in zip(RESERVED_LABELS, days, strict=True) if day}
    return labels


def flavor_name(pool: ExpandedPool) -> str:
    """Return the name of a pool's flavor: ``{accelerator}[-{topology}][-{capacity}]``, such as ``tpu-v5e-4x8-spot``.

    On-demand capacity is not part of the name. If a GPU is partitioned or shared, this precedes the capacity:
    ``a100-40-1g-5gb-spot``, ``t4-mps-4``. The pools of a compute class form one flavor, ``class-{name}``.
    """
    if pool.compute_class:
        return f"class-{pool.compute_class}"
    topology = pool.spec.topology if pool.machine.kind == "tpu" else None
    capacity = pool.spec.capacity if pool.spec.capacity != "on-demand" else None
    partition = (pool.spec.partition or "").replace(".", "-").replace("+", "-")
    sharing = f"{pool.spec.sharing.strategy}-{pool.spec.sharing.max_clients}" if pool.spec.sharing else None
    return "-".join(part for part in (pool.accelerator.name, topology, partition, sharing, capacity) if part)


def _gke_pools(name: str, spec: NodePoolSpec, machine: MachineType, hosts: int, zones: int) -> Iterator[GkePool]:
    if machine.kind == "gpu":
        yield GkePool(name, spec.min_nodes * zones, max_nodes=spec.max_nodes * zones)
    elif hosts == 1:  # single-host slices are alike and scale one by one, so one pool has all of them
        yield GkePool(name, spec.min_slices * zones, max_nodes=spec.slices * zones)
    else:
        for index in range(spec.slices):
            min_hosts = hosts if index < spec.min_slices else 0
            yield GkePool(f"{name}-{index}", min_hosts * zones, max_nodes=hosts * zones)


_CAPACITY_ORDER: tuple[Capacity, ...] = ("reservation", "on-demand", "flex-start", "queued-provisioning", "spot")
_CAPACITY_LABELS: Mapping[Capacity, Mapping[str, str]] = {
    "spot": {"cloud.google.com/gke-spot": "true"},
    "flex-start": {"cloud.google.com/gke-flex-start": "true"},
    "queued-provisioning": {QUEUED_LABEL: "true"},
}


@dataclass(frozen=True, kw_only=True)
class Flavor:
    """A Kueue ResourceFlavor: pools between which a job sees no difference. Kueue counts its quota in chips or GPUs.

    There is one for each accelerator, topology and capacity, since Kueue counts chips, not slices. A flavor with two
    topologies could admit a job that fits no slice. A compute class is one flavor, with the capacity of its first pool.
    ``auto_provisioned_chips`` may be added to this class, or to any other class with the same accelerator.
    """

    name: str
    accelerator: Accelerator
    topology: str | None
    capacity: Capacity
    pools: tuple[ExpandedPool, ...]
    compute_class: str | None = None
    auto_provisioned_chips: int = 0
    topology_levels: tuple[str, ...] = ()  # of Kueue's Topology, the widest first; () if Kueue places no pods
    notebook_chips: int = 0  # of the pools that notebooks may use, without a queue

    @property
    def capacity_chips(self) -> int:
        """The maximum capacity of all its pools together, in chips or GPUs as Kueue counts them."""
        return sum(pool.max_places for pool in self.pools) + self.auto_provisioned_chips

    @property
    def queue_chips(self) -> int:
        """The chips or GPUs that can be promised to queues: all except those in pools that notebooks may use."""
        return self.capacity_chips - self.notebook_chips

    @property
    def request_chips(self) -> int | None:
        """The maximum number of chips or GPUs of a job whose VMs ProvisioningRequests create; None for others."""
        if not self.by_request:
            return None
        return max(pool.max_nodes_per_request * pool.machine.chips * pool.places_per_gpu for pool in self.pools)

    @property
    def largest_pool(self) -> ExpandedPool:
        """The pool with the largest slices or VMs, or the first of several."""
        return max(self.pools, key=lambda pool: pool.chips_per_slice)

    @property
    def chips_per_slice(self) -> int:
        """The number of chips per slice, or of GPUs per VM, in the largest pool."""
        return self.largest_pool.chips_per_slice

    def in_whole_slices(self, chips: int) -> int:
        """Round a number of chips or GPUs down to whole slices. A negative number becomes 0."""
        return max(0, chips) // self.chips_per_slice * self.chips_per_slice

    @property
    def node_labels(self) -> dict[str, str]:
        """The labels of the flavor's nodes: GKE's labels, which jobs must select, and the flavor's own."""
        if self.accelerator.kind == "cpu":
            return {POOL_LABEL: self.name}
        if self.compute_class:
            labels = {CLASS_LABEL: self.compute_class}
        else:
            labels = {FLAVOR_LABEL: self.name, **_CAPACITY_LABELS.get(self.capacity, {})}
        if self.accelerator.kind == "tpu":
            labels["cloud.google.com/gke-tpu-accelerator"] = self.accelerator.gke_label
            labels["cloud.google.com/gke-tpu-topology"] = self.topology or ""
        elif not self.compute_class:  # the pools of a class may have different GPUs
            labels["cloud.google.com/gke-accelerator"] = self.accelerator.gke_label
        return labels

    @property
    def slices_by_jobset(self) -> bool:
        """Whether a job's controller must keep its pods on slices of their own, since Kueue does not place them."""
        return any(pool.multi_host for pool in self.pools) and not self.topology_levels

    @property
    def topology_name(self) -> str | None:
        """The name of the Topology that Kueue uses to place jobs, or None if only the scheduler places pods."""
        if not self.topology_levels:
            return None
        return "slices" if self.topology_levels == SLICE_LEVELS else "blocks"

    @property
    def own_taints(self) -> list[tuple[str, str, str]]:
        """The distinct taints of the pools in the stack file: key, value and effect in GKE's form."""
        return sorted({(key, row.value, row.effect) for pool in self.pools for key, row in pool.spec.taints.items()})

    @property
    def tolerated(self) -> dict[str, str]:
        """The taints that pods must tolerate, as key and value. The effect of each is NoSchedule."""
        taints = {key: value for pool in self.pools for key, value in pool.tolerated.items()}
        if self.compute_class:
            taints[CLASS_LABEL] = self.compute_class
        if self.by_request:
            taints[QUEUED_LABEL] = "true"
        return taints

    @property
    def by_request(self) -> bool:
        """Whether nodes are created only by ProvisioningRequests, which Kueue creates for whole jobs."""
        return self.capacity == "queued-provisioning" and self.compute_class is None


def flavors(cluster_name: str, cluster: ClusterSpec) -> dict[str, Flavor]:
    """Return a cluster's flavors, keyed by name, in the order in which Kueue tries them: reservations first."""
    by_name: dict[str, list[ExpandedPool]] = {}
    for pool in (*cluster_pools(cluster_name, cluster), *auto_provisioned_pools(cluster_name, cluster)):
        by_name.setdefault(flavor_name(pool), []).append(pool)
    auto_provisioned = auto_provisioned_chips(cluster_name, cluster)
    ranks = {
        member: rank
        for name, compute_class in cluster.compute_classes.items()
        for rank, (member, _) in enumerate(compute_class.members(name))
    }
    for members in by_name.values():
        members.sort(key=lambda pool: ranks.get(pool.name, 0))  # other pools stay in the order of the file
    taken = cluster.notebooks.pools if cluster.notebooks else ()
    unordered = [_flavor(name, tuple(members), auto_provisioned, taken) for name, members in by_name.items()]
    return {row.name: row for row in sorted(unordered, key=lambda flavor: _CAPACITY_ORDER.index(flavor.capacity))}


def _flavor(
    name: str, members: tuple[ExpandedPool, ...], auto_provisioned: Mapping[str, int], taken: Collection[str]
) -> Flavor:
    first = members[0]
    labels = {pool.accelerator.gke_label for pool in members if not pool.gke_pools}
    auto_provisioned_chips = sum(auto_provisioned.get(label, 0) for label in labels)
    placed = [pool for pool in members if pool.spec.topology_aware]
    left_out = all(pool.spec.topology_aware is None and pool.spec.placed_by_default for pool in members)
    if left_out and not first.compute_class and not auto_provisioned_chips:
        placed = list(members)
    return Flavor(
        name=name,
        accelerator=first.accelerator,
        topology=first.spec.topology,
        capacity=first.spec.capacity,
        pools=members,
        compute_class=first.compute_class,
        auto_provisioned_chips=auto_provisioned_chips,
        topology_levels=placed[0].spec.topology_levels if placed else (),
        notebook_chips=sum(pool.max_places for pool in members if pool.name in taken),
    )
