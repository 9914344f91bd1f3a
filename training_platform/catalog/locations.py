"""Regions and zones by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# us-central1-a, and us-central1-ai1a: the last part of a zone's name may be longer than a letter.
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z\d]+")


def is_zone(location: str) -> bool:
    """Whether a name has the form of a zone; whether there is such a zone is in ``ZONES``, as far as we know."""
    return _ZONE.fullmatch(location) is not None


@lru_cache(maxsize=1024)  # every charge and every rule about a place asks
def region_of(location: str) -> str:
    """Return the region of a zone; a region, or anything else, is returned as it is."""
    return location.rpartition("-")[0] if is_zone(location) else location


def nearest_first(zone: str, zones: Iterable[str]) -> list[str]:
    """Return zones in the order in which they would do instead of one: its region's, its continent's, all others."""
    region, continent = region_of(zone), zone.partition("-")[0]
    return sorted(zones, key=lambda other: (region_of(other) != region, other.partition("-")[0] != continent, other))
