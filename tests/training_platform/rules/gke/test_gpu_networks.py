"""Rules about the networks of GPUs: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, Together
from training_platform.config.reading.finding import Finding
from training_platform.rules import View
from training_platform.views.node_pool import Nic

NICS = tuple(Nic(f"net-{index}", None) for index in range(4))
Make = Callable[..., View]
Check = Callable[..., list[Finding]]
RDMA = {"machine_type": "a3-ultragpu-8g", "nics": (Nic("roce", None),)}
ONE_NIC = {"nics": (Nic("vpc", "subnet"),)}  # in the cluster's own subnet


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
        {"gpu_pool": {"nics": (Nic("a", None),)}, "cluster": {"multi_networking": False}},
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
    ("rdma-network", {"gpu_pool": {"nics": (Nic("vpc", None),)}}, (), 1),
    ("rdma-network", {"gpu_pool": {"nics": (Nic("vpc", None),)}, "network": {"mtu": 8244}}, (), 0),
    # A /29 has 8 addresses, of which 4 are reserved: 4 VMs fit, and 5 do not.
    ("gpu-network-room", {"gpu_pool": ONE_NIC, "subnet": {"cidr": "192.168.0.0/29"}}, (), 0),
    ("gpu-network-room", {"gpu_pool": {**ONE_NIC, "max_nodes": 5}, "subnet": {"cidr": "192.168.0.0/29"}}, (), 1),
    ("gpu-network-room", {"gpu_pool": {"max_nodes": 5}, "subnet": {"cidr": "192.168.0.0/29"}}, (), 0),
    ("gpu-network-range", {"gpu_pool": ONE_NIC}, (), 1),
    ("gpu-network-range", {"gpu_pool": {"nics": (Nic("vpc", "elsewhere"),)}}, (), 0),
    ("gpu-network-range", {}, (), 0),
    ("rdma-firewall", {}, (), 0),
    ("rdma-firewall", {"network": {"profile": "us-central1-a-vpc-roce"}}, (), 1),
    ("rdma-metal-subnets", {"network": {"profile": "us-central1-a-vpc-roce"}}, (), 0),
    ("rdma-metal-subnets", {"network": {"profile": "us-central1-a-vpc-roce-metal"}}, (), 1),
]


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
