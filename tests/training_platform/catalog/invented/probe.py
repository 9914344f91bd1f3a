"""Print what a copy of the repository plans and what a local Google Cloud charges for it, as JSON."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

from local_google_cloud.api import LocalCloud, Store
from tests.support.plans import planned_demand, planned_stacks
from training_platform.config.workspace import read_workspace
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.quota.charges import Charge
from training_platform.quota.snapshot import read_snapshots
from training_platform.resources.stack_plan import plannable

PROJECT = "example-lab"
PARENT = f"container/v1/projects/{PROJECT}/locations/us-central1/clusters"


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
        "sandbox": _sandbox(root),
    }


def _sums(charges: list[Charge]) -> dict[str, float]:
    total: dict[str, float] = {}
    for charge in charges:
        total[str(charge.key)] = total.get(str(charge.key), 0) + charge.amount
    return total


def _sandbox(root: Path) -> list[tuple[int, str]]:
    """Request pools of one VM from a cloud with the limits, one after another, and return its answers."""
    cloud = judged_cloud([], read_snapshots(root, date(2026, 11, 2)).by_project, store=Store(None))
    _done(cloud, f"serviceusage/v1/projects/{PROJECT}/services:batchEnable", {
        "serviceIds": ["compute.googleapis.com", "container.googleapis.com"],
    })  # fmt: skip
    networks = f"compute/v1/projects/{PROJECT}"
    _done(cloud, f"{networks}/global/networks", {"name": "net", "autoCreateSubnetworks": False})
    _done(cloud, f"{networks}/regions/us-central1/subnetworks", {
        "name": "nodes", "network": f"projects/{PROJECT}/global/networks/net", "ipCidrRange": "10.0.0.0/20",
        "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.64.0.0/16"}],
    })  # fmt: skip
    _done(cloud, PARENT, {
        "cluster": {"name": "one", "initialNodeCount": 1, "network": "net", "subnetwork": "nodes"},
    })  # fmt: skip
    return [_answer(cloud, f"{PARENT}/one/nodePools", _pool(name, nodes)) for name, nodes in (("a", 3), ("b", 1))]


def _pool(name: str, nodes: int) -> dict[str, Any]:
    """Return a pool of the invented GPU with 1,000 GB of local SSD for each VM; the limits hold three VMs."""
    config = {
        "machineType": "z9-max-6g",
        "diskType": "pd-ssd",
        "ephemeralStorageLocalSsdConfig": {"localSsdCount": 2},
        "accelerators": [{"acceleratorType": "acme-z9", "acceleratorCount": "6"}],
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    }
    return {"nodePool": {"name": name, "initialNodeCount": nodes, "locations": ["us-central1-a"], "config": config}}


def _done(cloud: LocalCloud, path: str, body: dict[str, Any]) -> None:
    code, answer = _answer(cloud, path, body)
    assert code == 200, answer


def _answer(cloud: LocalCloud, path: str, body: dict[str, Any]) -> tuple[int, str]:
    service, _, service_path = path.partition("/")
    code, answer = cloud.handle(service, "POST", service_path, [], body)
    return code, json.dumps(answer)


if __name__ == "__main__":
    json.dump(main(Path(sys.argv[1])), sys.stdout, default=lambda _: None)  # what is not known yet is no JSON
