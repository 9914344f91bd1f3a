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
from training_platform.checks.outcome import LATER, TRIGGER, FlatResource
from training_platform.checks.report import StackReport, identity
from training_platform.checks.stacks import Checked
from training_platform.config.reading.secrets import HIDDEN
from training_platform.quota.charges import QuotaKey
from training_platform.resources import resource_types

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
    quotas = [
        QuotaUse(
            key=line.key,
            unit=line.unit,
            used=line.used,
            limit=None if line.limit is None or math.isinf(line.limit) else line.limit,
        )
        for ledger in checked.ledgers.values()
        for line in ledger.lines
    ]
    capacity = [
        CapacityUse(
            environment=line.environment,
            cluster=line.cluster,
            flavor=line.flavor.name,
            capacity=line.capacity,
            promised=line.promised,
        )
        for line in checked.capacity
    ]
    return CheckResult(
        stacks={stack.name: _stack(stack, checked) for stack in report.stacks},
        quotas=tuple(quotas),
        capacity=tuple(capacity),
        identities=tuple(identity(finding) for finding in report.all_findings()),
        failures=report.failures,
    )


def _stack(stack: StackReport, checked: Checked) -> StackResult:
    outcome = checked.outcomes.get(stack.name)
    cost = stack.cost
    priced = cost.sums_up and (cost.read is not None or not (cost.unpriced or stack.kind == "rejected"))
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


def resource_changes(before: Iterable[FlatResource], after: Iterable[FlatResource]) -> tuple[ResourceChange, ...]:
    """Return the change of every resource that differs, the worst first."""
    old = {(resource.type, resource.name): resource for resource in before}
    new = {(resource.type, resource.name): resource for resource in after}
    graph = {  # a resource's provider, and those whose outputs it takes, are before it
        key: {*chain.from_iterable(resource.inputs_from.values()), *([resource.provider] if resource.provider else ())}
        for key, resource in new.items()
    }
    changes: list[ResourceChange] = []
    replaced: set[_Key] = set()
    for key in TopologicalSorter(graph).static_order():
        if key in old and key in new and (change := _change(old[key], new[key], replaced)):
            changes.append(change)
            if change.kind == "replaced":
                replaced.add(key)
    changes += [
        ResourceChange(kind="removed", type=kind, name=name, protected=old[kind, name].protected)
        for kind, name in old.keys() - new.keys()
    ]
    changes += [ResourceChange(kind="added", type=kind, name=name) for kind, name in new.keys() - old.keys()]
    return tuple(sorted(changes, key=lambda change: (KINDS.index(change.kind), change.type, change.name)))


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
    changes = []
    for key in sorted({*old, *new}):
        # A side that holds nothing of a limit does not list it.
        was = old.get(key) or new[key].model_copy(update={"used": 0.0})
        now = new.get(key) or was.model_copy(update={"used": 0.0})
        if was != now:
            changes.append(QuotaChange(key, now.unit, Amount(was.used, now.used), Amount(was.limit, now.limit)))
    return tuple(changes)


def capacity_changes(before: CheckResult, after: CheckResult) -> tuple[CapacityChange, ...]:
    """Return the flavors of clusters that hold, or are promised, more or less."""
    old, new = (
        {(use.environment, use.cluster, use.flavor): (use.capacity, use.promised) for use in side.capacity}
        for side in (before, after)
    )
    changes = []
    for key in sorted({*old, *new}):
        was, now = old.get(key, (0, 0)), new.get(key, (0, 0))
        if was != now:
            changes.append(CapacityChange(*key, Amount(was[0], now[0]), Amount(was[1], now[1])))
    return tuple(changes)


def _change(old: FlatResource, new: FlatResource, replaced: Container[_Key]) -> ResourceChange | None:
    inputs = tuple(_inputs(old, new))
    if not any(change.forces for change in inputs):
        inputs += tuple(_followed(new, replaced))
    if not inputs:
        return None
    kind: Kind = "replaced" if any(change.forces for change in inputs) else "changed"
    return ResourceChange(
        kind=kind,
        type=new.type,
        name=new.name,
        inputs=inputs,
        undecided=not (resource_types.has_known_replacements(new.type) or new.type.startswith("pulumi:")),
        protected=old.protected,
    )


def _inputs(old: FlatResource, new: FlatResource) -> Iterator[InputChange]:
    for path in sorted({*old.inputs, *new.inputs}):
        was, now = old.inputs.get(path), new.inputs.get(path)
        if was == now or any(resource_types.covers(ignored, path) for ignored in new.ignored):
            continue
        if path == TRIGGER and None in (was, now):  # adding or removing one triggers nothing
            continue
        outermost = _only_on_one_side(path, old.inputs if was is None else new.inputs) if None in (was, now) else None
        on = resource_types.is_turned_on(new.type, path, now)
        forces = not on and resource_types.forces_replacement(new.type, path, outermost, also=new.replacing)
        yield InputChange(path, _unhidden(was), _unhidden(now), forces)


def _unhidden(value: Any) -> Any:
    """Return a value as reports show it: a secret without the digest that tells it from another one."""
    if isinstance(value, list):
        return [_unhidden(item) for item in value]
    return HIDDEN if isinstance(value, str) and value.startswith(HIDDEN) else value


def _only_on_one_side(path: str, other: Mapping[str, Any]) -> str:
    """Return the outermost part of a path of which the other side has nothing: ``a`` or ``a[0]`` of ``a[0].b``."""
    while True:
        above = path[: path.rindex("[")] if path.endswith("]") else path.rpartition(".")[0]
        if not above or any(resource_types.covers(above, name) for name in other):
            return path
        path = above


def _followed(new: FlatResource, replaced: Container[_Key]) -> Iterator[InputChange]:
    """Yield the inputs by which a resource is replaced with another, as the engine does even where inputs are equal.

    It is replaced with its provider. The engine takes an input as a whole for unknown where any of it comes from a
    replaced resource; one path of each input is enough to show that.
    """
    if new.provider and new.provider in replaced:
        yield InputChange("provider", new.provider[1], "its replacement", True)
    for name, sources in new.inputs_from.items():
        source = next((key for key in sources if key in replaced), None)
        if source is None:
            continue
        paths = (path for path in new.inputs if path == name or path.startswith((f"{name}.", f"{name}[")))
        forcing = [path for path in paths if resource_types.forces_replacement(new.type, path, also=new.replacing)]
        if forcing:
            path = next((path for path in forcing if new.inputs[path] == LATER), forcing[0])
            yield InputChange(path, source[1], "its replacement", True)
