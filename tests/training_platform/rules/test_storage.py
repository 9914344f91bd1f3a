"""Rules of disks, keys that encrypt, and volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules import foreign
from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest
from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


@pytest.mark.parametrize(("size", "nearest"), [(9, "10"), (10, None), (65_536, None), (65_537, "65536")])
def test_boot_disk_of_gke_has_10_to_65536_gb(check: Check, gpu_pool: Make, size: int, nearest: str | None) -> None:
    found = check("boot-disk-size", gpu_pool(disk_gb=size))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])


@pytest.mark.parametrize(("size", "nearest"), [(99, "100"), (100, None), (64_000, None), (64_001, "64000")])
def test_boot_disk_of_vertex_has_100_to_64000_gb(
    check: Check, persistent_pool: Make, size: int, nearest: str | None
) -> None:
    found = check("vertex-boot-disk-size", persistent_pool(disk_gb=size))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])


def test_each_size_rule_is_for_its_own_service(check: Check, gpu_pool: Make, persistent_pool: Make) -> None:
    assert check("boot-disk-size", persistent_pool(disk_gb=1)) == []
    assert check("vertex-boot-disk-size", gpu_pool(disk_gb=1)) == []


def test_size_finding_says_what_is_allowed_at_the_fields_place(check: Check, gpu_pool: Make) -> None:
    (finding,) = check("boot-disk-size", gpu_pool(disk_gb=700_000))

    assert finding.message == "is 700,000 GB"
    assert finding.allowed == "10 to 65,536 GB"
    assert finding.path == "section.boot_disk.size_gb"


@pytest.mark.parametrize(("field", "path"), [("disk_gb", "size_gb"), ("disk_type", "type")])
def test_vertex_disk_has_size_and_type_written(check: Check, persistent_pool: Make, field: str, path: str) -> None:
    assert check("vertex-boot-disk-written", persistent_pool()) == []
    (finding,) = check("vertex-boot-disk-written", persistent_pool(**{field: None}))

    assert finding.path == f"section.boot_disk.{path}"


def test_node_disk_may_be_left_to_gke(check: Check, gpu_pool: Make) -> None:
    for rule in ("boot-disk-size", "boot-disk-type", "vertex-boot-disk-written"):
        assert check(rule, gpu_pool(disk_gb=None, disk_type=None)) == []


@pytest.mark.parametrize(
    ("machine", "disk", "nearest"),
    [
        ("a3-highgpu-8g", "pd-balanced", None),
        ("a3-highgpu-8g", "hyperdisk-balanced", None),
        ("a3-highgpu-8g", "pd-standard", "pd-balanced"),
        ("a2-highgpu-8g", "pd-standard", None),
        ("a2-highgpu-8g", "hyperdisk-balanced", "pd-balanced"),
        ("ct5lp-hightpu-4t", "pd-ssd", None),
        ("ct5lp-hightpu-4t", "pd-standard", "pd-balanced"),
        ("ct5lp-hightpu-4t", "hyperdisk-balanced", "pd-balanced"),
        ("ct4p-hightpu-4t", "hyperdisk-balanced", None),
        ("ct4p-hightpu-4t", "pd-extreme", "pd-balanced"),
        ("no-such-machine", "pd-extreme", None),
    ],
)
def test_node_boots_from_what_its_machine_takes(
    check: Check, gpu_pool: Make, machine: str, disk: str, nearest: str | None
) -> None:
    found = check("boot-disk-type", gpu_pool(machine_type=machine, disk_type=disk))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])


@pytest.mark.parametrize(
    ("disk", "nearest"),
    [("pd-ssd", None), ("pd-standard", None), ("pd-balanced", "pd-ssd"), ("hyperdisk-balanced", "pd-ssd")],
)
def test_vertex_machine_boots_from_what_vertex_starts_it_with(
    check: Check, persistent_pool: Make, disk: str, nearest: str | None
) -> None:
    found = check("vertex-boot-disk-type", persistent_pool(disk_type=disk))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])


@pytest.mark.parametrize(
    ("machine", "count", "nearest"),
    [
        ("a3-highgpu-8g", 16, None),
        ("a3-highgpu-8g", 15, "16"),
        ("a3-highgpu-8g", None, "16"),
        ("a2-ultragpu-8g", 8, None),
        ("a2-ultragpu-8g", 16, "8"),
        ("a2-highgpu-2g", None, None),
        ("a2-highgpu-2g", 2, None),
        ("a2-highgpu-2g", 1, "0"),
        ("ct5lp-hightpu-4t", None, None),
        ("ct5lp-hightpu-4t", 1, "0"),
    ],
)
def test_local_ssds_are_those_that_the_machine_brings(
    check: Check, gpu_pool: Make, machine: str, count: int | None, nearest: str | None
) -> None:
    found = check("local-ssd-count", gpu_pool(machine_type=machine, local_ssd_count=count))

    assert [finding.nearest for finding in found] == ([nearest] if nearest else [])


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"ephemeral_ssds": 16}, None),
        ({"ephemeral_ssds": 16, "block_ssds": 16}, "block_ssds"),
        ({"block_ssds": 16, "legacy_ssds": 16}, "legacy_ssds"),
        ({"ephemeral_ssds": 4, "data_cache_ssds": 4}, None),
        ({"ephemeral_ssds": 4, "data_cache_ssds": 5}, "data_cache_ssds"),
    ],
)
def test_local_ssds_are_in_one_form(check: Check, gpu_pool: Make, given: dict[str, int], path: str | None) -> None:
    forms = dict.fromkeys(("ephemeral_ssds", "block_ssds", "legacy_ssds", "data_cache_ssds"))
    view = gpu_pool(**{**forms, **given})

    assert [each.path for each in check("local-ssd-forms", view)] == (
        [".".join(map(str, view.path(path)))] if path else []
    )


def test_unknown_size_is_not_decided(check: Check, gpu_pool: Make) -> None:
    (finding,) = check("boot-disk-size", gpu_pool(disk_gb=UNKNOWN))

    assert finding.severity == "note"
    assert finding.message == "boot-disk-size is not decided: disk_gb is not known before deployment"


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


SHARED = {"tier": "enterprise", "multishare": "true"}
ALONE: list[Alone] = [
    ("filestore-class", "storage_class", {}, 0),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}}, 1),
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}, "provisioner": "other"}, 0),
    ("filestore-class", "storage_class", {"parameters": {"connect-mode": "PRIVATE_SERVICE_CONNECT"}}, 1),
    ("filestore-multishare", "storage_class", {"parameters": {"tier": "zonal"}}, 0),
    ("filestore-multishare", "storage_class", {"parameters": {"tier": "zonal", "multishare": "true"}}, 1),
    ("filestore-multishare", "storage_class", {"parameters": {"tier": "zonal", "multishare": "false"}}, 0),
    ("filestore-multishare", "storage_class", {"parameters": SHARED}, 0),
    ("filestore-multishare", "storage_class", {"parameters": SHARED, "largest_share": "1024Gi"}, 0),
    ("filestore-multishare", "storage_class", {"parameters": SHARED, "largest_share": "2048Gi"}, 1),
    ("filestore-multishare", "storage_class", {"parameters": {"tier": "enterprise"}, "largest_share": "128Gi"}, 1),
    ("bucket-hierarchical", "bucket", {"hierarchical": True, "versioning": False}, 0),
    ("bucket-hierarchical", "bucket", {"hierarchical": False, "versioning": True}, 0),
    ("bucket-hierarchical", "bucket", {"hierarchical": True, "versioning": True}, 1),
    ("built-in-class", "volume_claim", {}, 0),
    ("built-in-class", "volume_claim", {"class_name": "zonal-rwx"}, 1),
]


NEAREST: list[AloneNearest] = [
    ("filestore-class", "storage_class", {"parameters": {"teir": "zonal"}}, "tier"),
]
