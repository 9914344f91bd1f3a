"""Regions and zones of the local cloud: those that the catalogue knows, at least three zones a region."""

from __future__ import annotations

from functools import cache
from typing import Final

from training_platform.catalog import ZONES
from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.zones import zones_in

_LETTERS: Final = ("a", "b", "c")


@cache
def regions() -> tuple[str, ...]:
    """Return every region."""
    return tuple(sorted({region_of(zone) for zone in ZONES}))


@cache
def zones(region: str) -> tuple[str, ...]:
    """Return a region's zones; where we know fewer than three, it has those of the first letters too.

    us-central2 has one zone only.
    """
    known = zones_in(region)
    if region == "us-central2":
        return known
    more = [f"{region}-{letter}" for letter in _LETTERS if f"{region}-{letter}" not in known]
    return tuple(sorted([*known, *more[: max(0, 3 - len(known))]]))


def node_zones(location: str) -> list[str]:
    """Return where a cluster's nodes are by default: in its zone, or in three zones of its region."""
    return [location] if is_zone(location) else [each for each in zones(location) if len(each) == len(location) + 2][:3]
