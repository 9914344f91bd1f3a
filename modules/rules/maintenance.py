"""When GKE may upgrade a cluster, and when it may not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from modules.rules.cluster_views import ClusterSettings, Window
from modules.rules.registry import Draft, finding, rule

_SOURCE = "GKE docs, maintenance windows and exclusions (general knowledge; limits unverified)"
LEAST = timedelta(hours=48)
PERIOD_DAYS = 32
NO_UPGRADES = "NO_UPGRADES"
MOST_EXCLUSIONS = 3
LONGEST = timedelta(days=30)
_DAYS_OF = {"DAILY": PERIOD_DAYS, "WEEKLY": PERIOD_DAYS // 7}


@rule("maintenance-window", ruleset="clusters", facts=("TPU-16",), source=_SOURCE)
def maintenance_window(each: ClusterSettings) -> Iterator[Draft]:
    """Find a window for upgrades that ends before it starts, or leaves GKE less than 48 hours in every 32 days."""
    window = each.window
    if window is None:
        return
    start, end = _time(window.start), _time(window.end)
    if start is None or end is None or end <= start:
        message = f"the maintenance window starts at {window.start} and ends at {window.end}"
        yield finding(each, "window", message, allowed="an end after the start, in UTC")
        return
    occurrences = _occurrences(window)
    if occurrences is not None and occurrences * (end - start) < LEAST:
        hours = occurrences * (end - start) / timedelta(hours=1)
        message = f"the maintenance window has {hours:g} hours in {PERIOD_DAYS} days"
        yield finding(each, "window", message, allowed="at least 48 hours in every 32 days", nearest="FREQ=DAILY")


@rule("maintenance-exclusion", ruleset="clusters", facts=("TPU-16",), source=_SOURCE)
def maintenance_exclusion(each: ClusterSettings) -> Iterator[Draft]:
    """Find an exclusion from maintenance that ends before it starts or is too long, and more of them than GKE takes."""
    full = [row for row in each.exclusions if row.scope == NO_UPGRADES]
    if len(full) > MOST_EXCLUSIONS:
        message = f"{len(full)} exclusions are from all upgrades"
        yield finding(each, "exclusions", message, allowed=f"at most {MOST_EXCLUSIONS} of them")
    for row in each.exclusions:
        start, end = _time(row.start), _time(row.end) if row.end else None
        if start is None or (row.end and (end is None or end <= start)):
            message = f"exclusion {row.name} starts at {row.start} and ends at {row.end}"
            yield finding(each, "exclusions", message, allowed="an end after the start, in UTC")
        elif end is not None and row.scope == NO_UPGRADES and end - start > LONGEST:
            message = f"exclusion {row.name} keeps all upgrades away for {(end - start).days} days"
            nearest = (start + LONGEST).strftime("%Y-%m-%dT%H:%M:%SZ")
            yield finding(each, "exclusions", message, allowed=f"at most {LONGEST.days} days", nearest=f"end {nearest}")


def _time(text: str) -> datetime | None:
    """Return a time that GKE takes, None for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None


def _occurrences(window: Window) -> int | None:
    """Return how often a window comes in 32 days; None for a recurrence other than by days or weekdays."""
    parts = dict(part.partition("=")[::2] for part in window.recurrence.split(";"))
    days = parts.pop("BYDAY", "").split(",")
    if parts.keys() != {"FREQ"} or parts["FREQ"] not in _DAYS_OF:
        return None
    return _DAYS_OF[parts["FREQ"]] * (len(days) if parts["FREQ"] == "WEEKLY" else 1)
