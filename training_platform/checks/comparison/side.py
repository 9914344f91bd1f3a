"""One side of a comparison, as plain data that a program of another version can hand over as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from training_platform.checks.report import StackReport
from training_platform.checks.reports.fingerprints import identity
from training_platform.quota.keys import QuotaKey
from training_platform.quota.ledger import Line
from training_platform.resources.planned import UNKNOWN, Planned

if TYPE_CHECKING:  # a check of the model alone loads no Pulumi
    from training_platform.checks.run import Checked

LATER = "(known after deployment)"
TRIGGER = "replacementTrigger"
"""What a program registers beside the inputs, so that a change of it replaces the resource; here it is an input."""


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SideResource(_Plain):
    """A planned resource: its inputs by path (``nodeConfig.guestAccelerators[0].type``), a list of values as one.

    ``ignored`` and ``replacing`` are the paths that the program registers so; ``protected`` resources the engine
    neither deletes nor replaces.
    """

    type: str
    name: str
    inputs: dict[str, Any]
    protected: bool = False
    ignored: tuple[str, ...] = ()
    replacing: tuple[str, ...] = ()


class SideAccelerators(_Plain):
    """Chips or GPUs of one flavor in one region, at the most machines."""

    region: str
    flavor: str
    unit: str
    most: int


class SideStack(_Plain):
    """A stack; ``resources`` is None where it was not planned. Costs are in USD per hour, None where none is known."""

    name: str
    kind: Literal["environment", "team", "rejected"]
    resources: tuple[SideResource, ...] | None
    accelerators: tuple[SideAccelerators, ...] = ()
    least_usd: float | None = None
    most_usd: float | None = None


class SideQuota(_Plain):
    """What all stacks together hold of one limit; ``limit`` is None where it is not known, or there is none."""

    key: QuotaKey
    unit: str
    used: float
    limit: float | None


class SideCapacity(_Plain):
    """What the pools of a cluster hold of a flavor, and what teams are promised of it."""

    environment: str
    cluster: str
    flavor: str
    capacity: float
    promised: float


class Side(_Plain):
    """What a check of one side found; ``identities`` are those of all findings that count."""

    version: Literal[1] = 1
    stacks: dict[str, SideStack]
    quotas: tuple[SideQuota, ...]
    capacity: tuple[SideCapacity, ...]
    identities: tuple[tuple[str, ...], ...]
    failures: tuple[str, ...]


def side_of(checked: Checked) -> Side:
    """Return what a check found, as one side of a comparison."""
    report = checked.report
    return Side(
        stacks={stack.name: _stack(stack, checked) for stack in report.stacks},
        quotas=tuple(_quota(line) for ledger in checked.ledgers for line in ledger.lines),
        capacity=tuple(
            SideCapacity(
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


def side_resource(planned: Planned) -> SideResource:
    """Return a planned resource as a comparison looks at it."""
    trigger = {TRIGGER: planned.options[TRIGGER]} if TRIGGER in planned.options else {}
    return SideResource(
        type=planned.type,
        name=planned.name,
        inputs=leaves({**planned.inputs, **trigger}),
        protected=bool(planned.options.get("protect")),
        ignored=tuple(planned.options.get("ignoreChanges", ())),
        replacing=(*planned.options.get("replaceOnChanges", ()), *trigger),
    )


def leaves(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return every value of a resource's inputs by its path; an empty mapping is no value, an unknown one ``LATER``."""
    return dict(_leaves(inputs, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    elif isinstance(value, list):
        yield path, [LATER if item is UNKNOWN else item for item in value]
    elif value is not None:
        yield path, LATER if value is UNKNOWN else value


def _stack(stack: StackReport, checked: Checked) -> SideStack:
    outcome = checked.outcomes.get(stack.name)
    cost = stack.cost
    priced = cost.read is not None or not (cost.unpriced or stack.kind == "rejected")
    return SideStack(
        name=stack.name,
        kind=stack.kind,
        resources=outcome.inputs if outcome else None,
        accelerators=tuple(
            SideAccelerators(region=row.region, flavor=row.flavor, unit=row.unit, most=row.most)
            for row in stack.accelerators
        ),
        least_usd=cost.least if priced else None,
        most_usd=cost.most if priced else None,
    )


def _quota(line: Line) -> SideQuota:
    limit = None if line.limit is None or math.isinf(line.limit) else line.limit
    return SideQuota(key=line.key, unit=line.unit, used=line.used, limit=limit)
