"""What a change does, as rows of texts that every format of a report shows alike."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from training_platform.checks.comparison.comparison import (
    KINDS,
    Amount,
    Comparison,
    InputChange,
    ResourceChange,
    StackChange,
)
from training_platform.checks.planning.outcome import kind_of
from training_platform.checks.reports.wording import counted
from training_platform.quota.keys import short_quota_id, shown

MOST_INPUTS = 12  # of one resource, of which a report shows the changes; the rest is counted
_LONGEST = 60


class Table(NamedTuple):
    """A table: its title, the heads of its columns, and rows."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def summary(comparison: Comparison) -> str:
    """Return what a change does in one line."""
    counts = Counter(resource.kind for stack in comparison.stacks for resource in stack.resources)
    done = ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS if counts[kind]) or "no resource differs"
    stacks = counted(len(comparison.stacks), "stack")
    others = f"; {counted(comparison.others, 'other')} cannot be affected" if comparison.others else ""
    since = f"Since {comparison.ref} ({comparison.commit[:12]})"
    if comparison.unknown:
        return f"{since}: what changed is not known"
    if not comparison.stacks:
        return f"{since}: nothing that a stack depends on"
    return f"{since}: {done} in {stacks}{others}"


def stack_title(stack: StackChange) -> str:
    """Return a stack's name and what became of it as a whole."""
    if stack.kind == "renamed":
        return f"{stack.name}: was {stack.was}; rename the deployed stack before `pulumi up`"
    if stack.unknown:
        return f"{stack.name}: {stack.unknown}"
    return stack.name if stack.kind == "changed" else f"{stack.name}: {stack.kind}"


def resource_rows(stack: StackChange) -> Iterator[tuple[str, str, list[str]]]:
    """Yield what happens, the resource, and its inputs: those that force a replacement first."""
    for resource in stack.resources:
        yield resource.kind, f"{kind_of(resource.type)} {resource.name}", list(_inputs(resource))


def tables(comparison: Comparison) -> list[Table]:
    """Return what differs in amounts: quotas, capacity, accelerators and cost; a table without rows is left out."""
    made = [
        Table("Quotas", ("project", "location", "quota", "needs", "limit"), _quotas(comparison)),
        Table("Capacity", ("environment", "cluster", "flavor", "holds", "promised"), _capacity(comparison)),
        Table("Accelerators", ("stack", "region", "flavor", "most"), _accelerators(comparison)),
        Table("Cost in USD per hour, at least", ("stack", "least", "most"), _costs(comparison)),
    ]
    return [table for table in made if table.rows]


def amount(value: Amount, show: Callable[[float], str] = shown) -> str:
    """Return a quantity before and after, and the difference: ``48 → 64 (+16)``."""
    before, after = ("?" if each is None else show(each) for each in value[:2])
    if value.before == value.after:
        return after
    sign = "+" if (value.delta or 0) > 0 else "-"
    difference = "" if value.delta is None else f" ({sign}{show(abs(value.delta))})"
    return f"{before} → {after}{difference}"


def _inputs(resource: ResourceChange) -> Iterator[str]:
    ordered = sorted(resource.inputs, key=lambda change: not change.forces)
    for change in ordered[:MOST_INPUTS]:
        yield _input(change)
    if len(ordered) > MOST_INPUTS:
        yield f"and {len(ordered) - MOST_INPUTS} more inputs"
    if resource.undecided:
        yield "whether that replaces it is not known of this type"


def _input(change: InputChange) -> str:
    return f"{change.path}: {_value(change.old)} → {_value(change.new)}" + (", replaces it" if change.forces else "")


def _value(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(str(text).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _quotas(comparison: Comparison) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for each in comparison.quotas:
        name = " ".join([short_quota_id(each.key.quota_id), *(value for _, value in each.key.dimensions)])
        place = each.key.location or "all regions"
        rows.append((each.key.project, place, f"{name} ({each.unit})", amount(each.used), amount(each.limit)))
    return rows


def _capacity(comparison: Comparison) -> list[tuple[str, ...]]:
    return [
        (each.environment, each.cluster, each.flavor, amount(each.capacity), amount(each.promised))
        for each in comparison.capacity
    ]


def _accelerators(comparison: Comparison) -> list[tuple[str, ...]]:
    return [
        (stack.name, each.region, each.flavor, f"{amount(each.most)} {each.unit}")
        for stack in comparison.stacks
        for each in stack.accelerators
    ]


def _costs(comparison: Comparison) -> list[tuple[str, ...]]:
    return [
        (stack.name, amount(stack.least_usd, _usd), amount(stack.most_usd, _usd))
        for stack in comparison.stacks
        if any(each.before != each.after for each in (stack.least_usd, stack.most_usd))
    ]


def _usd(value: float) -> str:
    return f"{value:,.2f}"
