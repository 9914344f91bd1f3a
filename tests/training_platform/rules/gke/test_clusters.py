"""Rules about clusters, identities and maintenance: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_across_resources_names_the_nearest_that_passes,
    test_finding_names_the_nearest_that_passes,
    test_rule_across_resources_that_meets_an_unknown_value_says_so,
    test_rule_finds_what_does_not_go_together,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest, Together, TogetherNearest
from training_platform.config.reading.finding import Finding
from training_platform.rules import View
from training_platform.views.cluster import Exclusion, Window

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


ALONE += [
    ("node-scopes", "gpu_pool", {}, 0),
    ("node-scopes", "gpu_pool", {"scopes": ()}, 1),
    ("node-scopes", "gpu_pool", {"scopes": ("https://www.googleapis.com/auth/devstorage.read_only",)}, 1),
    ("node-scopes", "gpu_pool", {"scopes": ("logging-write", "storage-rw")}, 0),
    ("node-account", "gpu_pool", {}, 0),
    ("node-account", "gpu_pool", {"service_account": None}, 1),
    ("node-account", "gpu_pool", {"service_account": "default"}, 1),
]


TOGETHER += [
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


Make = Callable[..., View]
Check = Callable[..., list[Finding]]
DAILY, WEEKENDS, SATURDAYS = "FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SA,SU", "FREQ=WEEKLY;BYDAY=SA"


def excluded(start: str, end: str | None, scope: str = "NO_UPGRADES") -> Exclusion:
    """Return an exclusion from midnight to midnight."""
    return Exclusion("freeze", f"{start}T00:00:00Z", f"{end}T00:00:00Z" if end else None, scope)


@pytest.mark.parametrize(
    ("end", "recurrence", "severities"),
    [
        ("12:00", WEEKENDS, []),  # 8 times 6 hours in 32 days
        ("11:59", WEEKENDS, ["warning"]),
        ("18:00", SATURDAYS, []),  # 4 times 12 hours in 32 days
        ("10:00", SATURDAYS, ["warning"]),  # 13 times 4 hours in 92 days: the newer sources allow it
        ("10:00", DAILY, []),
        ("09:59", DAILY, ["error"]),  # GKE counts no time below 4 hours
        ("07:00", "FREQ=MONTHLY;BYDAY=1SA", []),
        ("10:00", "FREQ=DAILY;INTERVAL=90", []),
        ("06:00", DAILY, ["error"]),
        ("05:00", DAILY, ["error"]),
    ],
)
def test_upgrades_have_48_hours_in_parts_of_4(
    check: Check, cluster: Make, end: str, recurrence: str, severities: list[str]
) -> None:
    window = Window("2026-01-03T06:00:00Z", f"2026-01-03T{end}:00Z", recurrence)
    found = check("maintenance-window", cluster(window=window))

    assert [each.severity for each in found] == severities
    assert all(
        "newer copies of GKE's docs say 92" in (each.allowed or "") for each in found if each.severity == "warning"
    )


def test_a_cluster_without_a_window_may_be_upgraded_at_any_time(check: Check, cluster: Make) -> None:
    assert check("maintenance-window", cluster(window=None)) == []


@pytest.mark.parametrize("broken", ["start", "end"])
def test_times_that_are_none_are_found(check: Check, cluster: Make, broken: str) -> None:
    times = {"start": "2026-01-03T06:00:00Z", "end": "2026-01-03T18:00:00Z", broken: "2026-01-03T25:00:00Z"}

    assert len(check("maintenance-window", cluster(window=Window(**times, recurrence=DAILY)))) == 1


@pytest.mark.parametrize(
    ("exclusion", "severities"),
    [
        (excluded("2026-12-01", "2026-12-31"), []),  # 30 days
        (excluded("2026-12-01", "2027-01-01"), ["warning"]),
        (excluded("2026-12-01", "2027-03-01"), ["warning"]),  # 90 days
        (excluded("2026-12-01", "2027-03-02"), ["error"]),
        (excluded("2026-12-01", "2027-03-02", "NO_MINOR_UPGRADES"), []),
        (excluded("2026-12-02", "2026-12-02"), ["error"]),
        (excluded("2026-12-02", None), []),
    ],
)
def test_all_upgrades_stay_away_for_90_days_at_most_and_older_sources_say_30(
    check: Check, cluster: Make, exclusion: Exclusion, severities: list[str]
) -> None:
    found = check("maintenance-exclusion", cluster(exclusions=(exclusion,)))

    assert [each.severity for each in found] == severities
    assert all(
        "newer copies of GKE's docs say 90" in (each.allowed or "") for each in found if each.severity == "warning"
    )


@pytest.mark.parametrize(("days", "end"), [(31, "2026-12-31"), (91, "2027-03-01")])
def test_the_nearest_end_of_an_exclusion_is_named(check: Check, cluster: Make, days: int, end: str) -> None:
    late = {31: "2027-01-01", 91: "2027-03-02"}[days]
    (found,) = check("maintenance-exclusion", cluster(exclusions=(excluded("2026-12-01", late),)))

    assert f"for {days} days" in found.message
    assert found.nearest == f"end {end}T00:00:00Z"


@pytest.mark.parametrize(("count", "findings"), [(3, 0), (4, 1)])
def test_three_exclusions_are_from_all_upgrades_at_most(check: Check, cluster: Make, count: int, findings: int) -> None:
    several = (excluded("2026-12-01", "2026-12-02"),) * count

    assert len(check("maintenance-exclusion", cluster(exclusions=several))) == findings
