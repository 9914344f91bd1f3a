"""Rules about Filestore and Lustre: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest
from training_platform.config.reading.finding import Finding
from training_platform.rules import View
from training_platform.views.network import ServicesRangeView
from training_platform.views.storage import Export, SnapshotView

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


ALONE: list[Alone] = [
    ("filestore-range", "filestore", {}, 0),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/24"}, 0),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/29"}, 1),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/29", "tier": "BASIC_HDD"}, 0),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/24", "connect_mode": "PRIVATE_SERVICE_ACCESS"}, 1),
    ("filestore-range", "filestore", {"reserved_range": "named", "connect_mode": "PRIVATE_SERVICE_ACCESS"}, 0),
    ("filestore-shared-vpc", "filestore", {"network_project": "example-train"}, 0),
    ("filestore-shared-vpc", "filestore", {"network_project": "example-host"}, 1),
    ("filestore-shared-vpc", "filestore", {"network_project": "example-host", "connect_mode": None}, 1),
    (
        "filestore-shared-vpc",
        "filestore",
        {"network_project": "example-host", "connect_mode": "PRIVATE_SERVICE_ACCESS"},
        0,
    ),
    ("filestore-iops", "filestore", {}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": 3_900}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": 17_000}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": 17_100}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": 4_050}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": 3_000, "capacity_gib": 10_240}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": 3_000, "capacity_gib": 9_984}, 1),
    ("filestore-iops", "filestore", {"fixed_iops": 2_000}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 2_000}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 1_000}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 166_000}, 0),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 167_000}, 1),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 167_000, "tier": "REGIONAL"}, 0),
    ("filestore-iops", "filestore", {"tier": "ENTERPRISE"}, 1),
    ("filestore-directory", "filestore", {"directory_services": True}, 1),
    ("filestore-directory", "filestore", {"directory_services": True, "protocol": "NFS_V4_1"}, 0),
]


NEAREST: list[AloneNearest] = [
    ("filestore-iops", "filestore", {"iops_per_tb": 17_100}, "17000"),
    ("filestore-iops", "filestore", {"iops_per_tb": None, "fixed_iops": 2_500}, "3000"),
    ("filestore-range", "filestore", {"reserved_range": "10.0.0.0/29"}, "10.0.0.0/24"),
]


@pytest.mark.parametrize(("tier", "nearest"), [("ZONAL", None), ("ZONALE", "ZONAL"), (None, None)])
def test_tier_outside_the_catalogue_is_found(
    check: Check, filestore: Make, tier: str | None, nearest: str | None
) -> None:
    found = check("filestore-tier", filestore(tier=tier))

    assert len(found) == (tier != "ZONAL")
    assert [finding.nearest for finding in found if finding.nearest] == ([nearest] if nearest else [])


@pytest.mark.parametrize(
    ("tier", "location", "nearest"),
    [
        ("ZONAL", "us-central1-a", None),
        ("ZONAL", "us-central1", "us-central1-a"),
        ("BASIC_SSD", "us-central1", "us-central1-a"),
        ("REGIONAL", "us-central1", None),
        ("REGIONAL", "us-central1-a", "us-central1"),
        ("ENTERPRISE", "us-central1-a", "us-central1"),
    ],
)
def test_tier_is_in_a_zone_or_a_region(
    check: Check, filestore: Make, tier: str, location: str, nearest: str | None
) -> None:
    found = check("filestore-location", filestore(tier=tier, location=location))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])


@pytest.mark.parametrize(
    ("tier", "size", "nearest"),
    [
        ("BASIC_HDD", 1_023, "1024"),
        ("BASIC_HDD", 1_024, None),
        ("BASIC_HDD", 65_433, None),
        ("BASIC_HDD", 65_434, "65433"),
        ("BASIC_SSD", 1_024, "2560"),
        ("BASIC_SSD", 2_560, None),
        ("ZONAL", 1_024, None),
        ("ZONAL", 3_000, "3072"),
        ("ZONAL", 9_984, None),
        ("ZONAL", 9_985, "10240"),
        ("ZONAL", 10_000, "10240"),
        ("ZONAL", 10_240, None),
        ("ZONAL", 11_000, "12800"),
        ("ZONAL", 102_400, None),
        ("REGIONAL", 102_401, "102400"),
        ("REGIONAL", 700_000, "102400"),
        ("ENTERPRISE", 10_240, None),
        ("ENTERPRISE", 10_241, "10240"),
        ("BASIC_SSD", 2_559, "2560"),
        ("BASIC_SSD", 65_434, "65433"),
        ("ZONAL", 1_023, "1024"),
        ("ZONAL", 1_025, "1280"),
        ("ZONAL", 10_239, "10240"),
        ("ZONAL", 10_241, "12800"),
        ("ZONAL", 102_401, "102400"),
        ("HIGH_SCALE_SSD", 10_239, "10240"),
        ("HIGH_SCALE_SSD", 102_401, "102400"),
        ("REGIONAL", 1_023, "1024"),
        ("REGIONAL", 9_985, "10240"),
        ("REGIONAL", 10_239, "10240"),
        ("ENTERPRISE", 1_023, "1024"),
        ("ENTERPRISE", 1_025, "1280"),
        ("NO_SUCH_TIER", 1, None),
    ],
)
def test_capacity_is_one_that_the_tier_comes_in(
    check: Check, filestore: Make, tier: str, size: int, nearest: str | None
) -> None:
    found = check("filestore-capacity", filestore(tier=tier, capacity_gib=size))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])
    assert {finding.path for finding in found} <= {"section.capacity_gib"}


@pytest.mark.parametrize(
    ("tier", "protocol", "count"),
    [
        ("ZONAL", "NFS_V4_1", 0),
        ("BASIC_HDD", "NFS_V4_1", 1),
        ("BASIC_HDD", "NFS_V3", 0),
        ("BASIC_HDD", None, 0),
    ],
)
def test_tier_speaks_the_protocol(check: Check, filestore: Make, tier: str, protocol: str | None, count: int) -> None:
    assert len(check("filestore-protocol", filestore(tier=tier, protocol=protocol))) == count


@pytest.mark.parametrize(
    ("tier", "prefix", "severity"),
    [
        ("ZONAL", 24, None),
        ("ZONAL", 26, "warning"),
        ("ZONAL", 25, "error"),
        ("REGIONAL", 26, None),
        ("REGIONAL", 24, "warning"),
        ("ENTERPRISE", 26, None),
        ("ENTERPRISE", 24, "warning"),
        ("ENTERPRISE", 29, "error"),
        ("HIGH_SCALE_SSD", 26, "error"),
        ("BASIC_HDD", 24, "error"),
    ],
)
def test_range_that_some_source_has_is_a_warning_at_most(
    check: Check, filestore: Make, tier: str, prefix: int, severity: str | None
) -> None:
    found = check("filestore-range", filestore(tier=tier, reserved_range=f"10.0.0.0/{prefix}"))

    assert [each.severity for each in found] == ([severity] if severity else [])
    assert all(("disagree" in each.message) == (severity == "warning") for each in found)


@pytest.mark.parametrize(
    ("tier", "size", "severity"),
    [
        ("REGIONAL", 100, "warning"),
        ("REGIONAL", 1_025, "warning"),
        ("REGIONAL", 99, "error"),
        ("ZONAL", 1_023, "error"),
    ],
)
def test_capacity_that_one_page_has_and_another_lacks_is_a_warning(
    check: Check, filestore: Make, tier: str, size: int, severity: str
) -> None:
    (capacity,) = check("filestore-capacity", filestore(tier=tier, capacity_gib=size))

    assert (capacity.severity, capacity.nearest) == (severity, "1280" if size > 1_024 else "1024")


def export(*ranges: str, squashed: bool = False) -> Export:
    """Return an entry of these ranges."""
    return Export(ranges=ranges, squashed=squashed)


@pytest.mark.parametrize(
    ("exports", "messages"),
    [
        ((), []),
        (tuple(export(f"10.{number}.0.0/24") for number in range(10)), []),
        (tuple(export(f"10.{number}.0.0/24") for number in range(11)), ["has 11 entries"]),
        ((export(*(f"10.0.{number}.0/24" for number in range(64))),), []),
        ((export(*(f"10.0.{number}.0/24" for number in range(65))),), ["has 65 ranges"]),
        ((export("10.0.0.0/24"), export("10.0.1.0/24")), []),
        ((export("10.0.0.0/23"), export("10.0.1.0/24")), ["10.0.1.0/24 overlaps 10.0.0.0/23 of another entry"]),
        ((export("10.0.0.0/23", "10.0.1.0/24"),), []),
        ((export("10.0.0.0/33"), export("a host")), []),
    ],
)
def test_exports_are_few_and_do_not_overlap(
    check: Check, filestore: Make, exports: tuple[Export, ...], messages: list[str]
) -> None:
    assert [each.message for each in check("filestore-exports", filestore(exports=exports))] == messages


@pytest.mark.parametrize(
    ("labels", "squashed", "findings"),
    [
        ({"environment": "dev"}, True, 1),
        ({"environment": "dev"}, False, 0),
        ({"environment": "dev", "team": "vision"}, True, 0),
        (None, True, 1),
    ],
)
def test_root_makes_the_folders_of_several_teams(
    check: Check, filestore: Make, labels: dict[str, str] | None, squashed: bool, findings: int
) -> None:
    shared = filestore(labels=labels, exports=(export("10.0.0.0/24", squashed=squashed),))

    assert [each.nearest for each in check("filestore-squashed-root", shared)] == ["none"] * findings


@pytest.mark.parametrize(("tier", "findings"), [("ZONAL", 0), ("BASIC_HDD", 1), ("no-such-tier", 0)])
def test_snapshots_are_of_tiers_that_have_them(check: Check, filestore: Make, tier: str, findings: int) -> None:
    more: dict[str, Any] = {"stack": "dev", "type": "SnapshotView", "name": "nightly", "instance": "shared"}

    found = check("filestore-snapshot", filestore(name="shared", tier=tier), SnapshotView(**more))

    assert len(found) == findings


def _size(mbps: int, gib: int, found: int) -> Alone:
    return ("lustre-capacity", "lustre", {"mbps_per_tib": mbps, "capacity_gib": gib}, found)


ALONE += [
    _size(1000, 9_000, 0),
    _size(1000, 8_999, 1),
    _size(1000, 18_000, 0),
    _size(1000, 13_500, 1),
    _size(1000, 1_530_000, 0),
    _size(1000, 1_539_000, 1),
    _size(1000, 1_584_000, 0),
    _size(1000, 10_008_000, 0),
    _size(500, 9_000, 1),
    _size(500, 18_000, 0),
    _size(500, 20_016_000, 0),
    _size(250, 18_000, 1),
    _size(250, 36_000, 0),
    _size(250, 40_032_000, 0),
    _size(125, 36_000, 1),
    _size(125, 72_000, 0),
    _size(125, 12_240_000, 0),
    _size(333, 72_000, 1),
    ("lustre-location", "lustre", {}, 0),
    ("lustre-location", "lustre", {"location": "us-central1"}, 1),
]
NEAREST += [
    ("lustre-capacity", "lustre", {"capacity_gib": 10_000}, "18000"),
    ("lustre-capacity", "lustre", {"capacity_gib": 1}, "9000"),
    ("lustre-location", "lustre", {"location": "us-central1"}, "us-central1-a"),
]


def test_more_than_the_largest_is_a_warning_since_pages_differ(lustre: Make, check: Check) -> None:
    (finding,) = check("lustre-capacity", lustre(mbps_per_tib=125, capacity_gib=20_448_000))

    assert (finding.severity, finding.nearest) == ("warning", "12240000")


@pytest.mark.parametrize(("prefix", "instances", "found"), [(23, 1, 0), (24, 1, 1), (22, 2, 0), (22, 3, 1)])
def test_every_instance_takes_a_block_of_512_addresses(
    lustre: Make, check: Check, prefix: int, instances: int, found: int
) -> None:
    views = [lustre(name=f"lustre-{index}") for index in range(instances)]
    addresses = ServicesRangeView(
        stack="dev", type="ServicesRangeView", name="private", origin=(), purpose="VPC_PEERING", prefix=prefix
    )

    assert len(check("lustre-addresses", addresses, *views)) == found
    assert check("lustre-addresses", *views) == []  # a range that another program made


def test_an_instance_where_no_cluster_is_is_found(lustre: Make, cluster: Make, check: Check) -> None:
    assert check("lustre-region", lustre(), cluster()) == []
    (finding,) = check("lustre-region", lustre(location="europe-west4-a"), cluster())

    assert finding.nearest == "us-central1"
