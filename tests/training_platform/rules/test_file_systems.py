"""Rules about Filestore and Lustre: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.builders import check, cluster, filestore, lustre
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.views.network import ServicesRangeView
from training_platform.views.storage import Export, SnapshotView


def export(*ranges: str, squashed: bool = False) -> Export:
    """Return an entry of these ranges."""
    return Export(ranges=ranges, squashed=squashed)


@pytest.mark.parametrize(
    ("exports", "messages"),
    [
        (tuple(export(f"10.{number}.0.0/24") for number in range(10)), []),
        (tuple(export(f"10.{number}.0.0/24") for number in range(11)), ["has 11 entries"]),
        ((export(*(f"10.0.{number}.0/24" for number in range(64))),), []),
        ((export(*(f"10.0.{number}.0/24" for number in range(65))),), ["has 65 ranges"]),
        ((export("10.0.0.0/23"), export("10.0.1.0/24")), ["10.0.1.0/24 overlaps 10.0.0.0/23 of another entry"]),
        ((export("10.0.0.0/23", "10.0.1.0/24"),), []),
        ((export("10.0.0.0/33"), export("a host")), []),
    ],
)
def test_exports_are_few_and_do_not_overlap(exports: tuple[Export, ...], messages: list[str]) -> None:
    assert [finding.message for finding in check("filestore-exports", filestore(exports=exports))] == messages


@pytest.mark.parametrize(
    ("labels", "squashed", "findings"),
    [
        ({"environment": "dev"}, True, 1),
        ({"environment": "dev"}, False, 0),
        ({"team": "vision"}, True, 0),
        (None, True, 1),
    ],
)
def test_root_makes_the_folders_of_several_teams(labels: dict[str, str] | None, squashed: bool, findings: int) -> None:
    shared = filestore(labels=labels, exports=(export("10.0.0.0/24", squashed=squashed),))

    assert [finding.nearest for finding in check("filestore-squashed-root", shared)] == ["none"] * findings


@pytest.mark.parametrize(("tier", "findings"), [("ZONAL", 0), ("BASIC_HDD", 1), ("no-such-tier", 0)])
def test_snapshots_are_of_tiers_that_have_them(tier: str, findings: int) -> None:
    more: dict[str, Any] = {"stack": "dev", "type": "SnapshotView", "name": "nightly", "instance": "shared"}

    snapshot_findings = check("filestore-snapshot", filestore(name="shared", tier=tier), SnapshotView(**more))

    assert len(snapshot_findings) == findings


TABLE = [
    Rule(
        "filestore-range",
        filestore,
        passes=[
            {"reserved_range": "10.0.0.0/29", "tier": "BASIC_HDD"},
            {"reserved_range": "10.0.0.0/26", "tier": "REGIONAL"},
            {"reserved_range": "named", "connect_mode": "PRIVATE_SERVICE_ACCESS"},
        ],
        finds=[
            Found({"reserved_range": "10.0.0.0/25"}, "10.0.0.0/26", severity="error"),
            Found({"reserved_range": "10.0.0.0/24"}, "10.0.0.0/26", severity="warning"),  # sources disagree
            {"connect_mode": "PRIVATE_SERVICE_ACCESS"},
        ],
    ),
    Rule("filestore-tier", filestore, passes=[], finds=[Found({"tier": "ZONALE"}, "ZONAL"), {"tier": None}]),
    Rule(
        "filestore-location",
        filestore,
        passes=[{"tier": "REGIONAL", "location": "us-central1"}],
        finds=[Found({"location": "us-central1"}, "us-central1-a"), Found({"tier": "REGIONAL"}, "us-central1")],
    ),
    Rule(
        "filestore-protection",
        filestore,
        passes=[{"deletion_protection": True}, {"deletion_protection": False, "tier": "BASIC_HDD"}],
        finds=[
            Found({"deletion_protection": True, "tier": "BASIC_HDD"}, "deletion_protection: false", severity="warning")
        ],
    ),
    Rule(
        "filestore-capacity",
        filestore,
        passes=[
            {"capacity_gib": 9_984},
            {"capacity_gib": 10_240},
            {"capacity_gib": 102_400},
            {"tier": "BASIC_HDD", "capacity_gib": 65_433},
            {"tier": "NO_SUCH_TIER", "capacity_gib": 1},
        ],
        finds=[
            Found({"capacity_gib": 1_023}, "1024", path="capacity_gib", severity="error"),
            Found({"capacity_gib": 1_025}, "1280"),
            Found({"capacity_gib": 9_985}, "10240"),
            Found({"capacity_gib": 10_241}, "12800"),
            Found({"capacity_gib": 102_401}, "102400"),
            Found({"tier": "BASIC_HDD", "capacity_gib": 65_434}, "65433"),
            Found({"tier": "BASIC_HDD", "capacity_gib": 99}, "1024", severity="error"),
            Found({"tier": "BASIC_HDD", "capacity_gib": 100}, "1024", severity="warning"),  # the CSI driver makes them
            Found({"tier": "REGIONAL", "capacity_gib": 99}, "1024", severity="error"),
            Found({"tier": "REGIONAL", "capacity_gib": 100}, "1024", severity="warning"),  # one page has it
        ],
    ),
    Rule(
        "filestore-protocol",
        filestore,
        passes=[{"protocol": "NFS_V4_1"}, {"tier": "BASIC_HDD", "protocol": None}],
        finds=[Found({"tier": "BASIC_HDD", "protocol": "NFS_V4_1"}, "NFS_V3")],
    ),
    Rule(
        "lustre-capacity",
        lustre,
        passes=[
            {"capacity_gib": 18_000},
            {"capacity_gib": 1_530_000},
            {"mbps_per_tib": 250, "capacity_gib": 36_000},
            {"mbps_per_tib": None, "capacity_gib": 1},  # of the dynamic tier
        ],
        finds=[
            Found({"capacity_gib": 8_999}, "9000", severity="error"),
            Found({"capacity_gib": 10_000}, "18000"),
            {"mbps_per_tib": 250, "capacity_gib": 18_000},
            {"mbps_per_tib": 333},
            Found({"mbps_per_tib": 125, "capacity_gib": 12_312_000}, "12240000", severity="warning"),  # pages differ
        ],
    ),
    Rule(
        "filestore-shared-vpc",
        filestore,
        passes=[
            {"network_project": "example-train"},
            {"network_project": "example-host", "connect_mode": "PRIVATE_SERVICE_ACCESS"},
        ],
        finds=[{"network_project": "example-host"}, {"network_project": "example-host", "connect_mode": None}],
    ),
    Rule(
        "filestore-iops",
        filestore,
        passes=[
            {"iops_per_tb": 17_000},
            {"iops_per_tb": 3_000, "capacity_gib": 10_240},
            {"iops_per_tb": None, "fixed_iops": 2_000},
            {"iops_per_tb": None, "fixed_iops": 166_000},
            {"iops_per_tb": None, "fixed_iops": 167_000, "tier": "REGIONAL"},
        ],
        finds=[
            Found({"iops_per_tb": 3_900}, "4000"),
            Found({"iops_per_tb": 17_100}, "17000"),
            {"iops_per_tb": 4_050},
            Found({"iops_per_tb": 7_500, "capacity_gib": 30_720}, "5000"),  # 225,000 in total
            {"iops_per_tb": 3_000, "capacity_gib": 9_984},
            {"fixed_iops": 2_000},
            {"iops_per_tb": None, "fixed_iops": 1_000},
            {"iops_per_tb": None, "fixed_iops": 167_000},
            {"tier": "ENTERPRISE"},
            Found({"iops_per_tb": None, "fixed_iops": 2_500}, "3000"),
        ],
    ),
    Rule(
        "filestore-directory",
        filestore,
        passes=[{"directory_services": True, "protocol": "NFS_V4_1"}],
        finds=[{"directory_services": True}],
    ),
    Rule("lustre-location", lustre, passes=[], finds=[Found({"location": "us-central1"}, "us-central1-a")]),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize(("prefix", "instances", "findings"), [(23, 1, 0), (24, 1, 1), (22, 2, 0), (22, 3, 1)])
def test_every_instance_takes_a_block_of_512_addresses(prefix: int, instances: int, findings: int) -> None:
    views = [lustre(name=f"lustre-{index}") for index in range(instances)]
    addresses = ServicesRangeView(
        stack="dev", type="ServicesRangeView", name="private", origin=(), purpose="VPC_PEERING", prefix=prefix
    )

    assert len(check("lustre-addresses", addresses, *views)) == findings
    assert check("lustre-addresses", *views) == []  # a range that another program made


def test_an_instance_where_no_cluster_is_is_found() -> None:
    assert check("lustre-region", lustre(), cluster()) == []
    (finding,) = check("lustre-region", lustre(location="europe-west4-a"), cluster())

    assert finding.nearest == "us-central1"
