"""Where VMs come from: reservations, compute classes, and the networks between GPUs."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from itertools import product
from typing import Any

import pytest
from pydantic import ValidationError

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.zones import zones_in
from training_platform.config.expansion import ExpandedPool, auto_provisioned_chips, cluster_pools, flavors, pool_labels
from training_platform.config.gpu_fabric import GpuFabric, fabric_name, gpu_fabrics
from training_platform.config.model.capacity import charged_as
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.node_pool import NodePoolSpec


def pool(**fields: Any) -> NodePoolSpec:
    return NodePoolSpec.model_validate_json(json.dumps({"machine_type": "a3-highgpu-8g", **fields}))


def reserved(reservation: Any) -> tuple[str, str | None]:
    reservation_spec = pool(capacity="reservation", reservation=reservation).reservation
    assert reservation_spec is not None
    return reservation_spec.affinity, reservation_spec.path


@pytest.mark.parametrize(
    ("reservation", "path"),
    [
        ("h100", "h100"),
        ({"name": "h100"}, "h100"),
        ({"name": "h100", "project": "example-shared"}, "projects/example-shared/reservations/h100"),
        ({"name": "h100", "block": "b1"}, "h100/reservationBlocks/b1"),
        (
            {"name": "h100", "project": "example-shared", "block": "b1", "sub_block": "s1"},
            "projects/example-shared/reservations/h100/reservationBlocks/b1/reservationSubBlocks/s1",
        ),
    ],
)
def test_a_reservation_is_called_as_gke_calls_it(reservation: Any, path: str) -> None:
    assert reserved(reservation) == ("SPECIFIC_RESERVATION", path)


def test_any_reservation_has_no_name() -> None:
    assert reserved("any") == reserved({"name": "*"}) == ("ANY_RESERVATION", None)
    assert reserved({"name": "any"}) == ("SPECIFIC_RESERVATION", "any")


def test_queued_vms_are_charged_as_flex_start_vms() -> None:
    assert pool(capacity="queued-provisioning").charged == "flex-start"
    assert charged_as("spot") == "spot"


@pytest.mark.parametrize(
    ("fields", "path", "nearest"),
    [
        ({"capacity": "spot", "reservation": "h100"}, ("reservation",), "capacity: reservation"),
        ({"capacity": "queued-provisioning", "reservation": "h100"}, ("reservation",), "capacity: reservation"),
        ({"capacity": "reservation"}, ("capacity",), None),
    ],
)
def test_a_reservation_goes_only_with_reserved_vms(fields: Any, path: tuple[str, ...], nearest: str | None) -> None:
    with pytest.raises(ValidationError) as refused:
        pool(**fields)

    (error,) = refused.value.errors()
    assert error["ctx"]["at"] == path
    assert error["ctx"]["nearest"] == nearest
    assert error["ctx"]["allowed"]


@pytest.mark.parametrize(
    "reservation",
    [
        {},
        {"block": "b1"},
        {"name": "*", "block": "b1"},
        {"name": "h100", "sub_block": "s1"},
        {"name": "h100", "starts": "2026-12-02", "ends": "2026-12-01"},
        {"name": "h100", "starts": "2026-02-30"},
        {"name": "h100", "starts": "20261201"},
        "H100",
    ],
)
def test_half_a_reservation_is_refused(reservation: Any) -> None:
    with pytest.raises(ValidationError):
        reserved(reservation)


def test_a_future_reservation_may_last_a_day() -> None:
    assert reserved({"name": "h100", "starts": "2026-12-01", "ends": "2026-12-01"}) == ("SPECIFIC_RESERVATION", "h100")


H100 = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a"}
POOLS = {
    "paid": {**H100, "capacity": "reservation", "reservation": "h100", "max_nodes": 2},
    "cheap": {**H100, "capacity": "spot", "max_nodes": 3},
    "other": {**H100, "max_nodes": 1},
}
CLASS = {"priorities": [{"node_pools": ["paid"]}, {"machine_type": "a3-megagpu-8g", "capacity": "flex-start"}]}
LIMITS = {"cpu": 5000, "memory_gb": 50_000, "accelerators": {"nvidia-h100-80gb": 64, "nvidia-h100-mega-80gb": 32}}


def cluster(**fields: Any) -> ClusterSpec:
    subnet = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
    whole = {"location": "us-central1", "subnet": subnet, "node_pools": POOLS, **fields}
    return ClusterSpec.model_validate_json(json.dumps(whole))


def test_the_pools_of_a_class_are_one_flavor_of_its_label() -> None:
    class_flavors = flavors("main", cluster(compute_classes={"h": {"priorities": [{"node_pools": ["cheap", "paid"]}]}}))

    assert set(class_flavors) == {"class-h", "h100"}
    assert class_flavors["class-h"].capacity_chips == (2 + 3) * 8
    assert class_flavors["class-h"].node_labels == {"cloud.google.com/compute-class": "h"}
    assert [pool.name for pool in class_flavors["class-h"].pools] == ["cheap", "paid"]
    assert class_flavors["class-h"].capacity == "spot"


def test_nodes_of_a_class_carry_its_label_and_others_do_not() -> None:
    labels = {pool.name: pool_labels(pool) for pool in cluster_pools("main", cluster(compute_classes={"h": CLASS}))}

    assert labels["paid"]["cloud.google.com/compute-class"] == "h"
    assert "cloud.google.com/compute-class" not in labels["other"]


def test_a_class_may_grow_by_what_the_limit_of_its_own_accelerator_leaves() -> None:
    class_flavors = flavors("main", cluster(compute_classes={"h": CLASS}, auto_provisioning=LIMITS))

    assert class_flavors["class-h"].capacity_chips == 2 * 8 + 32


def test_the_clusters_own_pools_use_up_a_limit() -> None:
    assert auto_provisioned_chips("main", cluster(auto_provisioning=LIMITS)) == {
        "nvidia-h100-80gb": 64 - (2 + 3 + 1) * 8,
        "nvidia-h100-mega-80gb": 32,
    }


def test_a_limit_below_the_clusters_own_pools_adds_nothing() -> None:
    low = {**LIMITS, "accelerators": {"nvidia-h100-80gb": 40}}

    assert auto_provisioned_chips("main", cluster(auto_provisioning=low)) == {"nvidia-h100-80gb": 0}


@pytest.mark.parametrize(
    ("accelerators", "disk"),
    [
        ({"nvidia-h100-80gb": 8}, "pd-balanced"),
        ({"tpu-v6e-slice": 8}, "hyperdisk-balanced"),
        ({"nvidia-h100-80gb": 8, "tpu-v6e-slice": 8}, "hyperdisk-balanced"),
        ({"nvidia-l4": 8, "tpu-v6e-slice": 0}, "pd-balanced"),
    ],
)
def test_new_pools_have_a_disk_that_machines_of_every_limit_take(accelerators: dict[str, int], disk: str) -> None:
    spec = cluster(auto_provisioning={**LIMITS, "accelerators": accelerators}).auto_provisioning

    assert spec is not None
    assert spec.boot_disk_type == disk


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({"h": {"priorities": [{"node_pools": ["payed"]}]}}, "is not a node pool of this cluster"),
        ({"h": CLASS, "i": {"priorities": [{"node_pools": ["paid"]}]}}, "is already in compute class h"),
        (
            {"h": {"priorities": [{"node_pools": ["paid"]}, {"machine_type": "a2-highgpu-4g"}]}},
            "whose VMs differ for a job",
        ),
        (
            {"h": {"priorities": [{"node_pools": ["paid"], "machine_type": "a3-highgpu-8g"}]}},
            "either node pools or a machine type",
        ),
        ({"h": {"priorities": [{"node_pools": ["paid"], "capacity": "spot"}]}}, "either node pools or a machine type"),
        ({"h": {"priorities": [{}]}}, "either node pools or a machine type"),
        ({"h": {"priorities": [{"machine_type": "ct5lp-hightpu-4t"}]}}, "is missing: ct5lp-hightpu-4t has TPUs"),
        (
            {"h": {"priorities": [{"machine_type": "a3-highgpu-8g", "capacity": "reservation"}]}},
            "the field `reservation` is missing",
        ),
    ],
)
def test_a_class_that_no_job_could_use_is_refused(classes: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        cluster(compute_classes=classes)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("nvidia-h100-80g", "nvidia-h100-80gb"),
        ("tpu-v5e", "tpu-v5-lite-podslice"),
        ("v5p", "tpu-v5p-slice"),
        ("a100-40", "nvidia-tesla-a100"),
    ],
)
def test_the_nearest_name_is_given_for_a_limit_that_gke_does_not_know(name: str, nearest: str) -> None:
    with pytest.raises(ValidationError) as refused:
        cluster(auto_provisioning={**LIMITS, "accelerators": {name: 8}})

    (error,) = refused.value.errors()
    assert error["ctx"]["nearest"] == nearest


RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"}
TCPX = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a"}
TCPXO = {"machine_type": "a3-megagpu-8g", "zone": "us-central1-b"}
H200 = {"machine_type": "a3-ultragpu-8g", "zone": "us-central1-b", "capacity": "spot"}
B200 = {"machine_type": "a4-highgpu-8g", "zone": "us-central1-b", "capacity": "spot"}


def cluster_of(pools: dict[str, dict[str, Any]], **fields: Any) -> ClusterSpec:
    spec = {"location": "us-central1", "subnet": RANGES, "accelerator_networks": "multi-network", "node_pools": pools}
    return ClusterSpec.model_validate({**spec, **fields})


def test_pools_with_both_networks_by_default_need_the_word() -> None:
    pools = {"mega": TCPXO, "ultra": H200}
    cluster_of(pools)

    with pytest.raises(
        ValidationError, match=r"ultra \(a3-ultragpu-8g\) has DRANET by default, and mega \(a3-megagpu-8g\)"
    ):
        cluster_of(pools, accelerator_networks=None)


def fabrics(**pools: dict[str, Any]) -> dict[str, GpuFabric]:
    return gpu_fabrics("c", cluster_of(pools))


def gpu_pool(spec: dict[str, Any]) -> ExpandedPool:
    (only,) = cluster_pools("c", cluster_of({"p": spec}))
    return only


@pytest.mark.parametrize(
    ("spec", "name", "vpcs", "cards"),
    [
        (TCPX, "tcpx", 4, 4),
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
    ((fabric_name, fabric),) = fabrics(p=spec).items()

    assert fabric_name == name
    assert len(fabric.vpcs) == vpcs
    assert len(fabric.nics(gpu_pool(spec))) == cards


@pytest.mark.parametrize("spec", [{**TCPX, "gpu_direct": False}, {"machine_type": "a2-highgpu-8g"}])
def test_a_pool_without_gpudirect_has_no_networks(spec: dict[str, Any]) -> None:
    assert fabrics(p=spec) == {}
    assert fabric_name(gpu_pool(spec)) is None


def test_pools_of_one_kind_share_their_networks() -> None:
    fabrics_by_name = fabrics(one=TCPX, two={**TCPX, "zone": "us-central1-c"}, three=TCPXO, four=H200, five=B200)

    assert list(fabrics_by_name) == ["tcpx", "tcpxo", "rdma-us-central1-b"]
    assert fabrics_by_name["rdma-us-central1-b"].labels == ("nvidia-b200", "nvidia-h200-141gb")


def test_rdma_has_one_network_of_the_zones_profile_and_one_for_its_second_gvnic() -> None:
    gvnic, rdma = fabrics(p=H200)["rdma-us-central1-b"].vpcs

    assert (gvnic.profile, gvnic.mtu, len(gvnic.nics)) == (None, 8896, 1)
    assert (rdma.profile, rdma.mtu, len(rdma.nics)) == ("us-central1-b-vpc-roce", 8896, 8)


def test_networks_of_tcpx_take_the_packets_that_it_sends() -> None:
    assert {vpc.mtu for fabric in fabrics(one=TCPX, two=TCPXO).values() for vpc in fabric.vpcs} == {8244}


@pytest.mark.parametrize("region", ["us-central1", "us-central2"])  # of the most zones, and of one
def test_every_kind_of_gpudirect_in_every_zone_of_a_region_has_subnets_of_its_own(region: str) -> None:
    kinds = [name for name, machine in MACHINE_TYPES.items() if machine.gpudirect]
    pools = {
        f"p{number}": {"machine_type": kind, "zone": zone, "capacity": "reservation", "reservation": "any"}
        for number, (kind, zone) in enumerate(product(kinds, zones_in(region)))
    }
    fabrics_by_name = gpu_fabrics("c", cluster_of(pools, location=region))
    vpcs = [vpc for fabric in fabrics_by_name.values() for vpc in fabric.vpcs]
    cidrs = [IPv4Network(nic.cidr) for vpc in vpcs for nic in vpc.nics]

    assert set(fabrics_by_name) == {"tcpx", "tcpxo", *(f"rdma-{zone}" for zone in zones_in(region))}
    assert len(cidrs) == len(set(cidrs)) == 4 + 8 + 9 * len(zones_in(region))
    assert {cidr.prefixlen for cidr in cidrs} == {16 + 7}
    assert all(cidr.subnet_of(IPv4Network("192.168.0.0/16")) for cidr in cidrs)


def test_another_pool_moves_no_subnet() -> None:
    assert fabrics(two=TCPXO)["tcpxo"].vpcs == fabrics(one=TCPX, rdma=H200, two=TCPXO)["tcpxo"].vpcs


@pytest.mark.parametrize(
    ("zone", "part"), [("us-central1-a", 12), ("us-central1-b", 12 + 9), ("us-central1-ai1a", 12 + 6 * 9)]
)
def test_subnets_for_rdma_stay_in_the_place_of_their_zone(zone: str, part: int) -> None:
    gvnic, _ = fabrics(p={**H200, "zone": zone})[f"rdma-{zone}"].vpcs

    assert gvnic.nics[0].cidr == f"192.168.{2 * part}.0/23"


def test_a_larger_range_has_larger_subnets() -> None:
    wide = gpu_fabrics("c", cluster_of({"p": TCPX}, gpu_networks={"range": "172.16.0.0/12"}))

    assert [nic.cidr for vpc in wide["tcpx"].vpcs for nic in vpc.nics][:2] == ["172.16.0.0/19", "172.16.32.0/19"]


def test_a_range_too_small_is_no_exception() -> None:
    tiny = gpu_fabrics("c", cluster_of({"p": TCPXO}, gpu_networks={"range": "255.255.255.254/31"}))

    assert len(tiny["tcpxo"].vpcs) == 8


def test_a_pool_that_names_no_zone_still_expands() -> None:
    assert list(fabrics(p={"machine_type": "a3-ultragpu-8g", "capacity": "spot"})) == ["rdma-us-central1-b"]


@pytest.mark.parametrize(
    "fields",
    [
        {"taints": {"a b": {"value": "x"}}},
        {"taints": {"team": {"value": "a b"}}},
        {"labels": {"x/y/z": "c"}},
        {"labels": {"team": "-a"}},
        {"labels": {"t" * 64: "a"}},
    ],
)
def test_labels_and_taints_of_nodes_have_the_form_of_kubernetes(fields: Any) -> None:
    with pytest.raises(ValidationError, match="should match pattern"):
        pool(**fields)


def test_keys_of_other_domains_and_empty_values_are_labels() -> None:
    labels = {"example.com/Team_1": "A.b-c", "t" * 63: ""}

    assert pool(labels=labels).labels == labels


def test_a_gpu_is_as_many_places_as_it_has_partitions_and_each_of_them_has_clients() -> None:
    a100 = {"machine_type": "a2-highgpu-1g", "zone": "us-central1-a", "partition": "1g.5gb"}
    shared = {**a100, "sharing": {"strategy": "time-sharing", "max_clients": 2}}

    pools = cluster_pools("c", cluster_of({"whole": {**a100, "partition": None}, "parts": a100, "shared": shared}))

    assert {pool.name: pool.places_per_gpu for pool in pools} == {"whole": 1, "parts": 7, "shared": 7 * 2}
