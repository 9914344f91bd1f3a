from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


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


def test_production_filestore_is_protected(check: Check, filestore: Make) -> None:
    assert check("filestore-deletion-protection", filestore(), production=True) == []
    assert check("filestore-deletion-protection", filestore(deletion_protection=False)) == []
    (finding,) = check("filestore-deletion-protection", filestore(deletion_protection=False), production=True)

    assert finding.path == "deletion_protection"


def test_production_cluster_is_protected(check: Check, cluster: Make) -> None:
    assert check("cluster-deletion-protection", cluster(), production=True) == []
    assert check("cluster-deletion-protection", cluster(deletion_protection=False)) == []
    assert len(check("cluster-deletion-protection", cluster(deletion_protection=False), production=True)) == 1


def test_production_bucket_keeps_its_objects(check: Check, bucket: Make) -> None:
    assert check("bucket-force-destroy", bucket(), production=True) == []
    assert check("bucket-force-destroy", bucket(force_destroy=True)) == []
    assert len(check("bucket-force-destroy", bucket(force_destroy=True), production=True)) == 1
