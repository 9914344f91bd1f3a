"""A local cloud for runs on Vertex AI, with a clock that tests advance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from local_google_cloud.api import Clock, CloudSettings, Store
from tests.support.lab import TODAY, write_lab
from training_platform.cli.main import app
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.quota.snapshot import read_snapshots

PROJECT = "example-lab"
JOB = """\
environment: lab
image: registry.example.com/train:1
args: ["--name={run}"]
output: checkpoints
vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start, max_wait: 6h}
"""
Command = Callable[..., Result]


class Cloud:
    """A local cloud with a clock that tests advance, and its address."""

    def __init__(self, root: Path, project: str = PROJECT) -> None:
        self.now = 1_800_000_000.0
        snapshots = read_snapshots(root, TODAY).by_project
        self.cloud = judged_cloud([], snapshots, store=Store(None), clock=Clock(lambda: self.now))
        self.cloud.settings = CloudSettings(
            durations={"aiplatform.jobs.pending": 60.0, "aiplatform.jobs.running": 600.0}
        )
        apis = {"serviceIds": ["aiplatform.googleapis.com", "iam.googleapis.com"]}
        code, answer = self.cloud.handle(
            "serviceusage", "POST", f"v1/projects/{project}/services:batchEnable", [], apis
        )
        assert code == 200, answer


def write_repository(root: Path) -> Path:
    """Write the organisation with one job, ``jobs/vision/train.yaml``."""
    write_lab(root)
    (root / "jobs" / "vision" / "train.yaml").write_text(JOB)
    return root


def job_command(root: Path, port: int) -> Command:
    """Return a function that runs ``training-platform job`` against the local cloud on a port."""

    def run(command: str, *arguments: str) -> Result:
        where = ["--root", str(root), "--local-cloud", f"http://127.0.0.1:{port}"]
        return CliRunner().invoke(app, ["job", command, *arguments, *where])

    return run


def submit(job: Command, root: Path) -> str:
    result = job("submit", str(root / "jobs" / "vision" / "train.yaml"))
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def replica(identity: str, task: str) -> dict[str, Any]:
    return {"type": "ml_job", "labels": {"job_id": identity, "task_name": task, "project_id": PROJECT}}
