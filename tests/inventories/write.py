"""Writes tests/inventories/<stack>.yaml from the stacks' plans; run by ``make inventories``."""

from __future__ import annotations

from pathlib import Path

from training_platform.checks.inventory import inventory
from training_platform.checks.planning.order import plan_order
from training_platform.checks.planning.stack_plan import plan_stacks
from training_platform.config.workspace import read_workspace

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


def main() -> None:
    """Write every stack's inventory."""
    workspace = read_workspace(ROOT)
    for stack, plan in plan_stacks(workspace, plan_order(workspace, workspace.stacks)):
        (FOLDER / f"{stack.name}.yaml").write_text(inventory(plan), encoding="utf-8")


if __name__ == "__main__":
    main()
