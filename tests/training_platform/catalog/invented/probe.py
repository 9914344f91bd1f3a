"""Print what a copy of the repository plans, and what that is charged, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.plans import planned_demand, planned_stacks
from training_platform.config.workspace import read_workspace
from training_platform.quota.charges import Charge
from training_platform.resources.stack_plan import plannable


def main(root: Path) -> dict[str, Any]:
    workspace = read_workspace(root)
    plans = {stack.name: plan for stack, plan in planned_stacks(workspace, plannable(workspace, workspace.stacks))}
    return {
        "planned": [
            {"type": resource.type, "name": resource.name, "inputs": resource.inputs}
            for plan in plans.values()
            for resource in plan.resources
            if resource.type.rpartition(":")[2]
            in {"NodePool", "ResourceFlavor", "ClusterQueue", "Cluster", "DaemonSet"}
        ],
        "charged": _sums(planned_demand(plans["lab"].resources)),
    }


def _sums(charges: list[Charge]) -> dict[str, float]:
    total: dict[str, float] = {}
    for charge in charges:
        total[str(charge.key)] = total.get(str(charge.key), 0) + charge.amount
    return total


if __name__ == "__main__":
    json.dump(main(Path(sys.argv[1])), sys.stdout, default=lambda _: None)  # what is not known yet is no JSON
