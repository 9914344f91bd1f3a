"""Writes the organisation's inventories and the snapshot of its names from its plans; run by ``make inventories``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.organisation.inventories.names import FILE, current_names, snapshot, with_earlier
from tests.support.inventory import inventory
from tests.support.plans import planned_stacks
from training_platform.config.model.stack import Stack
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.resources.plan import Plan
from training_platform.resources.stack_plan import plannable, stack_plan

FOLDER = Path(__file__).parent
ORGANISATION = FOLDER.parent


def main() -> None:
    """Write every stack's inventory."""
    workspace = read_workspace(ORGANISATION)
    for stack, plan in planned_stacks(workspace, plannable(workspace, workspace.stacks)):
        (FOLDER / f"{stack.name}.yaml").write_text(inventory(plan), encoding="utf-8")
    names = {stack.name: current_names(plan) for stack, plan in _plans(workspace)}
    FILE.write_text(with_earlier(names, snapshot()), encoding="utf-8")


def _plans(workspace: Workspace) -> Iterator[tuple[Stack, Plan]]:
    for stack in plannable(workspace, workspace.stacks):
        plan = stack_plan(stack, workspace)
        assert plan is not None  # plannable
        yield stack, plan


if __name__ == "__main__":
    main()
