"""Rules about Filestore instances: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest
from training_platform.config.reading.finding import Finding
from training_platform.rules import View

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


def test_range_of_a_tier_on_which_sources_disagree_is_a_warning(check: Check, filestore: Make) -> None:
    found = check("filestore-range", filestore(tier="REGIONAL", location="us-central1", reserved_range="10.0.0.0/24"))

    assert [(each.severity, "disagree" in each.message) for each in found] == [("warning", True)]
