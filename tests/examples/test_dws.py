"""The examples of Google's page on Dynamic Workload Scheduler, field by field beside the bodies of our job files.

Source: Google Cloud, "Schedule training jobs based on resource availability", read 2026-11-28.
"""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.places import ORGANISATION, ROOT
from training_platform.parts.jobs.render import render_job

MACHINE = {"machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}
REST = {
    "machineSpec": MACHINE,
    "replicaCount": 1,
    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
    "containerSpec": {"imageUri": "python:3.10", "command": ["sleep"], "args": ["100"]},
}
GCLOUD = {"machineSpec": MACHINE, "replicaCount": 1, "containerSpec": {"command": ["start"], "args": ["port=8500"]}}
SDK = {"machineSpec": MACHINE, "replicaCount": 1}
QUOTA = "CustomModelTrainingPreemptibleA100GPUsPerProjectPerRegion"  # which flex-start charges, by the page
TODAY = date(2026, 11, 21)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ORGANISATION, tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    quotas = tmp_path / "stacks" / "quotas" / "example-train-prod.yaml"
    row = f"    {QUOTA}:\n      - {{limit: 1, region: us-central1}}\n"
    vertex = "  aiplatform.googleapis.com:\n"
    quotas.write_text(quotas.read_text(encoding="utf-8").replace(vertex, vertex + row), encoding="utf-8")
    shutil.copytree(ROOT / "examples" / "jobs" / "dws", tmp_path / "jobs" / "vision", dirs_exist_ok=True)
    return tmp_path


def different(page: Any, ours: Any, path: str = "") -> list[str]:
    """Return the fields of the page that a body lacks or has with another value; 64-bit integers are strings there."""
    if isinstance(page, dict):
        return [row for key in page for row in different(page[key], (ours or {}).get(key), f"{path}.{key}")]
    return [] if str(page) == str(ours) else [f"{path}: {page} is {ours}"]


@pytest.mark.parametrize(
    ("name", "pool", "wait"), [("gcloud", GCLOUD, "7200s"), ("sdk", SDK, "1800s"), ("rest", REST, "1800s")]
)
def test_each_field_of_the_page_is_in_the_body(root: Path, name: str, pool: dict[str, Any], wait: str) -> None:
    rendered = render_job(root / "jobs" / "vision" / f"{name}.yaml", root, "vertex", TODAY)

    spec = yaml.safe_load(rendered.text)["jobSpec"]
    (worker_pool,) = spec["workerPoolSpecs"]
    assert different(pool, worker_pool) == []
    assert different({"strategy": "FLEX_START", "maxWaitDuration": wait}, spec["scheduling"]) == []
    assert spec["serviceAccount"]
    assert ("experiment" in spec) is (name == "sdk")
