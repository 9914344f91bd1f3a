"""Rules of disks, keys that encrypt, and volumes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules import foreign
from tests.training_platform.rules.builders import bucket, check, gpu_pool, persistent_pool, storage_class, volume_claim
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.config.reading.finding import Finding
from training_platform.resources.stack_resource import UNKNOWN


def test_size_finding_says_what_is_allowed_at_the_fields_place() -> None:
    (finding,) = check("boot-disk-size", gpu_pool(disk_gb=700_000))

    assert finding.message == "is 700,000 GB"
    assert finding.allowed == "10 to 65,536 GB"
    assert finding.path == "section.boot_disk.size_gb"


KEY = "projects/example-keys/locations/{}/keyRings/training/cryptoKeys/data"


def found(rule: str, changes: dict[str, Any]) -> list[Finding]:
    return [finding for finding in foreign.found(changes) if finding.rule == rule]


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("files.kmsKeyName", "us-central1"),  # the instance is in us-central1-a
        ("cluster.databaseEncryption.keyName", "us-central1"),
        ("bucket.encryption.defaultKmsKeyName", "us-central1"),
        ("tuning.encryptionSpec.kmsKeyName", "us-central1"),
    ],
)
def test_a_key_is_in_the_region_of_what_it_encrypts(path: str, location: str) -> None:
    assert found("key-location", {path: KEY.format(location)}) == []
    (other,) = found("key-location", {path: KEY.format("us-west4")})
    assert (other.severity, other.nearest, other.path) == ("error", KEY.format(location), path.partition(".")[2])
    assert [finding.severity for finding in found("key-location", {path: KEY.format("global")})] == ["warning"]
    assert [finding.severity for finding in found("key-location", {path: UNKNOWN})] == ["note"]


def test_a_key_of_several_regions_suits_a_bucket_in_them() -> None:
    where = {"bucket.location": "US"}

    assert found("key-location", {**where, "bucket.encryption.defaultKmsKeyName": KEY.format("us")}) == []


@pytest.mark.parametrize(("location", "severity"), [("us-central1", None), ("global", None), ("us-west4", "error")])
def test_a_disk_is_under_a_key_of_its_region_or_a_global_one(location: str, severity: str | None) -> None:
    findings = found("disk-key-location", {"gpu.nodeConfig.bootDiskKmsKey": KEY.format(location)})

    assert [finding.severity for finding in findings] == ([severity] if severity else [])


@pytest.mark.parametrize("tier", ["ZONAL", "BASIC_HDD", "PREMIUM"])
def test_a_basic_tier_of_filestore_takes_no_key(tier: str) -> None:
    plain = {"files.tier": tier}

    assert found("filestore-key", plain) == []
    assert bool(found("filestore-key", {**plain, "files.kmsKeyName": KEY.format("us-central1")})) is (tier != "ZONAL")


SHARED = {"tier": "enterprise", "multishare": "true"}


TABLE = [
    Rule(
        "boot-disk-size",
        gpu_pool,
        passes=[{"disk_gb": 10}, {"disk_gb": 65_536}, {"disk_gb": None}],
        finds=[Found({"disk_gb": 9}, "10"), Found({"disk_gb": 65_537}, "65536")],
    ),
    Rule(
        "vertex-boot-disk-size",
        persistent_pool,
        passes=[{"disk_gb": 100}, {"disk_gb": 64_000}],
        finds=[Found({"disk_gb": 99}, "100"), Found({"disk_gb": 64_001}, "64000")],
    ),
    Rule(
        "vertex-boot-disk-written",
        persistent_pool,
        passes=[],
        finds=[
            Found({"disk_gb": None}, "100", path="boot_disk.size_gb"),
            Found({"disk_type": None}, "pd-ssd", path="boot_disk.type"),
        ],
    ),
    Rule(
        "boot-disk-type",
        gpu_pool,
        passes=[
            {"disk_type": "hyperdisk-balanced"},
            {"disk_type": None},
            {"machine_type": "a2-highgpu-8g", "disk_type": "pd-standard"},
            {"machine_type": "no-such-machine", "disk_type": "pd-extreme"},
        ],
        finds=[
            Found({"disk_type": "pd-standard"}, "pd-balanced", severity="error"),
            Found({"machine_type": "a2-highgpu-8g", "disk_type": "hyperdisk-balanced"}, "pd-balanced"),
            Found({"machine_type": "n2-standard-8", "disk_type": "hyperdisk-extreme"}, severity="warning"),
        ],
    ),
    Rule(
        "vertex-boot-disk-type",
        persistent_pool,
        passes=[{"disk_type": "pd-standard"}],
        finds=[Found({"disk_type": "pd-balanced"}, "pd-ssd"), {"disk_type": "hyperdisk-balanced"}],
    ),
    Rule(
        "local-ssd-count",
        gpu_pool,
        passes=[
            {"machine_type": "a2-highgpu-2g", "local_ssd_count": None},
            {"machine_type": "a2-highgpu-2g", "local_ssd_count": 2},
            {"local_ssd_count": None, "ignored": ("nodeConfig",)},
        ],
        finds=[
            Found({"local_ssd_count": 15}, "16", severity="error"),
            Found({"local_ssd_count": None}, "16", severity="warning"),
            Found({"machine_type": "a2-highgpu-2g", "local_ssd_count": 1}, "0"),
            Found({"machine_type": "ct5lp-hightpu-4t", "local_ssd_count": 1}, "0"),
        ],
    ),
    Rule(
        "local-ssd-forms",
        gpu_pool,
        passes=[{"ephemeral_ssds": 16}, {"ephemeral_ssds": 4, "data_cache_ssds": 4}],
        finds=[
            {"ephemeral_ssds": 16, "block_ssds": 16},
            {"block_ssds": 16, "legacy_ssds": 16},
            {"ephemeral_ssds": 4, "data_cache_ssds": 5},
        ],
    ),
    Rule(
        "filestore-class",
        storage_class,
        passes=[{"parameters": {"teir": "zonal"}, "provisioner": "other"}],
        finds=[
            Found({"parameters": {"teir": "zonal"}}, "tier"),
            {"parameters": {"connect-mode": "PRIVATE_SERVICE_CONNECT"}},
        ],
    ),
    Rule(
        "filestore-multishare",
        storage_class,
        passes=[
            {"parameters": {"tier": "zonal"}},
            {"parameters": {"tier": "zonal", "multishare": "false"}},
            {"parameters": SHARED},
            {"parameters": SHARED, "largest_share": "1024Gi"},
        ],
        finds=[
            {"parameters": {"tier": "zonal", "multishare": "true"}},
            {"parameters": SHARED, "largest_share": "2048Gi"},
            {"parameters": {"tier": "enterprise"}, "largest_share": "128Gi"},
        ],
    ),
    Rule(
        "bucket-hierarchical",
        bucket,
        passes=[{"hierarchical": True, "versioning": False}, {"hierarchical": False, "versioning": True}],
        finds=[{"hierarchical": True, "versioning": True}],
    ),
    Rule("built-in-class", volume_claim, passes=[], finds=[{"class_name": "zonal-rwx"}]),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()
