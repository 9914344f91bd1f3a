"""What GPUDirect makes of a cluster's pools: networks, subnets and network cards, by the model alone."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations, product
from typing import Any

import pytest

from training_platform.catalog import MACHINE_TYPES, REGIONS
from training_platform.catalog.zones import zones_in
from training_platform.config.gpu_fabric import GpuFabric, fabric_name, gpu_fabrics
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.pools import ExpandedPool, cluster_pools

RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"}
TCPX = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a"}
TCPXO = {"machine_type": "a3-megagpu-8g", "zone": "us-central1-b"}
H200 = {"machine_type": "a3-ultragpu-8g", "zone": "us-central1-b", "capacity": "spot"}
B200 = {"machine_type": "a4-highgpu-8g", "zone": "us-central1-b", "capacity": "spot"}


def cluster(pools: dict[str, dict[str, Any]], **fields: Any) -> ClusterSpec:
    return ClusterSpec.model_validate({"location": "us-central1", "subnet": RANGES, "node_pools": pools, **fields})


def fabrics(**pools: dict[str, Any]) -> dict[str, GpuFabric]:
    return gpu_fabrics("c", cluster(pools))


def pool(spec: dict[str, Any]) -> ExpandedPool:
    (only,) = cluster_pools("c", cluster({"p": spec}))
    return only


@pytest.mark.parametrize(
    ("spec", "name", "vpcs", "cards"),
    [
        (TCPX, "tcpx", 4, 4),
        ({"machine_type": "a3-edgegpu-8g", "zone": "us-central1-a"}, "tcpx", 4, 4),
        (TCPXO, "tcpxo", 8, 8),
        (H200, "rdma-us-central1-b", 2, 1 + 8),
        (B200, "rdma-us-central1-b", 2, 1 + 8),
        (
            {
                "machine_type": "a4x-highgpu-4g",
                "zone": "us-central1-a",
                "capacity": "reservation",
                "reservation": "gb200",
            },
            "rdma-us-central1-a",
            2,
            1 + 4,
        ),
    ],
)
def test_a_vm_has_a_card_for_each_interface_of_its_gpudirect(
    spec: dict[str, Any], name: str, vpcs: int, cards: int
) -> None:
    ((found, fabric),) = fabrics(p=spec).items()

    assert found == name
    assert len(fabric.vpcs) == vpcs
    assert len(fabric.nics(pool(spec))) == cards


@pytest.mark.parametrize("spec", [{**TCPX, "gpu_direct": False}, {"machine_type": "a2-highgpu-8g"}])
def test_a_pool_without_gpudirect_has_no_networks(spec: dict[str, Any]) -> None:
    assert fabrics(p=spec) == {}
    assert fabric_name(pool(spec)) is None


def test_pools_of_one_kind_share_their_networks() -> None:
    found = fabrics(one=TCPX, two={**TCPX, "zone": "us-central1-c"}, three=TCPXO, four=H200, five=B200)

    assert list(found) == ["tcpx", "tcpxo", "rdma-us-central1-b"]
    assert found["rdma-us-central1-b"].labels == ("nvidia-b200", "nvidia-h200-141gb")


def test_rdma_has_one_network_of_the_zones_profile_and_one_for_its_second_gvnic() -> None:
    gvnic, rdma = fabrics(p=H200)["rdma-us-central1-b"].vpcs

    assert (gvnic.profile, gvnic.mtu, len(gvnic.nics)) == (None, 8896, 1)
    assert (rdma.profile, rdma.mtu, len(rdma.nics)) == ("us-central1-b-vpc-roce", 8896, 8)


def test_networks_of_tcpx_take_the_packets_that_it_sends() -> None:
    assert {vpc.mtu for fabric in fabrics(one=TCPX, two=TCPXO).values() for vpc in fabric.vpcs} == {8244}


def test_no_two_subnets_of_a_cluster_overlap() -> None:
    zones = ("us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f", "us-central1-ai1a")
    rdma = {f"rdma-{number}": {**H200, "zone": zone} for number, zone in enumerate(zones)}
    found = fabrics(one=TCPX, two=TCPXO, **rdma)
    cidrs = [IPv4Network(nic.cidr) for fabric in found.values() for vpc in fabric.vpcs for nic in vpc.nics]

    assert len(cidrs) == 4 + 8 + 5 * 9
    assert not [pair for pair in combinations(cidrs, 2) if pair[0].overlaps(pair[1])]
    assert all(cidr.subnet_of(IPv4Network("192.168.0.0/16")) and cidr.prefixlen == 23 for cidr in cidrs)


@pytest.mark.parametrize("region", sorted(REGIONS))
def test_every_kind_of_gpudirect_in_every_zone_of_a_region_has_subnets_of_its_own(region: str) -> None:
    kinds = [name for name, machine in MACHINE_TYPES.items() if machine.gpudirect]
    pools = {
        f"p{number}": {"machine_type": kind, "zone": zone, "capacity": "reservation", "reservation": "any"}
        for number, (kind, zone) in enumerate(product(kinds, zones_in(region)))
    }
    found = gpu_fabrics("c", cluster(pools, location=region))
    cidrs = [IPv4Network(nic.cidr) for fabric in found.values() for vpc in fabric.vpcs for nic in vpc.nics]

    assert set(found) == {"tcpx", "tcpxo", *(f"rdma-{zone}" for zone in zones_in(region))}
    assert len(cidrs) == len(set(cidrs)) == 4 + 8 + 9 * len(zones_in(region))
    assert {cidr.prefixlen for cidr in cidrs} == {16 + 7}
    assert all(cidr.subnet_of(IPv4Network("192.168.0.0/16")) for cidr in cidrs)


def test_another_pool_moves_no_subnet() -> None:
    assert fabrics(two=TCPXO)["tcpxo"].vpcs == fabrics(one=TCPX, rdma=H200, two=TCPXO)["tcpxo"].vpcs


def test_a_larger_range_has_larger_subnets() -> None:
    wide = gpu_fabrics("c", cluster({"p": TCPX}, gpu_networks={"range": "172.16.0.0/12"}))

    assert [nic.cidr for vpc in wide["tcpx"].vpcs for nic in vpc.nics][:2] == ["172.16.0.0/19", "172.16.32.0/19"]


def test_a_range_too_small_is_no_exception() -> None:
    tiny = gpu_fabrics("c", cluster({"p": TCPXO}, gpu_networks={"range": "255.255.255.254/31"}))

    assert len(tiny["tcpxo"].vpcs) == 8


def test_a_pool_that_names_no_zone_still_expands() -> None:
    assert list(fabrics(p={"machine_type": "a3-ultragpu-8g", "capacity": "spot"})) == ["rdma-us-central1-b"]
