"""The networks that GPUDirect needs for a cluster's pools: VPCs, subnets, and additional network cards of each VM.

GPUDirect-TCPX and TCPXO need a VPC for every card after the first (4 and 8 VPCs). RDMA needs a VPC for the second card,
and a VPC from the zone's network profile, with a subnet for each card between the GPUs. Sources: Cluster Toolkit
v1.95.0, gpu_direct.tf, network/multivpc, network/gpu-rdma-vpc and examples/gke-a3-ultragpu (2026-06-25).
It is unverified that a4x needs no other networks. With DRANET, GKE creates the networks itself, and this
module creates none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network
from typing import NamedTuple

from training_platform.catalog.locations import region_of
from training_platform.config.expansion import ExpandedPool, auto_provisioned_pools, cluster_pools
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.names import name_in_cluster

PARTS_BITS = 7  # a range has 128 subnets
RDMA_PROFILE = "vpc-roce"
_SLOTS = {"TCPX": 0, "TCPXO": 4}  # the first subnet of each; RDMA has the rest, 9 for each zone
_RDMA_SLOTS = 12
_RDMA_SLOTS_A_ZONE = 9
_ZONES = 6
_MTU = 8896  # of all networks here, including that of RDMA's second gVNIC


class Nic(NamedTuple):
    """An additional network card of a VM: the name of its subnet and Kubernetes Network, and the subnet's range."""

    name: str
    cidr: str


@dataclass(frozen=True, kw_only=True)
class GpuVpc:
    """A VPC. If it has a ``profile``, it is for RDMA and has no firewall rules. ``mtu`` is in bytes."""

    name: str
    mtu: int
    profile: str | None
    nics: tuple[Nic, ...]


@dataclass(frozen=True, kw_only=True)
class GpuFabric:
    """The networks that all pools with the same kind of GPUDirect share: ``tcpx``, ``tcpxo``, ``rdma-us-central1-b``.

    ``component`` is its logical name. ``labels`` contains GKE's node labels for the GPUs of the pools. ``vpcs`` is
    empty if GKE creates the networks.
    """

    component: str
    name: str
    gpudirect: str
    region: str
    labels: tuple[str, ...]
    vpcs: tuple[GpuVpc, ...]

    def nics(self, pool: ExpandedPool) -> tuple[tuple[GpuVpc, Nic], ...]:
        """Return the additional network cards of a pool's VMs, each with its VPC."""
        cards = [(vpc, nic) for vpc in self.vpcs for nic in vpc.nics]
        return tuple(cards[: pool.machine.nics - 1])


def fabric_name(pool: ExpandedPool) -> str | None:
    """Return the name of the networks of a pool's VMs, or None for a pool without GPUDirect."""
    kind = pool.machine.gpudirect
    if kind is None or not pool.spec.gpu_direct:
        return None
    return f"rdma-{_zone(pool)}" if pool.machine.rdma_nics else kind.lower()


def claims_devices(cluster_name: str, cluster: ClusterSpec) -> bool:
    """Return True if jobs in a cluster may claim network devices."""
    pools = (*cluster_pools(cluster_name, cluster), *auto_provisioned_pools(cluster_name, cluster))
    return any(pool.network_devices for pool in pools)


def gpu_fabrics(cluster_name: str, cluster: ClusterSpec) -> dict[str, GpuFabric]:
    """Return the networks that a cluster's pools need, keyed by name; {} if no pool has additional network cards.

    A pool that GKE creates has additional cards only with DRANET. The result is cached in the cluster, since quotas and
    resources both need it.
    """
    if cluster_name not in cluster.fabrics:
        created = (pool for pool in auto_provisioned_pools(cluster_name, cluster) if pool.network_devices)
        by_name: dict[str, list[ExpandedPool]] = {}
        for pool in (*cluster_pools(cluster_name, cluster), *created):
            if name := fabric_name(pool):
                by_name.setdefault(name, []).append(pool)
        cluster.fabrics[cluster_name] = {name: _fabric(name, members, cluster) for name, members in by_name.items()}
    return cluster.fabrics[cluster_name]


def _fabric(name: str, pools: list[ExpandedPool], cluster: ClusterSpec) -> GpuFabric:
    widest = max(pools, key=lambda pool: pool.machine.nics)
    return GpuFabric(
        component=f"{name_in_cluster(widest.cluster, 'gpu_networks')}-{name}",
        name=name,
        gpudirect=widest.machine.gpudirect or "",
        region=region_of(cluster.location),
        labels=tuple(sorted({pool.accelerator.gke_label for pool in pools})),
        vpcs=() if widest.network_devices else tuple(_vpcs(name, widest, cluster.gpu_networks.range)),
    )


def _vpcs(name: str, pool: ExpandedPool, within: str) -> Iterator[GpuVpc]:
    machine = pool.machine
    mtu = machine.gpudirect_mtu or _MTU
    if not machine.rdma_nics:
        first = _SLOTS.get(machine.gpudirect or "", 0)
        for number in range(machine.nics - 1):
            nic = Nic(f"{name}-{number + 1}", _part(within, first + number))
            yield GpuVpc(name=nic.name, mtu=mtu, profile=None, nics=(nic,))
        return
    first = _RDMA_SLOTS + _RDMA_SLOTS_A_ZONE * _zone_index(_zone(pool))
    for number in range(machine.nics - 1 - machine.rdma_nics):
        nic = Nic(f"{name}-gvnic", _part(within, first + number))
        yield GpuVpc(name=nic.name, mtu=_MTU, profile=None, nics=(nic,))
    nics = (Nic(f"{name}-{number}", _part(within, first + 1 + number)) for number in range(machine.rdma_nics))
    yield GpuVpc(name=name, mtu=mtu, profile=f"{_zone(pool)}-{RDMA_PROFILE}", nics=tuple(nics))


def _zone(pool: ExpandedPool) -> str:
    """Return a pool's zone. If it lacks one in a regional cluster (an error), return a zone of its machine type."""
    offered = (zone for zone in sorted(pool.machine.zones) if region_of(zone) == pool.region)
    return pool.zone or next(offered, f"{pool.region}-a")


def _zone_index(zone: str) -> int:
    """Return a zone's index in its region, derived from its last letter. AI zones come after the others."""
    letter = ord(zone[-1]) - ord("a")
    return letter % _ZONES + (_ZONES if "ai" in zone.rpartition("-")[2] else 0)


@lru_cache(maxsize=4096)
def _part(within: str, number: int) -> str:
    """Return one of the 128 equal parts of an address range. If the range is too small, parts repeat."""
    whole = IPv4Network(within)
    prefix = min(whole.prefixlen + PARTS_BITS, whole.max_prefixlen)
    size = 1 << (whole.max_prefixlen - prefix)
    return f"{whole.network_address + number * size % whole.num_addresses}/{prefix}"
