"""What planning a stack gives, as plain data: all that reports need of a plan, without the plan.

It travels between processes and lies in the cache as JSON, and is read back from JSON wherever it was made, so that a
report is the same whoever planned, and when.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from training_platform.checks.planning.flat_resource import FlatResource, flat_resource
from training_platform.checks.planning.resource_tree import Branch, Resource, branches, resource_tree
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import View, evaluate, program, views_of_plan

if TYPE_CHECKING:  # a check that finds all of its plans in the cache loads no Pulumi
    from training_platform.checks.planning.recorder import Plan


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the rules find in a plan, what it would create, and what it exports.

    ``inputs`` has the resources with all of their inputs, None where nobody asked for them: they are many times the
    rest together. An unknown output is ``UNKNOWN``.
    """

    findings: tuple[Finding, ...]
    branches: tuple[Branch, ...]
    resources: tuple[Resource, ...]
    outputs: dict[str, Any]
    inputs: tuple[FlatResource, ...] | None = None


_ADAPTER = TypeAdapter(Outcome)


def outcome_of(stack: Stack, plan: Plan, *, inputs: bool) -> Outcome:
    """Return what planning a stack gives; by name, since the order of registration differs from run to run."""
    plan = dataclasses.replace(plan, resources=sorted(plan.resources, key=lambda each: (each.name, each.type)))
    assert stack.section is not None
    return Outcome(
        findings=tuple(rule_findings(stack, views_of_plan(plan.resources, Locator(stack.section)))),
        branches=branches(plan.resources),
        resources=resource_tree(plan.resources),
        outputs=plan.outputs,
        inputs=tuple(flat_resource(each) for each in plan.resources if each.custom) if inputs else None,
    )


def rule_findings(stack: Stack, views: list[View]) -> list[Finding]:
    """Return what the rules find in a stack's views."""
    whole = program(
        views,
        stack=stack.name,
        environment=stack.environment_name,
        team=stack.team.name if stack.team else None,
        production=stack.production,
    )
    return evaluate(whole, file=stack)


def encode(outcome: Outcome) -> bytes:
    """Return an outcome as JSON."""
    outputs = {key: packed(value) for key, value in outcome.outputs.items()}
    return _ADAPTER.dump_json(dataclasses.replace(outcome, outputs=outputs))


def decode(data: bytes) -> Outcome:
    """Read an outcome back. Raises pydantic's ValidationError where it is none."""
    outcome = _ADAPTER.validate_json(data)
    return dataclasses.replace(outcome, outputs={name: unpacked(value) for name, value in outcome.outputs.items()})


def packed(value: Any) -> Any:
    """Return a value in which each mapping is one under ``map``, so that ``unknown`` stands for itself alone."""
    if value is UNKNOWN:
        return {"unknown": True}
    if isinstance(value, Mapping):
        return {"map": {key: packed(inner) for key, inner in value.items()}}
    return [packed(item) for item in value] if isinstance(value, list) else value


def unpacked(value: Any) -> Any:
    """Return a value as it was before ``packed``."""
    if isinstance(value, dict):
        return UNKNOWN if "unknown" in value else {key: unpacked(inner) for key, inner in value["map"].items()}
    return [unpacked(item) for item in value] if isinstance(value, list) else value
