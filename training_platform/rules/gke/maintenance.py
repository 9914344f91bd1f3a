"""When GKE may upgrade a cluster, and when it may not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from training_platform.config.reading.finding import Severity
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.cluster import ClusterView, Window

_SOURCE = "GKE docs, maintenance windows and exclusions: copies of 2025 and 2026, which disagree, read 2026-11-21"
LEAST = timedelta(hours=48)
SHORTEST = timedelta(hours=4)  # GKE counts no shorter time
PERIOD_DAYS = 32  # in which the least has to be, by older copies; the newer ones' 92 hold it with 4 hours in each week
NO_UPGRADES = "NO_UPGRADES"
MOST_EXCLUSIONS = 3
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
LONGEST, OLD_LONGEST = timedelta(days=90), timedelta(days=30)


@rule("maintenance-window", ruleset="clusters", facts=("TPU-16",), source=_SOURCE)
def maintenance_window(cluster: ClusterView) -> Iterator[Draft]:
    """Find a maintenance window that ends before it starts, or gives GKE less time than it requires.

    It asks for 48 hours, in parts of 4 at least; sources disagree whether in every 32 days or in every 92.
    """
    window = cluster.window
    if window is None:
        return
    start, end = _time(window.start), _time(window.end)
    if start is None or end is None or end <= start:
        message = f"the maintenance window starts at {window.start} and ends at {window.end}"
        yield finding(cluster, "window", message, allowed="an end after the start, in UTC")
        return
    count = _occurrences(window)
    if count is None:
        return
    if end - start < SHORTEST:
        message = f"the maintenance window has {(end - start) / _HOUR:g} hours at a time, and GKE requires at least 4"
        yield finding(cluster, "window", message, allowed="at least 4 hours at a time", nearest="4 hours")
    elif count * (end - start) < LEAST:
        message = f"the maintenance window has {count * (end - start) / _HOUR:g} hours in {PERIOD_DAYS} days"
        allowed = f"at least 48 hours in every {PERIOD_DAYS} days; newer copies of GKE's docs say 92"
        yield finding(cluster, "window", message, allowed=allowed, nearest="FREQ=DAILY", severity="warning")


@rule("maintenance-exclusion", ruleset="clusters", facts=("TPU-16",), source=_SOURCE)
def maintenance_exclusion(cluster: ClusterView) -> Iterator[Draft]:
    """Find a maintenance exclusion that ends before it starts or is too long, and more of them than GKE allows.

    From all upgrades it lasts 90 days at most; older sources say 30.
    """
    full = [row for row in cluster.exclusions if row.scope == NO_UPGRADES]
    if len(full) > MOST_EXCLUSIONS:
        message = f"{len(full)} exclusions block all upgrades"
        yield finding(cluster, "exclusions", message, allowed=f"at most {MOST_EXCLUSIONS} of them")
    for row in cluster.exclusions:
        start, end = _time(row.start), _time(row.end) if row.end else None
        if start is None or (row.end and (end is None or end <= start)):
            message = f"exclusion {row.name} starts at {row.start} and ends at {row.end}"
            yield finding(cluster, "exclusions", message, allowed="an end after the start, in UTC")
        elif end is not None and row.scope == NO_UPGRADES and end - start > OLD_LONGEST:
            old = end - start <= LONGEST
            message = f"exclusion {row.name} blocks all upgrades for {(end - start) / _DAY:g} days"
            allowed = "at most 30 days; newer copies of GKE's docs say 90" if old else "at most 90 days"
            nearest = (start + (OLD_LONGEST if old else LONGEST)).strftime("end %Y-%m-%dT%H:%M:%SZ")
            severity: Severity | None = "warning" if old else None
            yield finding(cluster, "exclusions", message, allowed=allowed, nearest=nearest, severity=severity)


def _time(text: str | None) -> datetime | None:
    """Return a time that GKE takes, None for any other text and for none."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time if time.tzinfo else None


def _occurrences(window: Window) -> int | None:
    """Return how often a window comes in 32 days; None for a recurrence other than by days or weekdays."""
    parts = dict(part.partition("=")[::2] for part in window.recurrence.split(";"))
    weekdays = parts.pop("BYDAY", "").split(",")
    often = {"DAILY": PERIOD_DAYS, "WEEKLY": PERIOD_DAYS // 7 * len(weekdays)}
    return often.get(parts["FREQ"]) if parts.keys() == {"FREQ"} else None
