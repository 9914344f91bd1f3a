"""Which zones a region has, as far as the catalogue knows."""

from __future__ import annotations

from training_platform import catalog
from training_platform.catalog.locations import region_of


def zones_in(region: str) -> tuple[str, ...]:
    """Return the zones of a region that we know, sorted; none for a region that we do not know."""
    return tuple(sorted(zone for zone in catalog.ZONES if region_of(zone) == region))
