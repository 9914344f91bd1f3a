"""The current day, for everything that depends on a date: snapshots, exemptions, prices.

A sample organisation sets ``today`` in its ``stacks/clock.yaml``, so its files do not become outdated.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path as FilePath

from training_platform.config.reading.source import UnreadableError, read_source

CLOCK_FILE = "stacks/clock.yaml"


def today(root: FilePath, override: str | None = None) -> date:
    """Return ``override``, else the day in ``stacks/clock.yaml``, else the real day (UTC). Format: ``2026-11-21``.

    Raises UnreadableError for a string that is not a date, or a clock file without one.
    """
    if override is not None:
        return _day(override, "--today")
    path = root / CLOCK_FILE
    if not path.exists():
        return datetime.now(UTC).date()
    value = read_source(path, CLOCK_FILE).value
    text = value.get("today") if isinstance(value, dict) else None
    return _day(str(text), CLOCK_FILE)


def _day(text: str, source: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UnreadableError(
            f"{source}: {text!r} is not a date; write a date such as 2026-11-21, in quotes."
        ) from error
