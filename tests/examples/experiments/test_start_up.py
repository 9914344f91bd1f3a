"""The experiment prints how long a job took to start on new VMs and on those that are kept, by Vertex AI's answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.places import ROOT
from tests.training_platform.jobs.runs.vertex_cloud import PROJECT, Cloud, write_repository
from training_platform.jobs.model import Job
from training_platform.sandbox.cloud.http.server import serve
from training_platform.sandbox.cloud.state.cloud import CloudSettings

EXPERIMENT = ROOT / "examples" / "experiments" / "start_up"
KEPT = {
    "resourcePools": [
        {
            "machineSpec": {
                "machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1,
            },
            "replicaCount": "1",
            "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
        }
    ]
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")
def test_all_three_starts_stand_side_by_side(tmp_path: Path) -> None:
    root = write_repository(tmp_path / "lab")
    for name in ("start-new", "start-kept"):
        text = (EXPERIMENT / f"{name}.yaml").read_text().replace("environment: prod", "environment: lab")
        (root / "jobs" / "vision" / f"{name}.yaml").write_text(text)
    cloud = Cloud(root)
    pool = f"v1/projects/{PROJECT}/locations/us-central1/persistentResources"
    code, answer = cloud.cloud.handle("aiplatform", "POST", pool, [("persistentResourceId", "lab-vision-tuning")], KEPT)
    assert code == 200, answer
    cloud.cloud.settings = CloudSettings(durations={"aiplatform.jobs.pending": 4.0, "aiplatform.jobs.pendingKept": 1.0})
    cloud.cloud.clock = type(cloud.cloud.clock)()

    with serve(cloud.cloud) as port:
        command = [
            sys.executable, EXPERIMENT / "compare.py", "--team", "vision", "--command",
            Path(sys.executable).with_name("training-platform"), "--root", root,
            "--local-cloud", f"http://127.0.0.1:{port}",
        ]  # fmt: skip
        ran = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, cwd=root)

    assert ran.returncode == 0, ran.stderr
    assert [line.split() for line in ran.stdout.splitlines()[-4:]] == [
        ["start", "on", "seconds", "saved"],
        ["new", "VMs", "4", "0"],
        ["kept", "VMs", "1", "3"],
        ["kept", "VMs,", "again", "1", "3"],
    ]


def test_the_job_files_differ_in_the_machines_alone() -> None:
    new, kept = (
        yaml.safe_load((EXPERIMENT / f"start-{name}.yaml").read_text(encoding="utf-8")) for name in ("new", "kept")
    )
    Job.model_validate(new, strict=False)

    assert kept["vertex"].pop("persistent_resource")
    assert new == kept
