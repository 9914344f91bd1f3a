"""Keys of Cloud KMS beside what they encrypt."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import REGIONS
from training_platform.catalog.locations import region_of
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.section import enumeration
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import EncryptedView, FilestoreView

_PAGES = "Filestore docs, CMEK, and Artifact Registry docs, CMEK, both read 2026-11-22 as of 2026-04"
WITHOUT_KEYS = ("BASIC_HDD", "BASIC_SSD", "STANDARD", "PREMIUM")
WITH_KEYS = ("ZONAL", "REGIONAL", "ENTERPRISE")


@rule(
    "key-location",
    ruleset="encryption",
    facts=("REG-03",),
    source=f"{_PAGES}; Vertex AI, encryption_spec.proto; for buckets and clusters (general knowledge)",
)
def key_location(resource: EncryptedView) -> Iterator[Draft]:
    """Find a key in another region than what it encrypts; of something in a zone, the region decides.

    Whether a key of several regions, or a global one, is accepted differs by service: for these it is a warning.
    """
    if resource.encryption is not None:
        yield from _elsewhere(resource, resource.location, resource.encryption)


@rule(
    "disk-key-location",
    ruleset="encryption",
    facts=("REG-03",),
    source="gcloud reference, compute disks update-kms-key, read 2026-11-22; for the region (general knowledge)",
)
def disk_key_location(pool: NodePoolView) -> Iterator[Draft]:
    """Find a key in another region than the boot disks that it encrypts; disks take a global key as well."""
    if pool.encryption is not None and _location(pool.encryption) != "global":
        yield from _elsewhere(pool, pool.location, pool.encryption)


@rule("filestore-key", ruleset="encryption", facts=("REG-03",), source="Filestore docs, CMEK, read 2026-11-22")
def filestore_key(instance: FilestoreView) -> Iterator[Draft]:
    """Find a key on a tier of Filestore that supports none."""
    if instance.encrypted and instance.tier in WITHOUT_KEYS:
        message = f"{instance.tier} does not support keys of your own"
        yield finding(instance, "tier", message, allowed=enumeration(WITH_KEYS), nearest=WITH_KEYS[0])


def _location(key: str) -> str:
    """Return the location in a key's name, "" for what has another form."""
    before, _, after = key.partition("/locations/")
    return after.partition("/")[0] if before else ""


def _elsewhere(view: EncryptedView | NodePoolView, location: str, key: str) -> Iterator[Draft]:
    found, region = _location(key), region_of(location.lower())  # of a bucket in capitals, where several
    if found and found != region:
        message = f"{view.name} is in {region}, and its key in {found}"
        severity: Severity = "error" if found in REGIONS else "warning"
        nearest = key.replace(f"/locations/{found}/", f"/locations/{region}/")
        allowed = f"a key in {region}"
        yield finding(view, "encryption", message, allowed=allowed, nearest=nearest, severity=severity)
