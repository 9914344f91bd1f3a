"""Bars of what is held of a limit: quotas by project and region, and the capacity that teams are promised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from training_platform.checks.report import Report
from training_platform.checks.reports.html.element import Html, el, joined
from training_platform.checks.reports.wording import (
    counted,
    file_throughput,
    fullness,
    headroom,
    held_by,
    limit,
    location,
    quota_name,
    shares_of,
)
from training_platform.quota.keys import shown
from training_platform.quota.ledger import CapacityLine, FileLine, Line, ProjectLedger

_SAID = {"over": "over", "unknown": "limit not known", "nearly": "nearly full", "fits": ""}


def quota_bars(report: Report) -> Html:
    """Return every quota that the stacks draw on, the fullest of each region first."""
    return joined(_ledger(ledger) for ledger in report.ledgers)


def capacity_bars(report: Report) -> Html:
    """Return what teams are promised of each flavor, by environment and cluster."""
    places = groupby(report.capacity, key=lambda line: (line.environment, line.cluster))
    return joined(
        el("section", el("h3", f"{environment} {cluster}"), el("ul", map(_capacity, lines), cls="bars"), cls="place")
        for (environment, cluster), lines in places
    )


def file_bars(report: Report) -> Html:
    """Return what directories and homes are promised of each Filestore instance, by environment."""
    places = groupby(sorted(report.files, key=attrgetter("environment")), key=attrgetter("environment"))
    return joined(
        el("section", el("h3", environment), el("ul", map(_files, lines), cls="bars"), cls="place")
        for environment, lines in places
    )


def _files(line: FileLine) -> Html:
    parts = [(share.holder.label, share.amount) for share in line.shares]
    free = f"{shown(-line.headroom)} too many" if line.over else f"{shown(line.headroom)} free"
    grows = f", grows to {line.grows_to:,}" if line.grows_to else ""
    speed = f"{found} MiB/s read/write" if (found := file_throughput(line)) else ""
    return el(
        "li",
        el("span", line.instance, " ", el("em", "over") if line.over else "", cls="name"),
        _bar(parts, line.capacity),
        el("span", f"{shown(line.promised)} of {shown(line.capacity)} GiB promised, {free}{grows}", cls="numbers"),
        el("span", "; ".join(part for part in (speed, shares_of(line)) if part), cls="held"),
        cls="over" if line.over else "fits",
    )


def _ledger(ledger: ProjectLedger) -> Html:
    taken = f"limits of {ledger.snapshot.taken}" if ledger.snapshot else "no snapshot of its limits"
    title = el("h3", ledger.project, " ", el("small", taken))
    by_place = sorted(ledger.lines, key=lambda line: (line.key.location or "~", -_share(line), line.key))
    return joined(title, (_place(name, list(lines)) for name, lines in groupby(by_place, key=location)))


def _place(name: str, lines: list[Line]) -> Html:
    short = sum(line.over or line.limit is None for line in lines)
    note = el("small", f"{counted(short, 'quota')} short", cls="over") if short else ""
    return el("section", el("h4", name, " ", note), el("ul", map(_quota, lines), cls="bars"), cls="place")


def _quota(line: Line) -> Html:
    full = fullness(line)
    state = "full" if full == "nearly" and line.used == line.limit else _SAID[full]
    left = f"{shown(line.used - (line.limit or 0))} too many" if line.over else f"{headroom(line)} left"
    numbers = f"{shown(line.used)} of {limit(line)} {line.unit}, {left}"
    if line.limit is not None and math.isinf(line.limit):
        numbers = f"{shown(line.used)} {line.unit}, unlimited"
    asked = line.open_request
    request = el("small", f"{shown(asked)} requested") if asked is not None else ""
    parts = [(f"{held.holder.stack}/{held.holder.label}", held.amount) for held in line.holders]
    return el(
        "li",
        el("span", quota_name(line), " ", el("em", state) if state else "", cls="name"),
        _bar(parts, line.limit, asked),
        el("span", numbers, " ", request, cls="numbers"),
        el("span", held_by(line), cls="held"),
        cls=full,
    )


def _capacity(line: CapacityLine) -> Html:
    parts = [(share.holder.label, share.amount) for share in line.shares]
    free = f"{shown(-line.headroom)} too many" if line.over else f"{shown(line.headroom)} free"
    return el(
        "li",
        el("span", line.flavor.name, " ", el("em", "over") if line.over else "", cls="name"),
        _bar(parts, line.capacity),
        el("span", f"{shown(line.promised)} of {line.capacity:,} promised, {free}", cls="numbers"),
        el("span", shares_of(line), cls="held"),
        cls="over" if line.over else "fits",
    )


def _bar(parts: Iterable[tuple[str, float]], most: float | None, asked: float | None = None) -> Html:
    """Return a bar with a part for each holder, as long as what may be held, is held, or is asked for.

    Where it is longer than what may be held a mark stands there, and from there an outline to what is asked for. The
    numbers beside it say the same, so the bar itself is hidden from who cannot see it.
    """
    held = list(parts)
    used = sum(amount for _, amount in held)
    if most is None or math.isinf(most):
        return el("span", cls="bar", aria_hidden="true")
    scale = max(used, most, asked or 0) or 1
    outline = _outline(most / scale, asked / scale, f"{shown(asked)} requested") if asked is not None else ""
    mark = el("b", style=f"left:{_percent(most / scale)}") if scale > most else ""
    return el("span", _parts(held, scale), outline, mark, cls="bar", aria_hidden="true")


def _parts(held: Iterable[tuple[str, float]], scale: float) -> Iterator[Html]:
    for name, amount in held:
        if amount:
            yield el("i", style=f"width:{_percent(amount / scale)}", title=f"{name} {shown(amount)}")


def _outline(start: float, end: float, title: str) -> Html:
    return el("u", style=f"left:{_percent(start)};width:{_percent(end - start)}", title=title)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _share(line: Line) -> float:
    if line.limit is None:
        return math.inf
    return line.used / line.limit if line.limit else math.inf if line.used else 0.0
