"""Boot disks and Filestore: sizes, and what they are charged to."""

from __future__ import annotations

import pytest

from training_platform.catalog import (
    BOOT_DISK_LIMITS,
    DISK_TYPES,
    FILESTORE_TIERS,
    GENERAL_QUOTAS,
    VERTEX_BOOT_DISK_MAX_GB,
    VERTEX_BOOT_DISK_MIN_GB,
)
from training_platform.catalog.types import Band


def test_boot_disk_limits_are_those_of_each_service() -> None:
    limits = {name: (limit.min_gb, limit.max_gb) for name, limit in BOOT_DISK_LIMITS.items()}

    assert limits == {"gke": (10, 64 * 1024), "vertex": (100, 64_000)}
    assert (VERTEX_BOOT_DISK_MIN_GB, VERTEX_BOOT_DISK_MAX_GB) == (100, 64_000)


def test_disks_are_charged_to_ssd_hdd_or_hyperdisk() -> None:
    charged = {name: disk.quota.quota_id for name, disk in DISK_TYPES.items() if disk.quota is not None}

    assert charged == {
        "pd-standard": "DISKS-TOTAL-GB-per-project-region",
        "pd-balanced": "SSD-TOTAL-GB-per-project-region",
        "pd-ssd": "SSD-TOTAL-GB-per-project-region",
        "hyperdisk-balanced": "HDB-TOTAL-GB-per-project-region",
    }
    on_vertex = {name: disk.vertex_quota for name, disk in DISK_TYPES.items() if disk.vertex_boot}
    assert on_vertex == {name: GENERAL_QUOTAS[f"vertex-{name}"] for name in DISK_TYPES if name != "pd-balanced"}


def test_filestore_tiers_have_the_bands_of_their_source() -> None:
    low, high = Band(1024, 39 * 256, 256), Band(10 * 1024, 100 * 1024, 2560)
    most = 65_433  # 63.9 TiB, rounded down

    assert {name: tier.bands for name, tier in FILESTORE_TIERS.items()} == {
        "BASIC_HDD": (Band(1024, most, 1),),
        "BASIC_SSD": (Band(2560, most, 1),),
        "ZONAL": (low, high),
        "HIGH_SCALE_SSD": (high,),
        "REGIONAL": (low, high),
        "ENTERPRISE": (Band(1024, 10 * 1024, 256),),
    }
    for tier in FILESTORE_TIERS.values():
        assert all((band.high_gib - band.low_gib) % band.step_gib == 0 for band in tier.bands)
        assert ("NFS_V4_1" in tier.protocols) == (not tier.name.startswith("BASIC_"))
        assert (tier.scope == "region") == (tier.name in {"REGIONAL", "ENTERPRISE"})


@pytest.mark.parametrize(
    ("tier", "capacity_gib", "quota_id"),
    [
        ("BASIC_HDD", 1024, "StandardStorageGbPerRegion"),
        ("BASIC_SSD", 2560, "PremiumStorageGbPerRegion"),
        ("ZONAL", 9984, "EnterpriseStorageGibPerRegion"),
        ("ZONAL", 10240, "HighScaleSSDStorageGibPerRegion"),
        ("REGIONAL", 10240, "EnterpriseStorageGibPerRegion"),
        ("ENTERPRISE", 1024, "EnterpriseStorageGibPerRegion"),
    ],
)
def test_a_filestore_instance_is_charged_by_tier_and_band(tier: str, capacity_gib: int, quota_id: str) -> None:
    assert FILESTORE_TIERS[tier].quota_for(capacity_gib).quota_id == quota_id
