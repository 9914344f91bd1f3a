"""Rules about sizes, upgrades and placement of node pools: happy path, then one spoiled value at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.builders import (
    check,
    cluster,
    example,
    flex_pool,
    gpu_pool,
    resource_policy,
    slice_pool,
    system_pool,
)
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.views.node_pool import Taint

RESERVED = {"consume_reservation": "SPECIFIC_RESERVATION"}
GREEN = {"upgrade_strategy": "BLUE_GREEN", "blue_green": True}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [(14_994, "for more than 5,000, Google has to raise the limit"), (14_995, "GKE documents a limit of 15,000")],
)
def test_a_cluster_of_many_nodes_has_a_limit_above_the_one_that_is_raised(nodes: int, message: str) -> None:
    (finding,) = check("cluster-nodes", *example(gpu_pool={"max_nodes": nodes}))

    assert message in finding.message


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


TABLE = [
    Rule("pool-name", gpu_pool, passes=[{"pool": "p" * 40}], finds=[{"pool": "p" * 41}]),
    Rule(
        "pool-counts",
        gpu_pool,
        passes=[],
        finds=[
            {"total_max_nodes": 4},
            {"node_count": 2, "initial_nodes": 1, "min_nodes": None, "max_nodes": None},
            {"node_count": 2, "initial_nodes": None},
        ],
    ),
    Rule(
        "pool-bounds",
        gpu_pool,
        passes=[{"min_nodes": 4, "max_nodes": 4}],
        finds=[{"total_min_nodes": 5, "total_max_nodes": 4}],
    ),
    Rule(
        "blue-green-settings",
        gpu_pool,
        passes=[
            {**GREEN, "batch_share": 1.0},
            {**GREEN, "batch_share": 0.0, "batch_nodes": 1},
            {**GREEN, "batch_soak_seconds": 604_800, "pool_soak_seconds": 604_800},
            {**GREEN, "autoscaled_rollout": True},
        ],
        finds=[
            {**GREEN, "batch_share": 1.01},
            {**GREEN, "batch_share": 0.0},
            {**GREEN, "pool_soak_seconds": 604_801},
            {**GREEN, "upgrade_strategy": None},
            {**GREEN, "autoscaled_rollout": True, "max_nodes": None},
        ],
    ),
    Rule(
        "pool-nodes",
        gpu_pool,
        passes=[{"max_nodes": 1_000}, {"max_nodes": None, "total_max_nodes": 2_000, "zones": ()}],
        finds=[{"max_nodes": 1_001, "zones": ("us-central1-a", "us-central1-b")}],
    ),
    Rule(
        "surge-upgrades",
        gpu_pool,
        passes=[
            {"max_unavailable": 5, "max_surge": 15},
            {"max_unavailable": 0, "max_surge": 1},
            {"max_unavailable": 0, "upgrade_strategy": "BLUE_GREEN"},
        ],
        finds=[{"max_unavailable": 6, "max_surge": 15}, {"max_unavailable": 0}],
    ),
    Rule(
        "pool-replacement",
        system_pool,
        passes=[{"replaced_first": False, "pool": None}],
        finds=[{"replaced_first": False}],
    ),
    Rule(
        "upgrade-room",
        gpu_pool,
        passes=[{**RESERVED, "max_surge": 1, "upgrades": False}],
        finds=[{**RESERVED, "max_surge": 1}, {**RESERVED, "upgrade_strategy": "BLUE_GREEN"}],
    ),
    Rule("upgrade-room", slice_pool, passes=[{**RESERVED, "max_surge": 1}], finds=[]),
    Rule("slice-upgrades", slice_pool, passes=[], finds=[{"max_surge": 1}]),
    Rule("slice-upgrades", gpu_pool, passes=[{"max_surge": 1}], finds=[]),
    Rule("placement-type", slice_pool, passes=[], finds=[{"placement_type": "SPREAD"}]),
    Rule(
        "placement-machine",
        gpu_pool,
        passes=[{**COMPACT, **GB200}],
        finds=[{**COMPACT, **T4, "machine_type": "e2-standard-4", "accelerator_type": None}],
    ),
    Rule(
        "placement-size",
        gpu_pool,
        passes=[{**COMPACT, "max_nodes": 96}, {"max_nodes": 97}],
        finds=[Found({**COMPACT, "max_nodes": 97}, "several pools of 96")],
    ),
    Rule(
        "placement-capacity",
        flex_pool,
        passes=[{**COMPACT, "machine_type": "a3-ultragpu-8g"}],
        finds=[COMPACT, {**COMPACT, "machine_type": "a3-ultragpu-8g", "queued": True}],
    ),
    Rule("placement-capacity", slice_pool, passes=[{"queued": True, "flex_start": True}], finds=[]),
    Rule(
        "placement-capacity",
        gpu_pool,
        passes=[
            {**COMPACT, **RESERVED, "policy": "near"},
            RESERVED,
            {**COMPACT, "consume_reservation": "ANY_RESERVATION"},
        ],
        finds=[{**COMPACT, **RESERVED}],
    ),
    Rule(
        "workload-policy-missing",
        slice_pool,
        passes=[{**IRONWOOD, "policy": "slices"}, {**IRONWOOD, "tpu_topology": "2x2x1"}],
        finds=[{**IRONWOOD, "tpu_topology": "2x2x2"}],
    ),
    Rule("nvlink-domain", gpu_pool, passes=[{"max_nodes": 17}], finds=[Found(GB200, "18")]),
    Rule(
        "workload-policy-drift",
        slice_pool,
        passes=[
            {**IRONWOOD, "ignored": ("placementPolicy",)},
            {**IRONWOOD, "ignored": None},
            {**IRONWOOD, "tpu_topology": "2x2x1"},
        ],
        finds=[IRONWOOD],
    ),
    Rule(
        "resource-policy",
        resource_policy,
        passes=[{"workload_type": "HIGH_AVAILABILITY", "topology": None}, {"max_distance": 2}],
        finds=[
            {"topology_distance": "BLOCK"},
            {"workload_type": "HIGH_AVAILABILITY"},
            {"max_distance": 2, "gpu_topology": "1x72"},
        ],
    ),
    Rule(
        "provision-only",
        resource_policy,
        passes=[{"topology_mode": "PROVISION_ONLY"}],
        finds=[{"topology_mode": "PROVISION_ONLY", "workload_type": None}],
    ),
    Rule(
        "max-pods",
        gpu_pool,
        passes=[{"max_pods": 8}, {"max_pods": 256}, {"max_pods": None}],
        finds=[{"max_pods": 7}, Found({"max_pods": 257}, "256")],
    ),
    Rule(
        "system-pool",
        example,
        passes=[
            {"system_pool": None},
            {"nap": None, "system_pool.total_min_nodes": 1},
            {"system_pool": None, "nap": None, "cluster.remove_default_pool": False},
            {"system_pool": None, "gpu_pool": None, "nap": None},
            {"nap": None, "system_pool.taints": (Taint("own", "PREFER_NO_SCHEDULE"),)},
        ],
        finds=[
            {"nap": None, "system_pool.taints": (Taint("own", "NO_SCHEDULE"),)},
            {"nap": None, "system_pool.total_min_nodes": 0},
        ],
        notes=[{"nap": None, "system_pool.taints": UNKNOWN}],
    ),
    Rule("cluster-nodes", example, passes=[{"gpu_pool.max_nodes": 4_994}], finds=[]),
    Rule(
        "placement-policy",
        example,
        passes=[
            {"gpu_pool": {**TRILLIUM, "policy": "slices"}},
            {"gpu_pool": {**GB200, "policy": "slices"}, "resource_policy.topology": "1x72"},
        ],
        finds=[
            {"gpu_pool": {**GB200, "policy": "slices"}},
            {"gpu_pool.policy": "slices", "resource_policy.region": "us-west4"},
            {"gpu_pool.policy": "slices", "resource_policy.project": "example"},
            {"gpu_pool.policy": "slices", "resource_policy.workload": False},
        ],
    ),
    Rule(
        "provision-only-pool",
        example,
        passes=[
            {
                "gpu_pool": {**RESERVED_PLACEMENT, "policy": "slices"},
                "resource_policy.topology_mode": "PROVISION_ONLY",
            }
        ],
        finds=[{"gpu_pool.policy": "slices", "resource_policy.topology_mode": "PROVISION_ONLY"}],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"taints": ()}, 1),
        ({}, 0),
        ({"taints": (Taint("own", "NO_SCHEDULE"),)}, 1),
        ({"pool": "other", "taints": ()}, 0),
    ],
)
def test_in_production_the_system_pool_is_the_system_s(changes: dict[str, Any], count: int) -> None:
    findings = check("system-pool-shared", cluster(), system_pool(**changes), production=True)

    assert check("system-pool-shared", cluster(), system_pool(**changes), production=False) == []
    assert [finding.nearest for finding in findings] == ["cpu_pools: {general: {max_nodes: 2}}"] * count


def test_a_program_without_stack_files_is_offered_the_taint_of_the_system_pool() -> None:
    (finding,) = check("system-pool-shared", cluster(origin=()), system_pool(taints=()), production=True)

    assert finding.nearest == "the taint components.gke.io/gke-managed-components"
