"""Bands of capacities, in GiB, that instances of a tier have."""

from __future__ import annotations

from collections.abc import Sequence

from training_platform.catalog.types import Band


def fits(bands: Sequence[Band], size: int) -> bool:
    """Whether a capacity is in a band, and on one of its steps."""
    return any(band.low_gib <= size <= band.high_gib and (size - band.low_gib) % band.step_gib == 0 for band in bands)


def shown(bands: Sequence[Band]) -> str:
    """Return what is allowed, as people write it."""
    ranges = [(f"{low:,} to {high:,} GiB", step) for low, high, step in bands]
    return ", or ".join(text + (f" in steps of {step:,}" if step > 1 else "") for text, step in ranges)


def nearest(bands: Sequence[Band], size: int) -> int:
    """Return the smallest capacity that is enough, or the largest there is."""
    enough = []
    for low, high, step in bands:
        least = max(low, low + -(-(size - low) // step) * step)
        if least <= high:
            enough.append(least)
    return min(enough, default=max(band.high_gib for band in bands))
