"""Plans for tests: what stacks register, found by type and name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import Charge
from training_platform.quota.demand import demand_of_views
from training_platform.resources.plan import Component, Plan, preview
from training_platform.resources.stack_plan import stack_plan
from training_platform.resources.stack_resource import StackResource
from training_platform.views.adapters import views_of_plan


@dataclass
class PlannedStack:
    """Resources of a plan, in order, and its exports, with the values that a preview knows."""

    resources: list[StackResource] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    def of(self, resource_type: str) -> list[StackResource]:
        """Return the resources of one type."""
        return [resource for resource in self.resources if resource.type == resource_type]

    def one(self, resource_type: str, name: str | None = None) -> StackResource:
        """Return the only resource of a type (and name). Raises LookupError unless exactly one exists."""
        matching = [resource for resource in self.of(resource_type) if name in (None, resource.name)]
        if len(matching) != 1:
            names = ", ".join(f"{resource.type} {resource.name}" for resource in matching or self.resources)
            raise LookupError(f"{len(matching)} resources are {resource_type} {name or ''}; there are: {names}")
        return matching[0]


def planned_stack(stack: Stack, workspace: Workspace) -> PlannedStack:
    """Return what a stack registers. Raises PlanError, and AssertionError if its file has errors."""
    plan = stack_plan(stack, workspace)
    assert plan is not None, f"stack {stack.name} has no plan: {[str(finding) for finding in stack.findings]}"
    return PlannedStack(plan.planned(), plan.preview_outputs())


def planned_stacks(workspace: Workspace, stacks: Iterable[Stack]) -> Iterator[tuple[Stack, PlannedStack]]:
    """Yield stacks with what they register."""
    return ((stack, planned_stack(stack, workspace)) for stack in stacks)


def composed(compose: Callable[[Component], Any], name: str = "it") -> PlannedStack:
    """Plan the resources that a function adds to a component called ``name``; its result is the output ``value``."""
    plan = Plan("test")
    value = compose(plan.component("test:index:Component", name))
    plan.check()
    return PlannedStack(plan.planned(), {"value": preview(value)})


def planned_demand(planned: Iterable[StackResource], locator: Locator | None = None) -> list[Charge]:
    """Return what planned resources charge."""
    return demand_of_views(views_of_plan(planned, locator))[0]
