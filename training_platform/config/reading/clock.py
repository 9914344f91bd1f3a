"""Today, from one place, for everything that is dated: snapshots, exemptions, prices.

A sample organisation lives on one day, so that its files never age: ``stacks/clock.yaml`` then holds ``today``.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path as FilePath

from training_platform.config.reading.source import UnreadableError, read_source

CLOCK_FILE = "stacks/clock.yaml"


def today(root: FilePath, given: str | None = None) -> date:
    """Return ``given``, else the day in ``stacks/clock.yaml``, else the real day (UTC); days as ``2026-11-21``.

    Raises UnreadableError for a text that is not a date, or a clock file without one.
    """
    if given is not None:
        return _day(given, "--today")
    path = root / CLOCK_FILE
    if not path.exists():
        return datetime.now(UTC).date()
    value = read_source(path, CLOCK_FILE).value
    text = value.get("today") if isinstance(value, dict) else None
    return _day(str(text), CLOCK_FILE)


def _day(text: str, where: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UnreadableError(f"{where}: {text!r} is not a day; write it as 2026-11-21, in quotes.") from error
