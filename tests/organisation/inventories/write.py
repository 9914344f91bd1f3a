"""Writes <stack>.yaml beside itself from the plans of the tests' organisation; run by ``make inventories``."""

from __future__ import annotations

from pathlib import Path

from tests.inventory import inventory
from tests.plans import planned_stacks
from training_platform.config.workspace import read_workspace
from training_platform.resources.stack_plan import plannable

FOLDER = Path(__file__).parent
ORGANISATION = FOLDER.parent


def main() -> None:
    """Write every stack's inventory."""
    workspace = read_workspace(ORGANISATION)
    for stack, plan in planned_stacks(workspace, plannable(workspace, workspace.stacks)):
        (FOLDER / f"{stack.name}.yaml").write_text(inventory(plan), encoding="utf-8")


if __name__ == "__main__":
    main()
