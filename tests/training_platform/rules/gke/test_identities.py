"""Rules about identities of nodes and pods: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_across_resources_names_the_nearest_that_passes,
    test_rule_across_resources_that_meets_an_unknown_value_says_so,
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, Together, TogetherNearest

ALONE: list[Alone] = [
    ("node-scopes", "gpu_pool", {}, 0),
    ("node-scopes", "gpu_pool", {"scopes": ()}, 1),
    ("node-scopes", "gpu_pool", {"scopes": ("https://www.googleapis.com/auth/devstorage.read_only",)}, 1),
    ("node-scopes", "gpu_pool", {"scopes": ("logging-write", "storage-rw")}, 0),
    ("node-account", "gpu_pool", {}, 0),
    ("node-account", "gpu_pool", {"service_account": None}, 1),
    ("node-account", "gpu_pool", {"service_account": "default"}, 1),
]


TOGETHER: list[Together] = [
    ("workload-identity", {}, (), 0),
    ("workload-identity", {"cluster": {"workload_pool": None}}, ("system_pool",), 1),
    (
        "workload-identity",
        {"cluster": {"workload_pool": None}, "gpu_pool": {"metadata_mode": None}},
        ("system_pool",),
        0,
    ),
    ("workload-pool", {}, (), 0),
    ("workload-pool", {"cluster": {"workload_pool": "example-host.svc.id.goog"}}, (), 1),
    ("node-account-roles", {}, (), 0),
    ("node-account-roles", {}, ("image_grant",), 1),
    ("node-account-roles", {"role_grant": {"account": "nodes"}, "image_grant": {"account": "nodes"}}, (), 0),
    ("node-account-roles", {"role_grant": {"role": "roles/editor"}}, ("image_grant",), 0),
    ("node-account-roles", {}, ("image_grant", "gpu_pool", "system_pool"), 0),
]


UNKNOWNS: list[tuple[str, str, str]] = [
    ("workload-identity", "cluster", "workload_pool"),
    ("workload-pool", "cluster", "workload_pool"),
    ("node-account-roles", "account", "email"),
]


NEAREST_TOGETHER: list[TogetherNearest] = [
    ("workload-pool", {"cluster": {"workload_pool": "x"}}, "example-train.svc.id.goog"),
]
