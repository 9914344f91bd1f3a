"""The known zones of regions."""

from __future__ import annotations

from training_platform import catalog
from training_platform.catalog.locations import region_of


def zones_in(region: str) -> tuple[str, ...]:
    """Return the known zones of a region, sorted; empty for an unknown region."""
    return tuple(sorted(zone for zone in catalog.ZONES if region_of(zone) == region))
