"""Kueue's ResourceFlavors: which of a cluster's pools are one flavor, and what their nodes carry."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from training_platform.catalog.types import Accelerator
from training_platform.config.expansion.pools import (
    CLASS_LABEL,
    FLAVOR_LABEL,
    QUEUED_LABEL,
    ExpandedPool,
    auto_provisioned_chips,
    auto_provisioned_pools,
    cluster_pools,
    flavor_name,
)
from training_platform.config.spec.capacity import Capacity
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.node_pool import SLICE_LEVELS

_CAPACITY_ORDER: tuple[Capacity, ...] = ("reservation", "on-demand", "flex-start", "queued-provisioning", "spot")
_CAPACITY_LABELS: Mapping[Capacity, Mapping[str, str]] = {
    "spot": {"cloud.google.com/gke-spot": "true"},
    "flex-start": {"cloud.google.com/gke-flex-start": "true"},
    "queued-provisioning": {QUEUED_LABEL: "true"},
}


@dataclass(frozen=True, kw_only=True)
class Flavor:
    """A Kueue ResourceFlavor: pools that a job cannot tell apart. Kueue counts its quota in chips or GPUs.

    One per accelerator, topology and capacity, since Kueue counts chips and not slices: two topologies in one flavor
    would admit a job that no slice can hold. A compute class is one flavor, of the capacity of its first pool;
    ``auto_provisioned_chips`` may be added to it, and to every other class of the same accelerator.
    """

    name: str
    accelerator: Accelerator
    topology: str | None
    capacity: Capacity
    pools: tuple[ExpandedPool, ...]
    compute_class: str | None = None
    auto_provisioned_chips: int = 0
    topology_levels: tuple[str, ...] = ()  # of Kueue's Topology, widest first; none: Kueue places no pods
    notebook_chips: int = 0  # of the pools that notebooks may take, which ask no queue

    @property
    def capacity_chips(self) -> int:
        """Chips or GPUs, or places on shared GPUs, that all of its pools hold at most."""
        return sum(pool.max_places for pool in self.pools) + self.auto_provisioned_chips

    @property
    def queue_chips(self) -> int:
        """Chips or GPUs that queues can be promised: all but those of pools that notebooks may take."""
        return self.capacity_chips - self.notebook_chips

    @property
    def chips_per_slice(self) -> int:
        """Chips of one slice, or GPUs of one VM; pools of one flavor can differ in it, then the largest."""
        return max(pool.chips_per_slice for pool in self.pools)

    def in_whole_slices(self, chips: int) -> int:
        """Return how many of some chips or GPUs are whole slices; 0 where there are fewer than none."""
        return max(0, chips) // self.chips_per_slice * self.chips_per_slice

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels that its nodes carry: those that GKE sets, which jobs must select by, and the flavor's own."""
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
    def topology_name(self) -> str | None:
        """The Topology that Kueue places its jobs by; None where the scheduler alone does."""
        if not self.topology_levels:
            return None
        return "slices" if self.topology_levels == SLICE_LEVELS else "blocks"

    @property
    def own_taints(self) -> list[tuple[str, str, str]]:
        """Key, value and effect (as GKE spells it) of each taint that the stack file gives to its pools, each once."""
        return sorted({(key, row.value, row.effect) for pool in self.pools for key, row in pool.spec.taints.items()})

    @property
    def tolerated(self) -> dict[str, str]:
        """Taints of its nodes that pods have to tolerate, as key and value; the effect of each is NoSchedule."""
        taints = {key: value for pool in self.pools for key, value in pool.tolerated.items()}
        if self.compute_class:
            taints[CLASS_LABEL] = self.compute_class
        return taints | ({QUEUED_LABEL: "true"} if self.by_request else {})

    @property
    def by_request(self) -> bool:
        """Whether its nodes come by ProvisioningRequests alone, which Kueue makes for whole jobs."""
        return self.capacity == "queued-provisioning" and self.compute_class is None


def flavors(cluster_name: str, cluster: ClusterSpec) -> dict[str, Flavor]:
    """Return a cluster's flavors by name, in the order in which Kueue should try them: what is paid for first."""
    by_name: dict[str, list[ExpandedPool]] = {}
    for pool in (*cluster_pools(cluster_name, cluster), *auto_provisioned_pools(cluster_name, cluster)):
        by_name.setdefault(flavor_name(pool), []).append(pool)
    made = auto_provisioned_chips(cluster_name, cluster)
    ranks = {
        member: rank
        for name, compute_class in cluster.compute_classes.items()
        for rank, (member, _) in enumerate(compute_class.members(name))
    }
    for members in by_name.values():
        members.sort(key=lambda pool: ranks.get(pool.name, 0))  # elsewhere they stay as the file has them
    taken = cluster.notebooks.pools if cluster.notebooks else ()
    found = [_flavor(name, tuple(members), made, taken) for name, members in by_name.items()]
    return {flavor.name: flavor for flavor in sorted(found, key=lambda each: _CAPACITY_ORDER.index(each.capacity))}


def _flavor(name: str, members: tuple[ExpandedPool, ...], made: Mapping[str, int], taken: Collection[str]) -> Flavor:
    first = members[0]
    labels = {pool.accelerator.gke_label for pool in members if not pool.gke_pools}
    return Flavor(
        name=name,
        accelerator=first.accelerator,
        topology=first.spec.topology,
        capacity=first.spec.capacity,
        pools=members,
        compute_class=first.compute_class,
        auto_provisioned_chips=sum(made.get(label, 0) for label in labels),
        topology_levels=next((pool.spec.topology_levels for pool in members if pool.spec.topology_aware), ()),
        notebook_chips=sum(pool.max_places for pool in members if pool.name in taken),
    )
