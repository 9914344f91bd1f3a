"""Pools that GKE would create for a compute class: rules about pools judge each priority, at its own field."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.places import ROOT
from tests.support.stack_files import cluster, environment, sound_workspace
from training_platform.checks.outcome import rule_findings
from training_platform.views.adapters import views_of_model

PRIORITY = "clusters.us-central1.compute_classes.any.priorities[1]"


def found(location: str = "us-central1", **priority: Any) -> dict[tuple[str, str], str | None]:
    """Return the nearest valid value of each finding about a class's second priority, by rule and field."""
    system = {"machine_type": "e2-standard-4", "min_nodes": 1, "max_nodes": 3}
    classes = {"any": {"priorities": [priority, priority]}}
    clusters = {"us-central1": cluster(location, system_pool=system, compute_classes=classes)}
    workspace = sound_workspace({"prod": {"environment": environment(clusters)}}, ROOT)
    stack = workspace.stacks["prod"]
    findings = rule_findings(stack, views_of_model(stack, workspace))
    return {
        (row.rule, row.path.removeprefix(f"{PRIORITY}.")): row.nearest
        for row in findings
        if row.path.startswith(PRIORITY)
    }


GPUS = {"machine_type": "a2-highgpu-8g", "capacity": "spot"}
MEGA = {"machine_type": "a3-megagpu-8g", "capacity": "spot"}
FLEX = {"machine_type": "a2-highgpu-8g", "capacity": "flex-start"}
SLICES = {"machine_type": "ct5lp-hightpu-4t", "topology": "4x4", "capacity": "spot"}


@pytest.mark.parametrize(
    ("priority", "rule", "field", "nearest"),
    [
        ({**FLEX, "max_run_hours": 169}, "max-run-duration", "max_run_hours", "168"),
        ({**GPUS, "zones": ["europe-west4-a"]}, "pool-zone", "zones", "us-central1-a"),
        ({**MEGA, "zones": ["us-central1-f"]}, "machine-zone", "zones", "us-central1-a"),
        ({**GPUS, "boot_disk": {"type": "hyperdisk-balanced"}}, "boot-disk-type", "boot_disk.type", "pd-balanced"),
        ({**GPUS, "boot_disk": {"size_gb": 9}}, "boot-disk-size", "boot_disk.size_gb", "10"),
        ({**SLICES, "topology": "3x5"}, "tpu-topology", "topology", "4x4"),
        ({**SLICES, "zones": ["us-central1-a", "us-central1-b"]}, "placement-one-zone", "zones", "us-central1-a"),
    ],
)  # fmt: skip
def test_a_rule_about_pools_finds_its_fault_in_a_priority(
    priority: dict[str, Any], rule: str, field: str, nearest: str
) -> None:
    assert found(**priority).get((rule, field), "nothing") == nearest


@pytest.mark.parametrize(
    "priority",
    [
        GPUS,
        {**FLEX, "max_run_hours": 168},
        {**GPUS, "zones": ["us-central1-a", "us-central1-b"]},
        {**GPUS, "boot_disk": {"size_gb": 10}},
        {"machine_type": "a3-highgpu-8g", "capacity": "reservation", "reservation": "h100", "zones": ["us-central1-a"]},
        SLICES,
        {**SLICES, "zones": ["us-central1-a"]},
    ],
)
def test_a_priority_that_gke_takes_has_no_findings(priority: dict[str, Any]) -> None:
    assert found(**priority) == {}


def test_a_zonal_cluster_has_its_zone() -> None:
    assert found("us-central1-a", **SLICES) == {}
