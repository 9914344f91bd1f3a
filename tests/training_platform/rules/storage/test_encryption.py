"""Keys of Cloud KMS: in the region of what they encrypt, and only where they are supported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules import foreign
from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN

KEY = "projects/example-keys/locations/{}/keyRings/training/cryptoKeys/data"


def found(rule: str, changes: dict[str, Any]) -> list[Finding]:
    return [each for each in foreign.found(changes) if each.rule == rule]


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
    assert [each.severity for each in found("key-location", {path: KEY.format("global")})] == ["warning"]
    assert [each.severity for each in found("key-location", {path: UNKNOWN})] == ["note"]


def test_a_key_of_several_regions_suits_a_bucket_in_them() -> None:
    where = {"bucket.location": "US"}

    assert found("key-location", {**where, "bucket.encryption.defaultKmsKeyName": KEY.format("us")}) == []


@pytest.mark.parametrize(("location", "severity"), [("us-central1", None), ("global", None), ("us-west4", "error")])
def test_a_disk_is_under_a_key_of_its_region_or_a_global_one(location: str, severity: str | None) -> None:
    each = found("disk-key-location", {"gpu.nodeConfig.bootDiskKmsKey": KEY.format(location)})

    assert [one.severity for one in each] == ([severity] if severity else [])


@pytest.mark.parametrize("tier", ["ZONAL", "BASIC_HDD", "PREMIUM"])
def test_a_basic_tier_of_filestore_takes_no_key(tier: str) -> None:
    plain = {"files.tier": tier}

    assert found("filestore-key", plain) == []
    assert bool(found("filestore-key", {**plain, "files.kmsKeyName": KEY.format("us-central1")})) is (tier != "ZONAL")
