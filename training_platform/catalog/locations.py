"""Functions for the names of regions and zones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

# Multi-regions of Artifact Registry, with the regions outside whose names begin the same way. Source:
# Artifact Registry docs, repository locations, read 2026-11-23. That London and Zurich are outside is (unverified).
MULTI_REGIONS: Mapping[str, tuple[str, ...]] = {"asia": (), "europe": ("europe-west2", "europe-west6"), "us": ()}
# us-central1-a, and us-central1-ai1a: the last part of a zone's name can be longer than a letter.
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z\d]+")


def is_zone(location: str) -> bool:
    """Return True if a name has the form of a zone. ``ZONES`` lists the zones that are known to exist."""
    return _ZONE.fullmatch(location) is not None


@lru_cache(maxsize=1024)  # every charge and every rule about a location calls it
def region_of(location: str) -> str:
    """Return the region of a zone; a region, or any other string, is returned unchanged."""
    return location.rpartition("-")[0] if is_zone(location) else location


def serves(location: str, region: str) -> bool:
    """Return True if an Artifact Registry location is the region or the multi-region that contains it."""
    outside = MULTI_REGIONS.get(location)
    return location == region or (outside is not None and region.startswith(f"{location}-") and region not in outside)


def nearest_first(zone: str, zones: Iterable[str]) -> list[str]:
    """Return candidates to replace a zone, the best first: zones of its region, of its continent, all others."""
    region = region_of(zone)
    continent = zone.partition("-")[0]
    return sorted(zones, key=lambda other: (region_of(other) != region, other.partition("-")[0] != continent, other))
