"""Rows of ``quota show`` that all its formats share: limits in sections by project, place, quota, stack or team."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

from training_platform.checks.reports.wording import location, quota_name
from training_platform.quota.keys import shown
from training_platform.quota.ledger import Held, Line, ProjectLedger
from training_platform.quota.overview import Overview

By = Literal["project", "region", "quota", "stack", "team"]
GROUPINGS: tuple[By, ...] = get_args(By)


class Row(NamedTuple):
    """A limit in a section; ``where`` is what the section's title leaves open, ``mine`` what its stack or team has."""

    where: str
    line: Line
    mine: float | None = None


class Section(NamedTuple):
    """Limits under one title; ``note`` is the day of a project's limits."""

    title: str
    note: str
    rows: tuple[Row, ...]


def sections(overview: Overview, by: By) -> list[Section]:
    """Return the limits of an overview in sections, each in the order of its title, places and quotas."""
    found: dict[str, list[Row]] = {}
    for ledger in overview.ledgers:
        for line in ledger.lines:
            for title, row in _titled(line, overview, by):
                found.setdefault(title, []).append(row)
    notes = {ledger.project: taken(ledger) for ledger in overview.ledgers} if by == "project" else {}
    return [
        Section(title, notes.get(title, ""), tuple(sorted(rows, key=lambda row: (row.where, row.line.key))))
        for title, rows in sorted(found.items())
    ]


def taken(ledger: ProjectLedger) -> str:
    """Return of when a project's limits are."""
    return f"limits of {ledger.snapshot.taken}" if ledger.snapshot else "no snapshot of its limits"


def all_holders(line: Line) -> str:
    """Return every holder of a line with what it has, largest first."""
    return ", ".join(f"{held.holder.stack}/{held.holder.label} {shown(held.amount)}" for held in line.holders)


def _titled(line: Line, overview: Overview, by: By) -> Iterator[tuple[str, Row]]:
    if by == "project":
        yield line.key.project, Row(location(line), line)
    elif by == "region":
        yield location(line), Row(line.key.project, line)
    elif by == "quota":
        yield f"{quota_name(line)} ({line.unit})", Row(f"{line.key.project} {location(line)}", line)
    else:
        held = _sums((overview.team(each) if by == "team" else each.holder.stack, each) for each in line.holders)
        for owner, amount in held.items():
            yield owner, Row(f"{line.key.project} {location(line)}", line, amount)


def _sums(holders: Iterable[tuple[str, Held]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for owner, held in holders:
        found[owner] = found.get(owner, 0) + held.amount
    return found
