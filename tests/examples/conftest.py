"""A copy of the organisation without jobs, and the local cloud of its project."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_google_cloud.api import serve
from tests.parts.jobs.runs.vertex_cloud import Cloud
from tests.support.places import ORGANISATION
from training_platform.config.workspace import read_workspace
from training_platform.resources.scope import persistent_resource_id, team_scope

PROJECT = "example-train-prod"
REGION = "us-central1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The organisation's stacks, and no jobs yet."""
    root = tmp_path / "organisation"
    shutil.copytree(ORGANISATION / "stacks", root / "stacks")
    shutil.copy(ORGANISATION / "Pulumi.yaml", root)
    return root


@pytest.fixture
def cloud(root: Path) -> Iterator[tuple[Cloud, str]]:
    """A local cloud with the team's persistent resource and the environment's view of logs, and where it answers."""
    cloud = Cloud(root, PROJECT)
    cloud.cloud.settings.durations["aiplatform.jobs.pendingKept"] = 60.0
    (kept,) = [
        persistent_resource_id(team_scope(team, home), "tuning")
        for stack, team, home in read_workspace(root).teams()
        if stack.name == "prod-vision"
    ]
    gpu = {"acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}
    disk = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200}
    machine = {"machineSpec": {"machineType": "a2-highgpu-1g", **gpu}, "diskSpec": disk, "replicaCount": "4"}
    path = f"v1/projects/{PROJECT}/locations/{REGION}/persistentResources"
    query = [("persistentResourceId", kept)]
    code, answer = cloud.cloud.handle("aiplatform", "POST", path, query, {"resourcePools": [machine]})
    assert code == 200, answer
    views = f"v2/projects/{PROJECT}/locations/global/buckets/_Default/views"
    code, answer = cloud.cloud.handle(
        "logging", "POST", views, [("viewId", "prod-vertex-jobs")], {"filter": 'resource.type="ml_job"'}
    )
    assert code == 200, answer
    with serve(cloud.cloud) as port:
        yield cloud, f"http://127.0.0.1:{port}"
