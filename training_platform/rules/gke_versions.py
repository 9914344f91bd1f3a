"""GKE versions as numbers: ``1.34.1-gke.2541000`` is (1, 34, 1, 2541000), and texts do not compare."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from training_platform.config.reading.finding import Severity

FULL = 4  # minor, patch and GKE's own number written out
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+)(?:-gke\.(\d+))?)?\Z")


@lru_cache(maxsize=4096)
def parse(version: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a version, as many as are written; None for ``latest`` and everything else."""
    match = _VERSION.match((version or "").rstrip("."))
    return tuple(int(part) for part in match.groups() if part is not None) if match else None


@lru_cache(maxsize=4096)
def below(version: str | None, floor: str) -> Severity | None:
    """Return how bad it is that a version is below a floor, None where it is not, or may not be.

    One that is written out is an error. A prefix (``1.30``) of which every version is below is a warning: GKE takes
    the newest that fits, and a release channel moves on.
    """
    have, least = parse(version), parse(floor)
    if have is None or least is None or have >= least[: len(have)]:
        return None
    return "error" if len(have) == FULL else "warning"


def floor_of(floors: Iterable[str], version: str | None) -> str | None:
    """Return which of several floors, one for each minor version, holds for a version: a later minor has none."""
    ordered = sorted(floors, key=lambda each: parse(each) or ())
    have = parse(version)
    if have is None or not ordered:
        return None
    if have[:2] < (parse(ordered[0]) or ())[:2]:
        return ordered[0]
    return next((each for each in ordered if (parse(each) or ())[:2] == have[:2]), None)
