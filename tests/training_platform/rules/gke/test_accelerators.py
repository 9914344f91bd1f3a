"""Rules of GPUs, TPUs, and the networks between GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, Together
from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import Planned
from training_platform.resources.resource_types import INSTANCE
from training_platform.rules import View, views_of_plan
from training_platform.views.cluster import VmView
from training_platform.views.node_pool import PoolNic

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, None),
        ({"accelerator_count": 7}, "section.machine_type"),
        ({"accelerator_count": 9}, "section.machine_type"),
        ({"accelerator_count": None}, "section.machine_type"),
        ({"accelerator_type": None}, "section.machine_type"),
        ({"accelerator_type": "nvidia-tesla-a100"}, "section.machine_type"),
        ({"machine_type": "e2-standard-4"}, "section.accelerator"),
        ({"machine_type": "e2-standard-4", "accelerator_type": None}, None),
        ({"machine_type": "ct5lp-hightpu-4t"}, "section.machine_type"),
    ],
)
def test_gpus_are_those_of_the_machine(check: Check, gpu_pool: Make, changes: dict[str, Any], path: str | None) -> None:
    found = check("gpu-fixed-pair", gpu_pool(**changes))

    assert [finding.path for finding in found] == ([path] if path else [])


@pytest.mark.parametrize(
    ("machine", "count", "nearest"),
    [
        ("n1-standard-8", 1, []),
        ("n1-standard-8", 3, ["2"]),
        ("n1-standard-8", 4, []),
        ("n1-standard-96", 1, ["4"]),
        ("n2-standard-8", 1, [None]),
    ],
)
def test_gpus_are_attached_in_numbers_that_the_machine_takes(
    check: Check, gpu_pool: Make, machine: str, count: int, nearest: list[str | None]
) -> None:
    pool = gpu_pool(machine_type=machine, accelerator_type="nvidia-tesla-t4", accelerator_count=count)

    assert [finding.nearest for finding in check("gpu-fixed-pair", pool)] == nearest


@pytest.mark.parametrize(
    ("machine", "topology", "nearest"),
    [
        ("ct5lp-hightpu-4t", "4x8", None),
        ("ct5lp-hightpu-4t", "16x16", None),
        ("ct5lp-hightpu-4t", "8x4", "4x8"),
        ("ct5lp-hightpu-4t", "3x4", "4x4"),
        ("ct5lp-hightpu-4t", "16x32", "16x16"),
        ("ct5lp-hightpu-8t", "4x4", "2x4; or machine type ct5lp-hightpu-4t for 4x4"),
        ("ct4p-hightpu-4t", "2x2x4", None),
        ("ct4p-hightpu-4t", "8x4x4", None),
        ("ct4p-hightpu-4t", "16x16x16", None),
        ("ct4p-hightpu-4t", "16x16x20", "16x16x16"),
        ("ct4p-hightpu-4t", "4x2x2", "2x2x4"),
        ("ct4p-hightpu-4t", "4x8", "2x4x4"),
    ],
)
def test_topology_is_one_that_the_machine_makes(
    check: Check, slice_pool: Make, machine: str, topology: str, nearest: str | None
) -> None:
    found = check("tpu-topology", slice_pool(machine_type=machine, tpu_topology=topology))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])
    assert {finding.path for finding in found} <= {"section.topology"}


def test_topology_on_gpus_is_found(check: Check, gpu_pool: Make) -> None:
    assert len(check("tpu-topology", gpu_pool(tpu_topology="2x4"))) == 1


@pytest.mark.parametrize(("topology", "count"), [(None, 0), ("2x4", 1)])
def test_one_host_slice_has_no_placement(check: Check, host_pool: Make, topology: str | None, count: int) -> None:
    assert len(check("tpu-single-host-placement", host_pool(tpu_topology=topology))) == count


def test_two_hosts_with_the_topology_of_one_larger_host_are_a_slice(check: Check, slice_pool: Make) -> None:
    assert check("tpu-single-host-placement", slice_pool(tpu_topology="2x4", max_nodes=2)) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"max_nodes": 8, "min_nodes": 8, "initial_nodes": 8}, None),
        ({"node_count": 0, "max_nodes": None, "min_nodes": None}, None),
        ({"node_count": 8, "max_nodes": None, "min_nodes": None}, None),
        ({"node_count": 16}, "section"),
        ({"initial_nodes": 7}, "section"),
        ({"min_nodes": 1}, "section.min_slices"),
        ({"max_nodes": 7}, "section.slices"),
        ({"max_nodes": 9}, "section.slices"),
        ({"max_nodes": 16}, "section.slices"),
        ({"total_max_nodes": 8}, "section.slices"),
        ({"total_min_nodes": 0}, "section.min_slices"),
    ],
)
def test_pool_of_a_slice_has_all_of_its_hosts_or_none(
    check: Check, slice_pool: Make, changes: dict[str, int | None], path: str | None
) -> None:
    found = check("tpu-slice-nodes", slice_pool(**changes))

    assert [finding.path for finding in found] == ([path] if path else [])


def test_one_host_slices_may_be_any_number(check: Check, host_pool: Make) -> None:
    assert check("tpu-slice-nodes", host_pool(max_nodes=7, min_nodes=3, total_max_nodes=9)) == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, None),
        ({"zones": (), "location": "us-central1-a"}, None),
        ({"zones": ()}, "section.zone"),
        ({"zones": ("us-central1-a", "us-central1-b")}, "section.zone"),
        ({"upgrade_strategy": "BLUE_GREEN"}, "section.upgrades.strategy"),
        ({"zones": (), "placement_type": None}, None),
    ],
)
def test_compact_placement_is_in_one_zone(
    check: Check, slice_pool: Make, changes: dict[str, object], path: str | None
) -> None:
    found = check("placement-one-zone", slice_pool(**changes))

    assert [finding.path for finding in found] == ([path] if path else [])


NICS = tuple(PoolNic(f"net-{index}", None) for index in range(4))
RDMA = {"machine_type": "a3-ultragpu-8g", "nics": (PoolNic("roce", None),)}
ONE_NIC = {"nics": (PoolNic("vpc", "subnet"),)}  # in the cluster's own subnet


ALONE: list[Alone] = [
    ("gpudirect-interfaces", "gpu_pool", {}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"nics": NICS}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}}, 1),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}, "max_nodes": 1}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}, "max_nodes": 2}, 1),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}, "network_profile": "auto"}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"node_labels": {}, "machine_type": "a2-highgpu-8g"}, 0),
    ("gpudirect-interfaces", "gpu_pool", {"nics": NICS[:3]}, 1),
    ("gpudirect-interfaces", "gpu_pool", {"nics": NICS, "machine_type": "a3-megagpu-8g"}, 1),
    ("gpudirect-own-networks", "gpu_pool", {"nics": NICS}, 0),
    ("gpudirect-own-networks", "gpu_pool", {"nics": (*NICS[:3], NICS[0])}, 1),
    ("gpudirect-own-networks", "gpu_pool", {"nics": (*NICS, NICS[0]), "machine_type": "a3-ultragpu-8g"}, 0),
    ("accelerator-network-profile", "gpu_pool", {}, 0),
    ("accelerator-network-profile", "gpu_pool", {"network_profile": "auto"}, 0),
    ("accelerator-network-profile", "gpu_pool", {"network_profile": "own"}, 1),
    ("accelerator-network-profile", "gpu_pool", {"network_profile": "auto", "nics": NICS}, 1),
    ("accelerator-network-profile", "gpu_pool", {"network_profile": "auto", "machine_type": "a2-highgpu-8g"}, 1),
    ("network-driver-label", "gpu_pool", {}, 0),
    ("network-driver-label", "gpu_pool", {"network_profile": "auto"}, 1),
    (
        "network-driver-label",
        "gpu_pool",
        {"network_profile": "auto", "node_labels": {"cloud.google.com/gke-networking-dra-driver": "true"}},
        0,
    ),
]


TOGETHER: list[Together] = [
    ("dranet-cluster", {"gpu_pool": {"network_profile": "auto"}}, (), 0),
    ("dranet-cluster", {"cluster": {"datapath": None}}, (), 0),
    ("dranet-cluster", {"gpu_pool": {"network_profile": "auto"}, "cluster": {"datapath": None}}, (), 1),
    (
        "dranet-cluster",
        {"gpu_pool": {"nics": (PoolNic("a", None),)}, "cluster": {"multi_networking": False}},
        (),
        1,
    ),
    ("rdma-network", {}, (), 0),
    ("rdma-network", {"gpu_pool": RDMA}, (), 0),
    ("rdma-network", {"gpu_pool": RDMA, "network": {"name": "roce", "profile": "us-central1-a-vpc-roce"}}, (), 0),
    ("rdma-network", {"gpu_pool": RDMA, "network": {"name": "roce", "profile": "us-central1-b-vpc-roce"}}, (), 1),
    (
        "rdma-network",
        {"gpu_pool": RDMA, "network": {"name": "roce", "profile": "us-central1-a-vpc-roce", "mtu": 1460}},
        (),
        1,
    ),
    ("rdma-network", {"gpu_pool": RDMA, "network": {"name": "roce"}}, (), 1),
    (
        "rdma-network",
        {
            "gpu_pool": RDMA,
            "network": {"name": "roce", "profile": "us-central1-a-vpc-roce"},
            "subnet": {"network": "roce"},
        },
        (),
        1,
    ),
    ("rdma-network", {"gpu_pool": {"nics": (PoolNic("vpc", None),)}}, (), 1),
    ("rdma-network", {"gpu_pool": {"nics": (PoolNic("vpc", None),)}, "network": {"mtu": 8244}}, (), 0),
    # A /29 has 8 addresses, of which 4 are reserved: 4 VMs fit, and 5 do not.
    ("gpu-network-room", {"gpu_pool": ONE_NIC, "subnet": {"cidr": "192.168.0.0/29"}}, (), 0),
    ("gpu-network-room", {"gpu_pool": {**ONE_NIC, "max_nodes": 5}, "subnet": {"cidr": "192.168.0.0/29"}}, (), 1),
    ("gpu-network-room", {"gpu_pool": {"max_nodes": 5}, "subnet": {"cidr": "192.168.0.0/29"}}, (), 0),
    ("gpu-network-range", {"gpu_pool": ONE_NIC}, (), 1),
    ("gpu-network-range", {"gpu_pool": {"nics": (PoolNic("vpc", "elsewhere"),)}}, (), 0),
    ("gpu-network-range", {}, (), 0),
    ("rdma-firewall", {}, (), 0),
    ("rdma-firewall", {"network": {"profile": "us-central1-a-vpc-roce"}}, (), 1),
    ("rdma-metal-subnets", {"network": {"profile": "us-central1-a-vpc-roce"}}, (), 0),
    ("rdma-metal-subnets", {"network": {"profile": "us-central1-a-vpc-roce-metal"}}, (), 1),
]


def vm(**inputs: Any) -> View:
    """Return a VM with one A100."""
    planned = Planned(
        stack="dev",
        type=INSTANCE,
        name="vm",
        inputs={"machineType": "a2-highgpu-1g", "zone": "us-central1-a", **inputs},
    )
    (view,) = (view for view in views_of_plan([planned]) if isinstance(view, VmView))
    return view


@pytest.mark.parametrize(("maintenance", "findings"), [("MIGRATE", 1), ("TERMINATE", 0), (None, 0)])
def test_a_vm_with_gpus_is_stopped_and_not_moved(check: Check, maintenance: str | None, findings: int) -> None:
    assert len(check("vm-migration", vm(scheduling={"onHostMaintenance": maintenance}))) == findings


@pytest.mark.parametrize(("count", "findings"), [(0, 0), (1, 0), (3, 1)])
def test_a_vm_has_as_many_local_ssds_as_its_machine_takes(check: Check, count: int, findings: int) -> None:
    assert len(check("vm-local-ssds", vm(scratchDisks=[{"interface": "NVME"}] * count))) == findings


@pytest.mark.parametrize(("mtu", "severity"), [(1460, "error"), (None, "warning"), (8896, None)])
def test_another_mtu_is_refused_for_rdma_and_one_that_is_not_written_only_said(
    mtu: int | None, severity: str | None, run: Callable[..., list[Finding]]
) -> None:
    network = {"name": "roce", "profile": "us-central1-a-vpc-roce", "mtu": mtu}

    assert [each.severity for each in run("rdma-network", (), gpu_pool=RDMA, network=network)] == (
        [severity] if severity else []
    )


@pytest.mark.parametrize(("count", "findings"), [(7, 1), (8, 0)])
def test_a_vpc_for_rdma_has_a_subnet_for_each_interface(
    check: Check, flawless: dict[str, Make], count: int, findings: int
) -> None:
    vpc = flawless["network"](name="roce", profile="us-central1-a-vpc-roce")
    subnets = [flawless["subnet"](name=f"roce-{index}", network="roce") for index in range(count)]

    assert len(check("rdma-network", vpc, flawless["gpu_pool"](**RDMA), *subnets)) == findings
