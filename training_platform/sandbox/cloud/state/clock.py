"""The server's time: the machine's, moved on by whoever does not want to wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

MOST_SECONDS: Final = 10 * 365 * 86_400.0


class Clock:
    """Seconds since 1970; ``advance`` moves it on."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self.ahead = 0.0

    def now(self) -> float:
        """Return the time in seconds."""
        return self._source() + self.ahead

    def advance(self, seconds: float) -> None:
        """Move the time on. Raises ValueError for a move back, after which what is done would be under way again."""
        if not 0 <= seconds <= MOST_SECONDS - self.ahead:
            raise ValueError("the clock moves on, not back, and no more than ten years in all")
        self.ahead += seconds


def stamp(seconds: float) -> str:
    """Return a time as Google's APIs write it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
