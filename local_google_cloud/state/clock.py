"""The clock of the local cloud, which can be advanced."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

_MOST_SECONDS: Final = 10 * 365 * 86_400.0


class Clock:
    """The machine's time in seconds since 1970, plus the seconds added by ``advance``."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self.ahead = 0.0

    def now(self) -> float:
        """Return the time in seconds."""
        return self._source() + self.ahead

    def advance(self, seconds: float) -> None:
        """Advance the time. Raises ValueError for a negative number, which would restart finished operations."""
        if not 0 <= seconds <= _MOST_SECONDS - self.ahead:
            raise ValueError("the clock moves forward only, by at most ten years in all")
        self.ahead += seconds


def stamp(seconds: float) -> str:
    """Return a time in the format of Google's APIs."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
