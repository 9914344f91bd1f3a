"""What a stack file's pools become: GKE node pools, VMs per slice, Kueue flavors. No Pulumi, no refusals.

Values that Google Cloud would refuse (an illegal topology) still expand, to the nearest sensible numbers, so that the
program builds and the rules can say what is wrong with all of it at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from modules.catalog.locations import is_zone, region_of
from modules.catalog.types import Accelerator, MachineType, chips_in
from modules.config.cluster import Cluster
from modules.config.environment import Environment
from modules.config.finding import Path
from modules.config.names import pool_name
from modules.config.node_pool import Capacity, NodePool

FLAVOR_LABEL = "training-platform/flavor"
ZONES_OF_A_REGIONAL_CLUSTER = 3  # GKE's default; counts per zone multiply by it where no zone is named
_CAPACITY_ORDER: tuple[Capacity, ...] = ("reservation", "on-demand", "flex-start", "spot")
_CAPACITY_LABELS: Mapping[Capacity, Mapping[str, str]] = {
    "spot": {"cloud.google.com/gke-spot": "true"},
    "flex-start": {"cloud.google.com/gke-flex-start": "true"},
}


class GkePool(NamedTuple):
    """One GKE node pool: its logical name, and fewest and most VMs over all of its zones."""

    name: str
    min_nodes: int
    max_nodes: int


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool of the stack file with everything that follows from its machine type and place.

    ``hosts`` counts VMs per slice, 1 for GPUs. ``zone`` is None where a regional cluster's pool names none.
    """

    cluster: str
    name: str
    spec: NodePool
    machine: MachineType
    accelerator: Accelerator
    region: str
    zone: str | None
    hosts: int
    gke_pools: tuple[GkePool, ...]

    @property
    def path(self) -> Path:
        """Where the pool stands below the environment's section."""
        return ("clusters", self.cluster, "node_pools", self.name)

    @property
    def multi_host(self) -> bool:
        """Whether a slice spans several VMs, and so is a GKE node pool of its own."""
        return self.hosts > 1

    @property
    def max_nodes(self) -> int:
        """VMs at most, over all GKE node pools and zones."""
        return sum(pool.max_nodes for pool in self.gke_pools)

    @property
    def min_nodes(self) -> int:
        """VMs at least, over all GKE node pools and zones."""
        return sum(pool.min_nodes for pool in self.gke_pools)

    @property
    def max_chips(self) -> int:
        """Chips or GPUs at most."""
        return self.max_nodes * self.machine.chips

    @property
    def chips_per_slice(self) -> int:
        """The smallest number of chips or GPUs that one job can be given: a slice, or one VM's GPUs."""
        return self.hosts * self.machine.chips


@dataclass(frozen=True, kw_only=True)
class Flavor:
    """A Kueue ResourceFlavor: pools that a job cannot tell apart. Kueue counts its quota in chips or GPUs.

    One per accelerator, topology and capacity, since Kueue counts chips and not slices: two topologies in one flavor
    would admit a job that no slice can hold.
    """

    name: str
    accelerator: Accelerator
    topology: str | None
    capacity: Capacity
    pools: tuple[Pool, ...]

    @property
    def capacity_chips(self) -> int:
        """Chips or GPUs that all of its pools hold at most."""
        return sum(pool.max_chips for pool in self.pools)

    @property
    def chips_per_slice(self) -> int:
        """Chips of one slice, or GPUs of one VM; pools of one flavor can differ in it, then the largest."""
        return max(pool.chips_per_slice for pool in self.pools)

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels that its nodes carry: those that GKE sets, which jobs must select by, and the flavor's own."""
        labels = {FLAVOR_LABEL: self.name, **_CAPACITY_LABELS.get(self.capacity, {})}
        if self.accelerator.kind == "tpu":
            labels["cloud.google.com/gke-tpu-accelerator"] = self.accelerator.gke_label
            labels["cloud.google.com/gke-tpu-topology"] = self.topology or ""
        else:
            labels["cloud.google.com/gke-accelerator"] = self.accelerator.gke_label
        return labels


def pools(environment: Environment) -> Iterator[Pool]:
    """Yield every accelerator pool of an environment, in the order of the file."""
    for name, cluster in environment.clusters.items():
        yield from cluster_pools(name, cluster)


def cluster_pools(cluster_name: str, cluster: Cluster) -> Iterator[Pool]:
    """Yield the accelerator pools of one cluster."""
    for name, spec in cluster.node_pools.items():
        machine = spec.machine
        assert machine.accelerator is not None  # the model takes machine types with chips only
        zone = spec.zone or (cluster.location if is_zone(cluster.location) else None)
        hosts = _hosts(spec, machine)
        zones = 1 if zone else ZONES_OF_A_REGIONAL_CLUSTER
        yield Pool(
            cluster=cluster_name,
            name=name,
            spec=spec,
            machine=machine,
            accelerator=machine.accelerator,
            region=region_of(zone or cluster.location),
            zone=zone,
            hosts=hosts,
            gke_pools=tuple(_gke_pools(pool_name(cluster_name, name), spec, machine, hosts, zones)),
        )


def flavor_name(pool: Pool) -> str:
    """Name a pool's flavor: ``{accelerator}[-{topology}][-{capacity}]``, on-demand unsaid: ``tpu-v5e-4x8-spot``."""
    topology = pool.spec.topology if pool.machine.kind == "tpu" else None
    capacity = pool.spec.capacity if pool.spec.capacity != "on-demand" else None
    return "-".join(part for part in (pool.accelerator.name, topology, capacity) if part)


def flavors(cluster_name: str, cluster: Cluster) -> dict[str, Flavor]:
    """Return a cluster's flavors by name, in the order in which Kueue should try them: what is paid for first."""
    by_name: dict[str, list[Pool]] = {}
    for pool in cluster_pools(cluster_name, cluster):
        by_name.setdefault(flavor_name(pool), []).append(pool)
    ordered = sorted(by_name.items(), key=lambda item: _CAPACITY_ORDER.index(item[1][0].spec.capacity))
    return {
        name: Flavor(
            name=name,
            accelerator=members[0].accelerator,
            topology=members[0].spec.topology,
            capacity=members[0].spec.capacity,
            pools=tuple(members),
        )
        for name, members in ordered
    }


def _hosts(spec: NodePool, machine: MachineType) -> int:
    """VMs per slice, rounded up where the topology does not divide; 1 where it is no topology."""
    if machine.kind != "tpu" or spec.topology is None:
        return 1
    return -(-(chips_in(spec.topology) or 1) // machine.chips)


def _gke_pools(name: str, spec: NodePool, machine: MachineType, hosts: int, zones: int) -> Iterator[GkePool]:
    if machine.kind == "gpu":
        yield GkePool(name, spec.min_nodes * zones, spec.max_nodes * zones)
    elif hosts == 1:  # one-host slices are alike and scale one by one: one pool holds them all
        yield GkePool(name, spec.min_slices * zones, spec.slices * zones)
    else:
        for index in range(spec.slices):
            least = hosts if index < spec.min_slices else 0
            yield GkePool(f"{name}-{index}", least * zones, hosts * zones)
