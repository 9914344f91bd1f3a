"""What differs between two sides: resources with their inputs, quotas, promised capacity, accelerators, cost.

A side is a ``CheckResult``: plain data that a program of another version can hand over as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from training_platform.catalog import replacements
from training_platform.checks.comparison.comparison import (
    KINDS,
    AcceleratorChange,
    Amount,
    CapacityChange,
    InputChange,
    Kind,
    QuotaChange,
    ResourceChange,
)
from training_platform.checks.planning.outcome import LATER, TRIGGER, FlatResource
from training_platform.checks.report import StackReport, identity
from training_platform.checks.stacks import Checked
from training_platform.quota.charges import QuotaKey
from training_platform.quota.ledger import Line

_Key = tuple[str, str]  # type and name


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AcceleratorCount(_Plain):
    """Chips or GPUs of one flavor in one region, at the most machines."""

    region: str
    flavor: str
    unit: str
    most: int


class StackResult(_Plain):
    """A stack; ``resources`` is None where it was not planned. Costs are in USD per hour, None where none is known."""

    name: str
    kind: Literal["environment", "team", "rejected"]
    resources: tuple[FlatResource, ...] | None
    accelerators: tuple[AcceleratorCount, ...] = ()
    least_usd: float | None = None
    most_usd: float | None = None


class QuotaUse(_Plain):
    """What all stacks together hold of one limit; ``limit`` is None where it is not known, or there is none."""

    key: QuotaKey
    unit: str
    used: float
    limit: float | None


class CapacityUse(_Plain):
    """What the pools of a cluster hold of a flavor, and what teams are promised of it."""

    environment: str
    cluster: str
    flavor: str
    capacity: float
    promised: float


class CheckResult(_Plain):
    """What a check of one side found; ``identities`` are those of all findings that count."""

    version: Literal[1] = 1
    stacks: dict[str, StackResult]
    quotas: tuple[QuotaUse, ...]
    capacity: tuple[CapacityUse, ...]
    identities: tuple[tuple[str, ...], ...]
    failures: tuple[str, ...]


def result_of(checked: Checked) -> CheckResult:
    """Return what a check found, as one side of a comparison."""
    report = checked.report
    return CheckResult(
        stacks={stack.name: _stack(stack, checked) for stack in report.stacks},
        quotas=tuple(_quota(line) for ledger in checked.ledgers.values() for line in ledger.lines),
        capacity=tuple(
            CapacityUse(
                environment=line.environment,
                cluster=line.cluster,
                flavor=line.flavor.name,
                capacity=line.capacity,
                promised=line.promised,
            )
            for line in checked.capacity
        ),
        identities=tuple(identity(finding) for finding in report.all_findings()),
        failures=report.failures,
    )


def _stack(stack: StackReport, checked: Checked) -> StackResult:
    outcome = checked.outcomes.get(stack.name)
    cost = stack.cost
    priced = cost.read is not None or not (cost.unpriced or stack.kind == "rejected")
    return StackResult(
        name=stack.name,
        kind=stack.kind,
        resources=outcome.inputs if outcome else None,
        accelerators=tuple(
            AcceleratorCount(region=row.region, flavor=row.flavor, unit=row.unit, most=row.most)
            for row in stack.accelerators
        ),
        least_usd=cost.least if priced else None,
        most_usd=cost.most if priced else None,
    )


def _quota(line: Line) -> QuotaUse:
    limit = None if line.limit is None or math.isinf(line.limit) else line.limit
    return QuotaUse(key=line.key, unit=line.unit, used=line.used, limit=limit)


def resource_changes(before: Iterable[FlatResource], after: Iterable[FlatResource]) -> tuple[ResourceChange, ...]:
    """Return what happens to every resource that differs, the worst first."""
    old = {(each.type, each.name): each for each in before}
    new = {(each.type, each.name): each for each in after}
    found: list[ResourceChange] = []
    anew: set[_Key] = set()
    for key in _sources_first(new):
        if key in old and key in new and (change := _change(old[key], new[key], anew)):
            found.append(change)
            anew |= {key} if change.kind == "replaced" else set()
    found += [
        ResourceChange(kind="removed", type=old[key].type, name=old[key].name, protected=old[key].protected)
        for key in old.keys() - new.keys()
    ]
    found += [ResourceChange(kind="added", type=kind, name=name) for kind, name in new.keys() - old.keys()]
    return tuple(sorted(found, key=lambda each: (KINDS.index(each.kind), each.type, each.name)))


def accelerator_changes(before: StackResult | None, after: StackResult | None) -> tuple[AcceleratorChange, ...]:
    """Return the accelerators of a stack of which there are more or fewer; a side without the stack has none."""
    old, new = (
        {(row.region, row.flavor, row.unit): row.most for row in (side.accelerators if side else ())}
        for side in (before, after)
    )
    return tuple(
        AcceleratorChange(region, flavor, unit, Amount(old.get(key, 0), new.get(key, 0)))
        for key in sorted({*old, *new})
        if old.get(key, 0) != new.get(key, 0)
        for region, flavor, unit in (key,)
    )


def cost_changes(before: StackResult | None, after: StackResult | None) -> tuple[Amount, Amount]:
    """Return a stack's least and most cost in USD per hour; a side without the stack costs nothing."""
    old = (0.0, 0.0) if before is None else (before.least_usd, before.most_usd)
    new = (0.0, 0.0) if after is None else (after.least_usd, after.most_usd)
    return Amount(old[0], new[0]), Amount(old[1], new[1])


