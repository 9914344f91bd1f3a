"""The valid value that somebody most likely meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def find_nearest(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed value that reads most like ``name``, or None when none is near; upper case is overlooked."""
    by_folded = {value.casefold(): value for value in sorted(allowed)}
    matches = get_close_matches(name.strip().casefold(), by_folded, n=1)
    return by_folded[matches[0]] if matches else None
