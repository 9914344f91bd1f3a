"""Rules of GPUs, TPUs, and the networks between GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.builders import check, example, gpu_pool, host_pool, network, slice_pool, subnet
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.resources.resource_types import INSTANCE
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import View, views_of_plan
from training_platform.views.cluster import VmView
from training_platform.views.node_pool import PoolNic

NICS = tuple(PoolNic(f"net-{index}", None) for index in range(4))
RDMA = {"machine_type": "a3-ultragpu-8g", "nics": (PoolNic("roce", None),)}
ONE_NIC = {"nics": (PoolNic("vpc", "subnet"),)}  # in the cluster's own subnet


def vm(**inputs: Any) -> View:
    """Return a VM with one A100."""
    planned = StackResource(
        stack="dev",
        type=INSTANCE,
        name="vm",
        inputs={"machineType": "a2-highgpu-1g", "zone": "us-central1-a", **inputs},
    )
    (view,) = (view for view in views_of_plan([planned]) if isinstance(view, VmView))
    return view


T4 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4"}
V4 = {"machine_type": "ct4p-hightpu-4t"}
NO_NUMBER = {"min_nodes": None, "max_nodes": None}


TABLE = [
    Rule(
        "gpu-fixed-pair",
        gpu_pool,
        passes=[
            {"machine_type": "e2-standard-4", "accelerator_type": None},
            {**T4, "accelerator_count": 1},
            {**T4, "accelerator_count": 4},
        ],
        finds=[
            Found({"accelerator_count": 7}, "8", path="machine_type"),
            {"accelerator_count": 9},
            Found({"accelerator_type": None}, "8 of nvidia-h100-80gb", severity="warning"),
            Found({"accelerator_type": "nvidia-tesla-a100"}, "nvidia-h100-80gb", path="machine_type"),
            Found({"machine_type": "e2-standard-4"}, path="accelerator"),
            {"machine_type": "ct5lp-hightpu-4t"},
            Found({**T4, "accelerator_count": 3}, "2"),
            Found({**T4, "machine_type": "n1-standard-96", "accelerator_count": 1}, "4"),
        ],
    ),
    Rule(
        "tpu-topology",
        slice_pool,
        passes=[{"tpu_topology": "16x16"}, {**V4, "tpu_topology": "8x4x4"}, {**V4, "tpu_topology": "16x16x16"}],
        finds=[
            Found({"tpu_topology": "8x4"}, "4x8", path="topology"),
            Found({"tpu_topology": "3x4"}, "4x4"),
            Found({"tpu_topology": "16x32"}, "16x16"),
            Found(
                {"machine_type": "ct5lp-hightpu-8t", "tpu_topology": "4x4"},
                "2x4; or machine type ct5lp-hightpu-4t for 4x4",
            ),
            Found({**V4, "tpu_topology": "16x16x20"}, "16x16x16"),
            Found({**V4, "tpu_topology": "4x2x2"}, "2x2x4"),
            Found({**V4, "tpu_topology": "4x8"}, "2x4x4"),
            {"machine_type": "a3-highgpu-8g"},
        ],
    ),
    Rule("tpu-single-host-placement", host_pool, passes=[], finds=[{"tpu_topology": "2x4"}]),
    Rule("tpu-single-host-placement", slice_pool, passes=[{"tpu_topology": "2x4", "max_nodes": 2}], finds=[]),
    Rule("tpu-slice-nodes", host_pool, passes=[{"min_nodes": 3, "max_nodes": 7, "total_max_nodes": 9}], finds=[]),
    Rule(
        "tpu-slice-nodes",
        slice_pool,
        passes=[
            {"initial_nodes": 8, "min_nodes": 8},
            {"node_count": 0, **NO_NUMBER},
            {"node_count": 8, **NO_NUMBER},
        ],
        finds=[
            Found({"node_count": 16}, "8", path=""),
            {"initial_nodes": 7},
            Found({"min_nodes": 1}, path="min_slices"),
            Found({"max_nodes": 7}, "8", path="slices"),
            {"max_nodes": 9},
            Found({"total_max_nodes": 8}, path="slices"),
            Found({"total_min_nodes": 0}, path="min_slices"),
        ],
    ),
    Rule(
        "placement-one-zone",
        slice_pool,
        passes=[{"zones": (), "location": "us-central1-a"}, {"zones": (), "placement_type": None}],
        finds=[
            Found({"zones": ()}, path="zone"),
            {"zones": ("us-central1-a", "us-central1-b")},
            Found({"upgrade_strategy": "BLUE_GREEN"}, path="upgrades.strategy"),
        ],
    ),
    Rule(
        "vm-migration",
        vm,
        passes=[{"scheduling": {"onHostMaintenance": "TERMINATE"}}, {"scheduling": {}}],
        finds=[{"scheduling": {"onHostMaintenance": "MIGRATE"}}],
    ),
    Rule(
        "vm-local-ssds",
        vm,
        passes=[{}, {"scratchDisks": [{"interface": "NVME"}]}],
        finds=[{"scratchDisks": [{"interface": "NVME"}] * 3}],
    ),
    Rule(
        "gpudirect-interfaces",
        gpu_pool,
        passes=[
            {"nics": NICS},
            {"node_labels": {}, "max_nodes": 1},
            {"node_labels": {}, "network_profile": "auto"},
            {"node_labels": {}, "machine_type": "a2-highgpu-8g"},
        ],
        finds=[
            {"node_labels": {}},
            {"node_labels": {}, "max_nodes": 2},
            {"nics": NICS[:3]},
            {"nics": NICS, "machine_type": "a3-megagpu-8g"},
        ],
    ),
    Rule(
        "gpudirect-own-networks",
        gpu_pool,
        passes=[{"nics": NICS}, {"nics": (*NICS, NICS[0]), "machine_type": "a3-ultragpu-8g"}],
        finds=[{"nics": (*NICS[:3], NICS[0])}],
    ),
    Rule(
        "accelerator-network-profile",
        gpu_pool,
        passes=[{"network_profile": "auto"}],
        finds=[
            {"network_profile": "own"},
            {"network_profile": "auto", "nics": NICS},
            {"network_profile": "auto", "machine_type": "a2-highgpu-8g"},
            {"network_profile": "auto", "zones": ("us-central1-a", "us-central1-b")},
            {"network_profile": "auto", "zones": ()},
        ],
    ),
    Rule(
        "network-driver-label",
        gpu_pool,
        passes=[{"network_profile": "auto", "node_labels": {"cloud.google.com/gke-networking-dra-driver": "true"}}],
        finds=[{"network_profile": "auto"}],
    ),
    Rule(
        "dranet-cluster",
        example,
        passes=[{"gpu_pool.network_profile": "auto"}, {"cluster.datapath": None}],
        finds=[
            {"gpu_pool.network_profile": "auto", "cluster.datapath": None},
            {"gpu_pool.nics": (PoolNic("a", None),), "cluster.multi_networking": False},
            Found({"gpu_pool.nics": (PoolNic("a", None),), "gpu_pool.network_profile": "auto"}, severity="warning"),
        ],
    ),
    Rule(
        "rdma-network",
        example,
        passes=[
            {"gpu_pool": RDMA},
            {"gpu_pool": RDMA, "network.name": "roce", "network.profile": "us-central1-a-vpc-roce"},
            {"gpu_pool.nics": (PoolNic("vpc", None),), "network.mtu": 8244},
        ],
        finds=[
            {"gpu_pool": RDMA, "network.name": "roce", "network.profile": "us-central1-b-vpc-roce"},
            {"gpu_pool": RDMA, "network": {"name": "roce", "profile": "us-central1-a-vpc-roce", "mtu": 1460}},
            {"gpu_pool": RDMA, "network.name": "roce"},
            {
                "gpu_pool": RDMA,
                "network.name": "roce",
                "network.profile": "us-central1-a-vpc-roce",
                "subnet.network": "roce",
            },
            {"gpu_pool.nics": (PoolNic("vpc", None),)},
        ],
    ),
    Rule(  # a /29 has 8 addresses, of which 4 are reserved
        "gpu-network-room",
        example,
        passes=[
            {"gpu_pool": ONE_NIC, "subnet.cidr": "192.168.0.0/29"},
            {"gpu_pool.max_nodes": 5, "subnet.cidr": "192.168.0.0/29"},
        ],
        finds=[
            {"gpu_pool": {**ONE_NIC, "max_nodes": 5}, "subnet.cidr": "192.168.0.0/29"},
            Found({"gpu_pool": {**ONE_NIC, "max_nodes": 16 - 4}, "subnet.cidr": "192.168.0.0/29"}, "192.168.0.0/28"),
        ],
    ),
    Rule(
        "gpu-network-range",
        example,
        passes=[
            {"gpu_pool.nics": (PoolNic("vpc", "elsewhere"),)},
            {"gpu_pool": ONE_NIC, "cluster.subnetwork": "elsewhere"},
        ],
        finds=[{"gpu_pool": ONE_NIC}],
    ),
    Rule("rdma-firewall", example, passes=[], finds=[{"network.profile": "us-central1-a-vpc-roce"}]),
    Rule(
        "rdma-metal-subnets",
        example,
        passes=[{"network.profile": "us-central1-a-vpc-roce"}],
        finds=[{"network.profile": "us-central1-a-vpc-roce-metal"}],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize(("mtu", "severity"), [(1460, "error"), (None, "warning"), (8896, None)])
def test_another_mtu_is_refused_for_rdma_and_one_that_is_not_written_only_said(
    mtu: int | None, severity: str | None
) -> None:
    network = {"name": "roce", "profile": "us-central1-a-vpc-roce", "mtu": mtu}

    assert [finding.severity for finding in check("rdma-network", *example(gpu_pool=RDMA, network=network))] == (
        [severity] if severity else []
    )


@pytest.mark.parametrize(("count", "findings"), [(7, 1), (8, 0)])
def test_a_vpc_for_rdma_has_a_subnet_for_each_interface(count: int, findings: int) -> None:
    vpc = network(name="roce", profile="us-central1-a-vpc-roce")
    subnets = [subnet(name=f"roce-{index}", network="roce") for index in range(count)]

    assert len(check("rdma-network", vpc, gpu_pool(**RDMA), *subnets)) == findings
