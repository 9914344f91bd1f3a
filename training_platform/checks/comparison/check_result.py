"""What a check found, for a comparison: plain data that a program of another version can hand over as JSON."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict

from training_platform.checks.fingerprints import identity
from training_platform.checks.planning.outcome import FlatResource
from training_platform.checks.report import StackReport
from training_platform.checks.stacks import Checked
from training_platform.quota.keys import QuotaKey
from training_platform.quota.ledger import Line


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
