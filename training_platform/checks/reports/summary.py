"""A whole check in one screen: a line for each stack, what is nearly full, and how to see the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from training_platform.checks.report import Report, StackReport
from training_platform.checks.reports.wording import (
    NEARLY_FULL,
    counted,
    fullness,
    location,
    price,
    quota_row,
)
from training_platform.quota.keys import shown

STYLES = {"over": "bold red", "unknown": "bold red", "nearly": "yellow", "fits": ""}
"""How a quota is printed, by how full it is."""
_GAP = 2  # columns between two cells
_PRICE = "list price"
_MOST_STACKS = 24  # lines of stacks; an organisation of hundreds has its counts alone


def summary(report: Report, width: int) -> Iterator[RenderableType]:
    """Yield what a check found out beside its findings; ``width`` is in columns of the terminal."""
    if report.stacks:
        yield Group(_stacks(report.stacks, width), Text())
    if report.ledgers:
        yield Group(*_quotas(report, width), Text())
    if report.capacity:
        yield Group(*_capacity(report, width), Text())


def fitting_table(columns: Sequence[str], rows: Sequence[Sequence[Text]], width: int, *, drop: Sequence[str]) -> Table:
    """Return a table no wider than ``width`` where that can be had: columns named in ``drop`` go first, in that order.

    A title that begins with ``>`` is aligned to the right. Where what stays is too wide, its widest column is folded.
    """
    kept, wide = list(range(len(columns))), _widths(columns, rows)
    for name in drop:
        if _total(wide[at] for at in kept) <= width:
            break
        kept.remove(columns.index(name))
    too_wide = _total(wide[at] for at in kept) > width
    folds = {kept.index(max(kept, key=wide.__getitem__))} if too_wide else set()
    return _table([columns[at] for at in kept], [[row[at] for at in kept] for row in rows], folds)


def noted_table(columns: Sequence[str], rows: Sequence[Sequence[Text]], width: int, *, below: str) -> Table:
    """Return a table whose last column is a note; where that would break words, it stands below column ``below``."""
    at, last = columns.index(below), len(columns) - 1
    wide, words = _widths(columns, rows), _widths(columns, rows, str.split)
    if _total(words[each] if each in (at, last) else wide[each] for each in range(last + 1)) <= width:
        return _table(columns, rows, {at, last})
    noted = [(*row[:at], Text("\n").join((row[at], row[last])), *row[at + 1 : last]) for row in rows]
    return _table(columns[:last], noted, {at})


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[Text]], parts: Callable[[str], Sequence[str]] = str.splitlines
) -> list[int]:
    """Return how wide the longest part of each column is: a line, or a word."""
    cells = ((title.removeprefix(">"), *(row[at].plain for row in rows)) for at, title in enumerate(columns))
    return [max(cell_len(part) for cell in column for part in (parts(cell) or [""])) for column in cells]


def _total(wide: Iterable[int]) -> int:
    found = list(wide)
    return sum(found) + _GAP * (len(found) - 1)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Text]], folds: Collection[int]) -> Table:
    """Return a table in which columns that are folded have what room there is, and the others what they need."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    for at, (title, wide) in enumerate(zip(columns, _widths(columns, rows), strict=True)):
        table.add_column(
            title.removeprefix(">"), justify="right" if title.startswith(">") else "left", overflow="fold",
            no_wrap=at not in folds, min_width=None if at in folds else wide,
        )  # fmt: skip
    for row in rows:
        table.add_row(*row)
    return table


def _stacks(stacks: Sequence[StackReport], width: int) -> RenderableType:
    if len(stacks) > _MOST_STACKS:
        kinds = [stack.kind for stack in stacks]
        return Text(", ".join(counted(kinds.count(kind), kind) for kind in dict.fromkeys(kinds)))
    columns = ("stack", "project", ">resources", "at the most", _PRICE)
    return fitting_table(columns, [_stack(each) for each in stacks], width, drop=("project", "at the most", _PRICE))


def _stack(stack: StackReport) -> tuple[Text, ...]:
    if stack.kind == "rejected":
        return (Text(stack.name, style="bold red"), *(Text(word) for word in ("", "", "rejected: see below", "")))
    resources = f"{sum(branch.count for branch in stack.branches):,}" if stack.planned else "not planned"
    units = {unit: sum(row.most for row in stack.accelerators if row.unit == unit) for unit in ("chips", "GPUs")}
    most = ", ".join(f"{count:,} {unit}" for unit, count in units.items() if count)
    return (
        Text(stack.name, style="bold"),
        Text(stack.project or (f"in {stack.environment}" if stack.environment else ""), style="dim"),
        *(Text(cell) for cell in (resources, most, price(stack.cost))),
    )


def _quotas(report: Report, width: int) -> Iterator[RenderableType]:
    lines = [(ledger.project, line) for ledger in report.ledgers for line in ledger.lines]
    full = [(project, line) for project, line in lines if fullness(line) != "fits"]
    title = f"{len(full):,} of {counted(len(lines), 'quota')} more than {NEARLY_FULL:.0%} full"
    yield Text(f"{title}{':' if full else ''}")
    if full:
        columns = ("  project", "location", "quota", ">needs", ">limit", ">left")
        rows = [
            (
                Text(f"  {project}", style="dim"),
                Text(location(line)),
                *(Text(cell, style=STYLES[fullness(line)]) for cell in quota_row(line)),
            )
            for project, line in full
        ]
        yield fitting_table(columns, rows, width, drop=("  project", ">left", "location"))


def _capacity(report: Report, width: int) -> Iterator[RenderableType]:
    over = [line for line in report.capacity if line.over]
    clusters = {(line.environment, line.cluster) for line in report.capacity}
    held = f"{counted(len(report.capacity), 'flavor')} in {counted(len(clusters), 'cluster')}"
    if not over:
        yield Text(f"{held}: no team is promised more than the pools hold{_unpromised(report)}")
        return
    yield Text(f"{held}, {len(over):,} promised beyond what the pools hold:")
    rows = [
        (
            Text(f"  {line.environment}"),
            Text(line.cluster),
            Text(line.flavor.name, style="bold red"),
            Text(f"{line.capacity:,}"),
            Text(shown(line.promised)),
        )
        for line in over
    ]
    yield fitting_table(("  environment", "cluster", "flavor", ">holds", ">promised"), rows, width, drop=("cluster",))


def _unpromised(report: Report) -> str:
    """Say how much of the flavors nobody was promised, and whether it can be used."""
    lent = sum(line.lent for line in report.capacity)
    idle = sum(line.unpromised for line in report.capacity) - lent
    parts = [f"{amount:,} {what}" for amount, what in ((lent, "lent to all"), (idle, "idle")) if amount]
    return f"; of what no team was promised, {' and '.join(parts)}" if parts else ""
