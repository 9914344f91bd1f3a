"""Rules about clusters: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest, Together

V4_ZONE = {"location": "us-central2-b", "default_machine": None}


ALONE: list[Alone] = [
    ("cluster-name", "cluster", {"cluster": "c" * 40}, 0),
    ("cluster-name", "cluster", {"cluster": "c" * 41}, 1),
    ("dataplane-policies", "cluster", {}, 0),
    ("dataplane-policies", "cluster", {"network_policy": True}, 1),
    ("dataplane-policies", "cluster", {"network_policy": True, "datapath": "LEGACY_DATAPATH"}, 0),
    ("dataplane-policies", "cluster", {"dataplane_policies": True}, 0),
    ("dataplane-policies", "cluster", {"dataplane_policies": True, "datapath": None}, 1),
    ("multi-networking", "cluster", {}, 0),
    ("multi-networking", "cluster", {"datapath": None}, 1),
    ("multi-networking", "cluster", {"networking_mode": "ROUTES"}, 1),
    ("multi-networking", "cluster", {"datapath": None, "networking_mode": "ROUTES"}, 2),
    ("multi-networking", "cluster", {"networking_mode": None}, 0),  # GKE's default is VPC-native
    ("multi-networking", "cluster", {"datapath": None, "multi_networking": False}, 0),
    ("default-pool", "cluster", {}, 0),
    ("default-pool", "cluster", {"initial_nodes": 0}, 1),
    ("default-pool", "cluster", {"initial_nodes": None}, 1),
    ("default-pool", "cluster", {"initial_nodes": None, "remove_default_pool": False}, 0),
    ("default-pool", "cluster", {"node_version": "1.33"}, 1),
    ("default-pool", "cluster", {"node_version": "1.33", "remove_default_pool": False}, 1),
    ("default-pool", "cluster", {"node_version": "1.33", "version": "1.33", "remove_default_pool": False}, 0),
    ("cluster-zones", "cluster", {"zones": ("us-central1-a",)}, 0),
    ("cluster-zones", "cluster", {"zones": ("us-central1-a",), "location": "us-central1-a"}, 1),
    ("cluster-zones", "cluster", {"zones": ("us-central1-b",), "location": "us-central1-a"}, 0),
    ("cluster-zones", "cluster", {"zones": ("us-west4-a",)}, 1),
    ("autopilot-settings", "cluster", {"autopilot": True}, 0),
    ("autopilot-settings", "cluster", {"autopilot": True, "clashing": ("networkPolicy",)}, 1),
    ("autopilot-settings", "cluster", {"clashing": ("networkPolicy",)}, 0),
    ("autopilot-settings", "cluster", {"autopilot": True, "location": "us-central1-a"}, 1),
    ("autopilot-settings", "cluster", {"location": "us-central1-a"}, 0),
    ("default-pool-machine", "cluster", {"location": "us-central2-b"}, 0),
    ("default-pool-machine", "cluster", {"location": "us-central2-b", "default_machine": "e2-standard-4"}, 1),
    ("default-pool-machine", "cluster", {"location": "us-central2-b", "default_machine": None}, 1),
    ("default-pool-machine", "cluster", {"location": "us-central1-a", "default_machine": None}, 0),
    ("resource-tags", "cluster", {"tags": 5}, 0),
    ("resource-tags", "cluster", {"tags": 6}, 1),
    ("default-max-pods", "cluster", {"max_pods": 7}, 1),
    ("default-max-pods", "cluster", {"max_pods": 8}, 0),
    ("default-max-pods", "cluster", {"max_pods": 256}, 0),
    ("default-max-pods", "cluster", {"max_pods": 257}, 1),
    ("default-max-pods", "cluster", {"max_pods": 110, "networking_mode": "ROUTES"}, 1),
    ("default-max-pods", "cluster", {"networking_mode": "ROUTES"}, 0),
]


TOGETHER: list[Together] = [
    ("inline-pools", {}, (), 0),
    ("inline-pools", {"cluster": {"inline_pools": 1}}, (), 1),
    ("inline-pools", {"cluster": {"inline_pools": 1}}, ("gpu_pool", "system_pool"), 0),
    ("autopilot-pools", {}, (), 0),
    ("autopilot-pools", {"cluster": {"autopilot": True}}, ("system_pool",), 1),
    ("routes-max-pods", {}, (), 0),
    ("routes-max-pods", {"cluster": {"networking_mode": "ROUTES"}}, ("system_pool",), 1),
    (
        "routes-max-pods",
        {"cluster": {"networking_mode": "ROUTES"}, "gpu_pool": {"max_pods": None}},
        ("system_pool",),
        0,
    ),
]


NEAREST: list[AloneNearest] = [
    ("default-pool-machine", "cluster", V4_ZONE, "n1-standard-4"),
]
