"""Rules about placement and workload policies: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest, Together

T4 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
IRONWOOD = {"machine_type": "tpu7x-standard-4t", "tpu_topology": "4x4x4"}
GB200 = {"machine_type": "a4x-highgpu-4g", "accelerator_type": "nvidia-gb200", "accelerator_count": 4}
COMPACT = {"placement_type": "COMPACT"}
TRILLIUM = {"machine_type": "ct6e-standard-4t", "tpu_topology": "4x4"}
RESERVED = {"consume_reservation": "SPECIFIC_RESERVATION", "reservation": "training", "reservation_path": "training"}


ALONE: list[Alone] = [
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


TOGETHER: list[Together] = [
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
        {"gpu_pool": {**RESERVED, "policy": "slices"}, "resource_policy": {"topology_mode": "PROVISION_ONLY"}},
        (),
        0,
    ),
]


NEAREST: list[AloneNearest] = [
    ("placement-size", "gpu_pool", {**COMPACT, "max_nodes": 97}, "several pools of 96"),
    ("nvlink-domain", "gpu_pool", GB200, "18"),
]