def quota_changes(before: CheckResult, after: CheckResult) -> tuple[QuotaChange, ...]:
    """Return the limits of which more or less is held, or that differ themselves."""
    old, new = ({quota.key: quota for quota in side.quotas} for side in (before, after))
    found = []
    for key in sorted({*old, *new}):
        # A side that holds nothing of a limit does not list it.
        was = old.get(key) or new[key].model_copy(update={"used": 0.0})
        now = new.get(key) or was.model_copy(update={"used": 0.0})
        used, limit = Amount(was.used, now.used), Amount(was.limit, now.limit)
        if was != now:
            found.append(QuotaChange(key, now.unit, used, limit))
    return tuple(found)


def capacity_changes(before: CheckResult, after: CheckResult) -> tuple[CapacityChange, ...]:
    """Return the flavors of clusters that hold, or are promised, more or less."""
    old, new = (
        {(each.environment, each.cluster, each.flavor): (each.capacity, each.promised) for each in side.capacity}
        for side in (before, after)
    )
    found = []
    for key in sorted({*old, *new}):
        was, now = old.get(key, (0, 0)), new.get(key, (0, 0))
        if was != now:
            found.append(CapacityChange(*key, Amount(was[0], now[0]), Amount(was[1], now[1])))
    return tuple(found)


def _sources_first(resources: Mapping[_Key, FlatResource]) -> Iterable[_Key]:
    """Return keys in an order in which a resource's provider, and what it has outputs of, come before it."""
    graph = {
        key: {*chain.from_iterable(each.inputs_from.values()), *([each.provider] if each.provider else ())}
        for key, each in resources.items()
    }
    return TopologicalSorter(graph).static_order()


def _change(old: FlatResource, new: FlatResource, anew: Container[_Key]) -> ResourceChange | None:
    inputs = tuple(_inputs(old, new))
    if not any(change.forces for change in inputs):
        inputs += tuple(_followed(new, anew))
    if not inputs:
        return None
    kind: Kind = "replaced" if any(change.forces for change in inputs) else "changed"
    return ResourceChange(
        kind=kind,
        type=new.type,
        name=new.name,
        inputs=inputs,
        undecided=not (replacements.known(new.type) or new.type.startswith("pulumi:")),
        protected=old.protected,
    )


def _inputs(old: FlatResource, new: FlatResource) -> Iterator[InputChange]:
    for path in sorted({*old.inputs, *new.inputs}):
        was, now = old.inputs.get(path), new.inputs.get(path)
        if was == now or any(replacements.covers(ignored, path) for ignored in new.ignored):
            continue
        if path == TRIGGER and None in (was, now):  # one that comes or goes triggers nothing
            continue
        outermost = _only_on_one_side(path, old.inputs if was is None else new.inputs) if None in (was, now) else None
        on = replacements.turned_on(new.type, path, now)
        forces = not on and replacements.forces(new.type, path, outermost, also=new.replacing)
        yield InputChange(path, was, now, forces)


def _followed(new: FlatResource, anew: Container[_Key]) -> Iterator[InputChange]:
    """Yield that by which a resource goes with what is replaced: as the engine has it, even where inputs are equal.

    It goes with its provider. Of inputs the engine takes one as a whole for unknown where any of it comes from what
    is replaced; one path of each is enough to say so.
    """
    if new.provider and new.provider in anew:
        yield InputChange("provider", new.provider[1], "its replacement", True)
    for name, sources in new.inputs_from.items():
        source = next((each for each in sources if each in anew), None)
        paths = (
            [path for path in new.inputs if path == name or path.startswith((f"{name}.", f"{name}["))] if source else ()
        )
        forcing = [path for path in paths if replacements.forces(new.type, path, also=new.replacing)]
        if source and forcing:
            path = next((path for path in forcing if new.inputs[path] == LATER), forcing[0])
            yield InputChange(path, source[1], "its replacement", True)


def _only_on_one_side(path: str, other: Mapping[str, Any]) -> str:
    """Return the outermost part of a path of which the other side has nothing."""
    part = path
    while (above := _above(part)) and not any(replacements.covers(above, each) for each in other):
        part = above
    return part


def _above(path: str) -> str:
    """Return the part that a path stands in: ``a[0]`` of ``a[0].b``, then ``a``, then nothing."""
    return path[: path.rindex("[")] if path.endswith("]") else path.rpartition(".")[0]
