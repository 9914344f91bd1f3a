"""Filestore instances."""

from __future__ import annotations

from collections.abc import Iterator

from modules.catalog import FILESTORE_TIERS
from modules.catalog.locations import is_zone, region_of, zones_in
from modules.catalog.nearest import find_nearest
from modules.catalog.types import Band, FilestoreTier
from modules.config.section import enumeration
from modules.rules.registry import Draft, finding, rule
from modules.rules.views import Filestore

_TIERS = "Filestore docs, service tiers, read 2026-04-10"


@rule("filestore-tier", ruleset="filestore", owner="house", source="the catalogue: what is not in it is not checked")
def filestore_tier(instance: Filestore) -> Iterator[Draft]:
    """Find a tier that the catalogue does not know."""
    if instance.tier not in FILESTORE_TIERS:
        nearest = find_nearest(instance.tier or "", FILESTORE_TIERS)
        message = f"{instance.tier!r} is not in the catalogue, so the instance is neither checked nor counted"
        yield finding(instance, "tier", message, allowed=enumeration(FILESTORE_TIERS), nearest=nearest)


@rule(
    "filestore-location",
    ruleset="filestore",
    facts=("FST-01",),
    source=f"{_TIERS}; terraform-provider-google-beta 93c65b2, location",
)
def filestore_location(instance: Filestore) -> Iterator[Draft]:
    """Find a zonal tier in a region, or a regional tier in a zone."""
    tier = FILESTORE_TIERS.get(instance.tier)
    if tier is None:
        return
    place = instance.location
    if tier.scope == "zone" and not is_zone(place):
        zones = zones_in(place)
        message = f"{tier.name} instances are in a zone, and {place} is a region"
        allowed = enumeration(zones) or f"a zone of {place}"
        yield finding(instance, "location", message, allowed=allowed, nearest=next(iter(zones), None))
    elif tier.scope == "region" and is_zone(place):
        message = f"{tier.name} instances are in a region, and {place} is a zone"
        yield finding(instance, "location", message, allowed="a region", nearest=region_of(place))


@rule("filestore-capacity", ruleset="filestore", facts=("FST-02",), source=f"{_TIERS}; Filestore CSI driver 2edb466")
def filestore_capacity(instance: Filestore) -> Iterator[Draft]:
    """Find a capacity, in GiB, that the tier does not come in."""
    tier = FILESTORE_TIERS.get(instance.tier)
    if tier is None:
        return
    size = instance.capacity_gib
    if not any(_fits(band, size) for band in tier.bands):
        message = f"{tier.name} does not come in {size:,} GiB"
        yield finding(instance, "capacity_gib", message, allowed=_bands(tier), nearest=_nearest(tier, size))


@rule(
    "filestore-protocol",
    ruleset="filestore",
    facts=("FST-04",),
    source=f"{_TIERS}; Cluster Toolkit v1.95.0, filestore module; Filestore CSI driver 2edb466",
)
def filestore_protocol(instance: Filestore) -> Iterator[Draft]:
    """Find a version of NFS that the tier does not speak."""
    tier = FILESTORE_TIERS.get(instance.tier)
    protocol = instance.protocol or "NFS_V3"
    if tier is not None and protocol not in tier.protocols:
        message = f"{tier.name} does not speak {protocol}"
        yield finding(instance, "protocol", message, allowed=", ".join(tier.protocols), nearest=tier.protocols[0])


def _fits(band: Band, size: int) -> bool:
    return band.low_gib <= size <= band.high_gib and (size - band.low_gib) % band.step_gib == 0


def _bands(tier: FilestoreTier) -> str:
    ranges = [(f"{low:,} to {high:,} GiB", step) for low, high, step in tier.bands]
    return ", or ".join(text + (f" in steps of {step:,}" if step > 1 else "") for text, step in ranges)


def _nearest(tier: FilestoreTier, size: int) -> int:
    """Return the smallest capacity that is enough, or the largest there is."""
    enough = []
    for low, high, step in tier.bands:
        least = max(low, low + -(-(size - low) // step) * step)
        if least <= high:
            enough.append(least)
    return min(enough, default=max(band.high_gib for band in tier.bands))
