"""Rules about sizes, upgrades and placement of node pools: happy path, then one spoiled value at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_across_resources_that_meets_an_unknown_value_says_so,
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest, Together
from training_platform.config.reading.finding import Finding
from training_platform.views.node_pool import Taint
from training_platform.views.view import View

RESERVED = {"consume_reservation": "SPECIFIC_RESERVATION"}
GREEN = {"upgrade_strategy": "BLUE_GREEN", "blue_green": True}
Check = Callable[..., list[Finding]]
Make = Callable[..., View]


ALONE: list[Alone] = [
    ("pool-name", "gpu_pool", {"pool": "p" * 40}, 0),
    ("pool-name", "gpu_pool", {"pool": "p" * 41}, 1),
    ("pool-counts", "gpu_pool", {}, 0),
    ("pool-counts", "gpu_pool", {"total_max_nodes": 4}, 1),
    ("pool-counts", "gpu_pool", {"node_count": 2, "initial_nodes": 1, "min_nodes": None, "max_nodes": None}, 1),
    ("pool-counts", "gpu_pool", {"node_count": 2, "initial_nodes": None}, 1),
    ("pool-counts", "gpu_pool", {"node_count": 2, "initial_nodes": 0, "min_nodes": None, "max_nodes": None}, 0),
    ("pool-counts", "gpu_pool", {"node_count": 2, "initial_nodes": None, "min_nodes": None, "max_nodes": None}, 0),
    ("pool-bounds", "gpu_pool", {"min_nodes": 4, "max_nodes": 4}, 0),
    ("pool-bounds", "gpu_pool", {"min_nodes": 5, "max_nodes": 4}, 1),
    ("pool-bounds", "gpu_pool", {"total_min_nodes": 5, "total_max_nodes": 4}, 1),
    ("max-pods", "gpu_pool", {"max_pods": 7}, 1),
    ("max-pods", "gpu_pool", {"max_pods": 8}, 0),
    ("max-pods", "gpu_pool", {"max_pods": 256}, 0),
    ("max-pods", "gpu_pool", {"max_pods": 257}, 1),
    ("max-pods", "gpu_pool", {"max_pods": None}, 0),
    ("blue-green-settings", "gpu_pool", {**GREEN, "batch_share": 1.0}, 0),
    ("blue-green-settings", "gpu_pool", {**GREEN, "batch_share": 1.01}, 1),
    ("blue-green-settings", "gpu_pool", {**GREEN, "batch_share": 0.01}, 0),
    ("blue-green-settings", "gpu_pool", {**GREEN, "batch_share": 0.0}, 1),
    ("blue-green-settings", "gpu_pool", {**GREEN, "batch_share": 0.0, "batch_nodes": 1}, 0),
    ("blue-green-settings", "gpu_pool", {**GREEN, "drain_wait_seconds": 604_800}, 0),
    ("blue-green-settings", "gpu_pool", {**GREEN, "drain_wait_seconds": 604_801}, 1),
    ("blue-green-settings", "gpu_pool", {**GREEN, "batch_soak_seconds": 604_800, "pool_soak_seconds": 604_800}, 0),
    ("blue-green-settings", "gpu_pool", {**GREEN, "batch_soak_seconds": 604_801}, 1),
    ("blue-green-settings", "gpu_pool", {**GREEN, "pool_soak_seconds": 604_801}, 1),
    ("blue-green-settings", "gpu_pool", {**GREEN, "upgrade_strategy": "SURGE"}, 1),
    ("blue-green-settings", "gpu_pool", {**GREEN, "upgrade_strategy": None}, 1),
    ("blue-green-settings", "gpu_pool", {**GREEN, "autoscaled_rollout": True}, 0),
    ("blue-green-settings", "gpu_pool", {**GREEN, "autoscaled_rollout": True, "max_nodes": None}, 1),
    ("pool-nodes", "gpu_pool", {"max_nodes": 1_000}, 0),
    ("pool-nodes", "gpu_pool", {"max_nodes": 1_001}, 1),
    ("pool-nodes", "gpu_pool", {"max_nodes": 1_001, "zones": ("us-central1-a", "us-central1-b")}, 1),
    ("pool-nodes", "gpu_pool", {"max_nodes": None, "total_max_nodes": 2_000, "zones": ()}, 0),
    ("pool-nodes", "slice_pool", {"max_nodes": 1_001}, 0),
    ("surge-upgrades", "gpu_pool", {}, 0),
    ("surge-upgrades", "gpu_pool", {"max_unavailable": 0}, 1),
    ("surge-upgrades", "gpu_pool", {"max_unavailable": 0, "max_surge": 1}, 0),
    ("surge-upgrades", "gpu_pool", {"max_unavailable": 0, "upgrade_strategy": "BLUE_GREEN"}, 0),
    ("surge-upgrades", "gpu_pool", {"max_unavailable": 5, "max_surge": 15}, 0),
    ("surge-upgrades", "gpu_pool", {"max_unavailable": 6, "max_surge": 15}, 1),
    ("pool-replacement", "gpu_pool", {}, 0),
    ("pool-replacement", "gpu_pool", {"replaced_first": False}, 1),
    ("pool-replacement", "gpu_pool", {"replaced_first": None}, 0),
    ("pool-replacement", "system_pool", {"replaced_first": False}, 1),
    ("pool-replacement", "system_pool", {"replaced_first": False, "pool": None}, 0),
    ("upgrade-room", "gpu_pool", {**RESERVED, "max_surge": 0}, 0),
    ("upgrade-room", "gpu_pool", {**RESERVED, "max_surge": 1}, 1),
    ("upgrade-room", "gpu_pool", {**RESERVED, "upgrade_strategy": "BLUE_GREEN"}, 1),
    ("upgrade-room", "gpu_pool", {**RESERVED, "max_surge": 1, "upgrades": False}, 0),
    ("upgrade-room", "gpu_pool", {"max_surge": 1}, 0),
    ("upgrade-room", "gpu_pool", {"upgrade_strategy": "BLUE_GREEN"}, 0),
    ("upgrade-room", "slice_pool", {**RESERVED, "max_surge": 1}, 0),
    ("upgrade-room", "system_pool", {"max_surge": 1}, 0),
    ("slice-upgrades", "slice_pool", {"max_surge": 0}, 0),
    ("slice-upgrades", "slice_pool", {"max_surge": 1}, 1),
    ("slice-upgrades", "gpu_pool", {"max_surge": 1}, 0),
]


TOGETHER: list[Together] = [
    ("system-pool", {}, ("nap",), 0),
    ("system-pool", {}, ("system_pool", "nap"), 1),
    ("system-pool", {}, ("system_pool",), 0),
    ("system-pool", {"system_pool": {"taints": (Taint("own", "NO_SCHEDULE"),)}}, ("nap",), 1),
    ("system-pool", {"system_pool": {"total_min_nodes": 0}}, ("nap",), 1),
    ("system-pool", {"system_pool": {"total_min_nodes": 1}}, ("nap",), 0),
    ("system-pool", {"cluster": {"remove_default_pool": False}}, ("system_pool", "nap"), 0),
    ("system-pool", {}, ("system_pool", "gpu_pool", "nap"), 0),
    ("system-pool", {"system_pool": {"taints": (Taint("own", "PREFER_NO_SCHEDULE"),)}}, ("nap",), 0),
    ("cluster-nodes", {"gpu_pool": {"max_nodes": 4_994}}, (), 0),  # beside the system pool's 6
    ("cluster-nodes", {"gpu_pool": {"max_nodes": 4_995}}, (), 1),
]


UNKNOWNS: list[tuple[str, str, str]] = [
    ("system-pool", "system_pool", "taints"),
]


NEAREST: list[AloneNearest] = [
    ("max-pods", "gpu_pool", {"max_pods": 300}, "256"),
]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [(14_994, "more than 5,000 need a limit that Google has raised"), (14_995, "GKE documents a limit of 15,000")],
)
def test_a_cluster_of_many_nodes_has_a_limit_above_the_one_that_is_raised(
    nodes: int, said: str, run: Callable[..., list[Finding]]
) -> None:
    (found,) = run("cluster-nodes", (), gpu_pool={"max_nodes": nodes})

    assert said in found.message


T4 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
IRONWOOD = {"machine_type": "tpu7x-standard-4t", "tpu_topology": "4x4x4"}
GB200 = {"machine_type": "a4x-highgpu-4g", "accelerator_type": "nvidia-gb200", "accelerator_count": 4}
COMPACT = {"placement_type": "COMPACT"}
TRILLIUM = {"machine_type": "ct6e-standard-4t", "tpu_topology": "4x4"}
RESERVED_PLACEMENT = {
    "consume_reservation": "SPECIFIC_RESERVATION",
    "reservation": "training",
    "reservation_path": "training",
}


ALONE += [
    ("placement-type", "slice_pool", {}, 0),
    ("placement-type", "slice_pool", {"placement_type": "SPREAD"}, 1),
    ("placement-machine", "gpu_pool", COMPACT, 0),
    ("placement-machine", "gpu_pool", {**COMPACT, **T4}, 1),
    ("placement-machine", "gpu_pool", {**COMPACT, **T4, "machine_type": "e2-standard-4", "accelerator_type": None}, 1),
    ("placement-machine", "gpu_pool", {**COMPACT, "machine_type": "n2-standard-8", "accelerator_type": None}, 0),
    ("placement-machine", "gpu_pool", {**COMPACT, **GB200}, 0),
    ("placement-size", "gpu_pool", {**COMPACT, "max_nodes": 96}, 0),
    ("placement-size", "gpu_pool", {**COMPACT, "max_nodes": 97}, 1),
    ("placement-size", "gpu_pool", {"max_nodes": 97}, 0),
    ("placement-capacity", "flex_pool", {}, 0),
    ("placement-capacity", "flex_pool", COMPACT, 1),
    ("placement-capacity", "flex_pool", {**COMPACT, "machine_type": "a3-ultragpu-8g"}, 0),
    ("placement-capacity", "flex_pool", {**COMPACT, "machine_type": "a3-ultragpu-8g", "queued": True}, 1),
    ("placement-capacity", "slice_pool", {"queued": True, "flex_start": True}, 0),
    ("workload-policy-missing", "slice_pool", {}, 0),
    ("workload-policy-missing", "slice_pool", IRONWOOD, 1),
    ("workload-policy-missing", "slice_pool", {**IRONWOOD, "policy": "slices"}, 0),
    ("workload-policy-missing", "slice_pool", {**IRONWOOD, "tpu_topology": None}, 0),
    ("workload-policy-missing", "gpu_pool", GB200, 1),
    ("nvlink-domain", "gpu_pool", {**GB200, "max_nodes": 18}, 0),
    ("nvlink-domain", "gpu_pool", {**GB200, "max_nodes": 17}, 1),
    ("nvlink-domain", "gpu_pool", {"max_nodes": 17}, 0),
    ("workload-policy-drift", "slice_pool", IRONWOOD, 1),
    ("workload-policy-drift", "slice_pool", {**IRONWOOD, "ignored": ("placementPolicy",)}, 0),
    ("workload-policy-drift", "slice_pool", {**IRONWOOD, "ignored": None}, 0),
    ("workload-policy-drift", "slice_pool", {}, 0),
    ("workload-policy-drift", "slice_pool", {**IRONWOOD, "tpu_topology": "2x2x1"}, 0),
    ("workload-policy-missing", "slice_pool", {**IRONWOOD, "tpu_topology": "2x2x1"}, 0),
    ("workload-policy-missing", "slice_pool", {**IRONWOOD, "tpu_topology": "2x2x2"}, 1),
    ("resource-policy", "resource_policy", {}, 0),
    ("resource-policy", "resource_policy", {"topology_distance": "BLOCK"}, 1),
    ("resource-policy", "resource_policy", {"workload_type": "HIGH_AVAILABILITY"}, 1),
    ("resource-policy", "resource_policy", {"workload_type": "HIGH_AVAILABILITY", "topology": None}, 0),
    ("resource-policy", "resource_policy", {"max_distance": 2}, 0),
    ("resource-policy", "resource_policy", {"max_distance": 2, "gpu_topology": "1x72"}, 1),
    ("provision-only", "resource_policy", {"topology_mode": "PROVISION_ONLY"}, 0),
    ("provision-only", "resource_policy", {"topology_mode": "PROVISION_ONLY", "topology": None}, 1),
    ("provision-only", "resource_policy", {"topology_mode": "PROVISION_ONLY", "workload_type": None}, 1),
]


TOGETHER += [
    ("placement-policy", {"gpu_pool": {**IRONWOOD, "policy": "slices"}}, (), 0),
    ("placement-policy", {"gpu_pool": {**IRONWOOD, "policy": "elsewhere", "tpu_topology": "4x4x8"}}, (), 0),
    ("placement-policy", {"gpu_pool": {**IRONWOOD, "policy": "slices", "tpu_topology": "4x4x8"}}, (), 1),
    ("placement-policy", {"gpu_pool": {**TRILLIUM, "policy": "slices"}}, (), 0),
    ("placement-policy", {"gpu_pool": {**GB200, "policy": "slices"}}, (), 1),
    (
        "placement-policy",
        {"gpu_pool": {**GB200, "policy": "slices"}, "resource_policy": {"topology": "1x72"}},
        (),
        0,
    ),
    ("placement-policy", {"gpu_pool": {"policy": "slices"}, "resource_policy": {"region": "us-west4"}}, (), 1),
    ("placement-policy", {"gpu_pool": {"policy": "slices"}, "resource_policy": {"project": "example"}}, (), 1),
    ("placement-policy", {"gpu_pool": {"policy": "slices"}, "resource_policy": {"workload": False}}, (), 1),
    (
        "provision-only-pool",
        {"gpu_pool": {"policy": "slices"}, "resource_policy": {"topology_mode": "PROVISION_ONLY"}},
        (),
        1,
    ),
    (
        "provision-only-pool",
        {
            "gpu_pool": {**RESERVED_PLACEMENT, "policy": "slices"},
            "resource_policy": {"topology_mode": "PROVISION_ONLY"},
        },
        (),
        0,
    ),
]


NEAREST += [
    ("placement-size", "gpu_pool", {**COMPACT, "max_nodes": 97}, "several pools of 96"),
    ("nvlink-domain", "gpu_pool", GB200, "18"),
]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"taints": ()}, 1),
        ({}, 0),
        ({"taints": (Taint("own", "NO_SCHEDULE"),)}, 1),
        ({"pool": "other", "taints": ()}, 0),
    ],
)
def test_in_production_the_system_pool_is_the_system_s(
    check: Check, cluster: Make, system_pool: Make, changes: dict[str, Any], count: int
) -> None:
    found = check("system-pool-shared", cluster(), system_pool(**changes), production=True)

    assert check("system-pool-shared", cluster(), system_pool(**changes), production=False) == []
    assert [finding.nearest for finding in found] == ["cpu_pools: {general: {max_nodes: 2}}"] * count
