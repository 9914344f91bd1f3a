"""Beside checkov and conftest, over the same clusters and pools, one of them per environment with a disk too large.

They get the plan as ``terraform show -json`` prints it and do not plan; ``check`` reads the stack files, plans with the
program that deploys them, and decides quotas and capacity besides. So the rows say what each one decides, and how many
of the planted disks it finds. A tool is taken from PATH, or from where ``$CHECKOV`` and ``$CONFTEST`` say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fleet import Shape, write_fleet
from benchmarks.measure import PROGRAM, run, table
from training_platform.catalog import BOOT_DISK_LIMITS
from training_platform.catalog.types import Json
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.resources.declared import MAP_FIELDS
from training_platform.resources.model import planned_of_model
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.resource_types import CLUSTER, NETWORK, NODE_POOL, SUBNETWORK

RUNS = 2
SHAPE = Shape(environments=20, pools=50)
RULE = "boot-disk-size"


class Tool(NamedTuple):
    """A tool, what it decides here, and how to count the planted disks in what it prints."""

    name: str
    decides: str
    command: Sequence[str]
    found: Callable[[Any], int]
    env: Mapping[str, str] = {}


def oversized_disk(pool: Json) -> bool:
    """Plant a disk that is too large, but not in a pool of several slices, which would have it several times."""
    if "max_nodes" not in pool:
        return False
    pool["boot_disk"] = {"size_gb": 700_000}
    return True


def measure() -> None:
    """Run every tool over one fleet, turn by turn, and print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_fleet(folder / "fleet", SHAPE, oversized_disk)
        plan = terraform_plan(read_workspace(folder / "fleet"))
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        policy = Path(__file__).with_name("disk.rego").read_text(encoding="utf-8")
        most_gb = str(BOOT_DISK_LIMITS["gke"].max_gb)
        (folder / "policy.rego").write_text(policy.replace("MOST_GB", most_gb), encoding="utf-8")
        rows = [_row(tool, folder) for tool in _tools(folder)]
    size = len(plan["planned_values"]["root_module"]["resources"])
    table(
        f"Side by side: {SHAPE.environments * SHAPE.pools:,} pools, {size:,} resources in the Terraform plan; "
        f"{SHAPE.environments} disks too large; best of {RUNS} runs",
        ("tool", "decides", "wall s", "CPU s", "peak MiB", "planted disks found"),
        rows,
    )


def _tools(folder: Path) -> list[Tool]:
    fleet, plan = str(folder / "fleet"), str(folder / "plan.json")
    ours = [PROGRAM, "check", "--format", "json", "--root", fleet]
    checkov = [
        _place("checkov"), "--file", plan, "--framework", "terraform_plan", "--skip-download", "--compact", "--quiet",
        "--soft-fail", "--output", "json",
    ]  # fmt: skip
    conftest = [_place("conftest"), "test", plan, "--policy", str(folder / "policy.rego"), "--no-fail", "-o", "json"]
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    return [
        Tool("`check --fast`", "all rules on the model, quotas, capacity", [*ours, "--fast"], _ours),
        Tool("`check --no-cache`", "plans; all rules, quotas, capacity", [*ours, "--no-cache"], _ours),
        Tool("`check`, nothing changed", "the same, from the cache", ours, _ours, cache),
        Tool("checkov", "its own checks of GKE resources", checkov, _checkov),
        Tool(
            "conftest",
            "one rule of ours in Rego: the disk's size",
            conftest,
            lambda results: sum(len(result.get("failures") or ()) for result in results),
        ),
    ]


def _place(tool: str) -> str:
    return os.environ.get(tool.upper()) or shutil.which(tool) or ""


def _row(tool: Tool, folder: Path) -> Sequence[object]:
    if not tool.command[0]:
        return tool.name, tool.decides, "not installed", "", "", ""
    out = folder / "out.json"
    _, *runs = (run(tool.command, env=tool.env, out=out, accept=(0, 1)) for _ in range(RUNS + 1))  # a warm-up first
    best = min(runs, key=lambda each: each.wall)
    found = tool.found(json.loads(out.read_text(encoding="utf-8")))
    cpu = min(each.cpu for each in runs)
    return tool.name, tool.decides, f"{best.wall:.2f}", f"{cpu:.2f}", f"{best.peak_mib:.0f}", found


def _ours(report: Any) -> int:
    return sum(finding["rule"] == RULE for finding in report["findings"])


def _checkov(report: Any) -> int:
    names = (check["check_name"].lower() for check in report["results"]["failed_checks"])
    return sum("disk" in name and "size" in name for name in names)


PROVIDER = "registry.terraform.io/hashicorp/google"
TYPES = {
    NETWORK: "google_compute_network",
    SUBNETWORK: "google_compute_subnetwork",
    CLUSTER: "google_container_cluster",
    NODE_POOL: "google_container_node_pool",
}


def terraform_plan(workspace: Workspace) -> Json:
    """Return the plan of every environment: networks, subnets, clusters, node pools, all to be created."""
    resources = [
        {**_head(TYPES[each.type], f"{stack.name}-{each.name}"), "schema_version": 0, "values": _values(each.inputs)}
        for stack, _ in workspace.environments()
        for each in planned_of_model(stack, workspace)
        if each.type in TYPES
    ]
    changes = [
        {
            **_head(each["type"], each["name"]),
            "change": {"actions": ["create"], "before": None, "after": each["values"], "after_unknown": {}},
        }
        for each in resources
    ]
    return {
        "format_version": "1.2",
        "terraform_version": "1.9.0",
        "planned_values": {"root_module": {"resources": resources}},
        "resource_changes": changes,
        "configuration": {"root_module": {}},
    }


def _head(kind: str, name: str) -> Json:
    return {"address": f"{kind}.{name}", "mode": "managed", "type": kind, "name": name, "provider_name": PROVIDER}


def _values(inputs: Mapping[str, Any]) -> Json:
    named = ((re.sub(r"([A-Z])", r"_\1", name).lower(), value) for name, value in inputs.items())
    return {name: value if name in MAP_FIELDS else _value(value) for name, value in named if value is not UNKNOWN}


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [_values(value)]
    if isinstance(value, list):
        return [_values(item) if isinstance(item, Mapping) else item for item in value]
    return value
