"""Rules about clusters, identities and maintenance: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.builders import check, cluster, example, gpu_pool
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.views.cluster import Exclusion, Window

V4_ZONE = {"location": "us-central2-b", "default_machine": None}


TABLE = [
    Rule("cluster-name", cluster, passes=[{"cluster": "c" * 40}], finds=[{"cluster": "c" * 41}]),
    Rule(
        "dataplane-policies",
        cluster,
        passes=[{"network_policy": True, "datapath": "LEGACY_DATAPATH"}, {"dataplane_policies": True}],
        finds=[{"network_policy": True}, {"dataplane_policies": True, "datapath": None}],
    ),
    Rule(
        "alpha-cluster",
        cluster,
        passes=[{"alpha": True, "release_channel": None}, {"alpha": True, "release_channel": "UNSPECIFIED"}],
        finds=[Found({"alpha": True, "release_channel": "REGULAR"}, nearest=None)],
    ),
    Rule(
        "cluster-needs",
        cluster,
        passes=[
            {"networking_mode": "ROUTES", "pods_range": None, "gateway": "CHANNEL_DISABLED"},
            {"fuse_driver": True, "workload_pool": "example-train.svc.id.goog"},
            {"stateful_ha": True},
        ],
        finds=[
            {"networking_mode": "ROUTES", "pods_range": "pods"},
            {"networking_mode": "ROUTES", "pods_range": None, "gateway": "CHANNEL_STANDARD"},
            {"fuse_driver": True, "workload_pool": None},
            {"stateful_ha": True, "disk_driver": False},
        ],
    ),
    Rule(
        "multi-networking",
        cluster,
        passes=[
            {"networking_mode": None},  # GKE's default is VPC-native
            {"datapath": None, "multi_networking": False},
        ],
        finds=[
            {"datapath": None},
            {"networking_mode": "ROUTES"},
            Found({"datapath": None, "networking_mode": "ROUTES"}, times=2),
        ],
    ),
    Rule(
        "default-pool",
        cluster,
        passes=[
            {"initial_nodes": None, "remove_default_pool": False},
            {"node_version": "1.33", "version": "1.33", "remove_default_pool": False},
        ],
        finds=[
            {"initial_nodes": 0},
            {"initial_nodes": None},
            {"node_version": "1.33"},
            {"node_version": "1.33", "remove_default_pool": False},
        ],
    ),
    Rule(
        "cluster-zones",
        cluster,
        passes=[{"zones": ("us-central1-a",)}, {"zones": ("us-central1-b",), "location": "us-central1-a"}],
        finds=[{"zones": ("us-central1-a",), "location": "us-central1-a"}, {"zones": ("us-west4-a",)}],
    ),
    Rule(
        "autopilot-settings",
        cluster,
        passes=[{"autopilot": True}, {"clashing": ("networkPolicy",)}, {"location": "us-central1-a"}],
        finds=[{"autopilot": True, "clashing": ("networkPolicy",)}, {"autopilot": True, "location": "us-central1-a"}],
    ),
    Rule(
        "default-pool-machine",
        cluster,
        passes=[{"location": "us-central2-b"}, {"location": "us-central1-a", "default_machine": None}],
        finds=[
            {"location": "us-central2-b", "default_machine": "e2-standard-4"},
            {"location": "us-central2-b", "default_machine": None},
            Found(V4_ZONE, "n1-standard-4"),
        ],
    ),
    Rule("resource-tags", cluster, passes=[{"tags": 5}], finds=[{"tags": 6}]),
    Rule(
        "default-max-pods",
        cluster,
        passes=[{"max_pods": 8}, {"max_pods": 256}, {"networking_mode": "ROUTES"}],
        finds=[{"max_pods": 7}, {"max_pods": 257}, {"max_pods": 110, "networking_mode": "ROUTES"}],
    ),
    Rule(
        "node-scopes",
        gpu_pool,
        passes=[{"scopes": ("logging-write", "storage-rw")}],
        finds=[{"scopes": ()}, {"scopes": ("https://www.googleapis.com/auth/devstorage.read_only",)}],
    ),
    Rule("node-account", gpu_pool, passes=[], finds=[{"service_account": None}, {"service_account": "default"}]),
    Rule(
        "inline-pools",
        example,
        passes=[{"gpu_pool": None, "system_pool": None, "cluster.inline_pools": 1}],
        finds=[{"cluster.inline_pools": 1}],
    ),
    Rule("autopilot-pools", example, passes=[], finds=[{"system_pool": None, "cluster.autopilot": True}]),
    Rule(
        "routes-max-pods",
        example,
        passes=[{"system_pool": None, "cluster.networking_mode": "ROUTES", "gpu_pool.max_pods": None}],
        finds=[{"system_pool": None, "cluster.networking_mode": "ROUTES"}],
    ),
    Rule(
        "workload-identity",
        example,
        passes=[{"system_pool": None, "cluster.workload_pool": None, "gpu_pool.metadata_mode": None}],
        finds=[{"system_pool": None, "cluster.workload_pool": None}],
        notes=[{"cluster.workload_pool": UNKNOWN}],
    ),
    Rule(
        "workload-pool",
        example,
        passes=[],
        finds=[
            {"cluster.workload_pool": "example-host.svc.id.goog"},
            Found({"cluster.workload_pool": "x"}, "example-train.svc.id.goog"),
        ],
        notes=[{"cluster.workload_pool": UNKNOWN}],
    ),
    Rule(
        "node-account-roles",
        example,
        passes=[
            {"role_grant.account": "nodes", "image_grant.account": "nodes"},
            {"image_grant": None, "role_grant.role": "roles/editor"},
            {"image_grant": None, "gpu_pool": None, "system_pool": None},
        ],
        finds=[{"image_grant": None}],
        notes=[{"account.email": UNKNOWN}],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


DAILY = "FREQ=DAILY"
WEEKENDS = "FREQ=WEEKLY;BYDAY=SA,SU"
SATURDAYS = "FREQ=WEEKLY;BYDAY=SA"


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
def test_upgrades_have_48_hours_in_parts_of_4(end: str, recurrence: str, severities: list[str]) -> None:
    window = Window("2026-01-03T06:00:00Z", f"2026-01-03T{end}:00Z", recurrence)
    findings = check("maintenance-window", cluster(window=window))

    assert [finding.severity for finding in findings] == severities
    assert all(
        "newer copies of GKE's docs say 92" in (finding.allowed or "")
        for finding in findings
        if finding.severity == "warning"
    )


def test_a_cluster_without_a_window_may_be_upgraded_at_any_time() -> None:
    assert check("maintenance-window", cluster(window=None)) == []


@pytest.mark.parametrize("broken", ["start", "end"])
def test_times_that_are_none_are_found(broken: str) -> None:
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
    exclusion: Exclusion, severities: list[str]
) -> None:
    findings = check("maintenance-exclusion", cluster(exclusions=(exclusion,)))

    assert [finding.severity for finding in findings] == severities
    assert all(
        "newer copies of GKE's docs say 90" in (finding.allowed or "")
        for finding in findings
        if finding.severity == "warning"
    )


@pytest.mark.parametrize(("days", "end"), [(31, "2026-12-31"), (91, "2027-03-01")])
def test_the_nearest_end_of_an_exclusion_is_named(days: int, end: str) -> None:
    late = {31: "2027-01-01", 91: "2027-03-02"}[days]
    (finding,) = check("maintenance-exclusion", cluster(exclusions=(excluded("2026-12-01", late),)))

    assert f"for {days} days" in finding.message
    assert finding.nearest == f"end {end}T00:00:00Z"


@pytest.mark.parametrize(("count", "findings"), [(3, 0), (4, 1)])
def test_three_exclusions_are_from_all_upgrades_at_most(count: int, findings: int) -> None:
    several = (excluded("2026-12-01", "2026-12-02"),) * count

    assert len(check("maintenance-exclusion", cluster(exclusions=several))) == findings
