"""Runs on Vertex AI, in the local cloud over HTTP: the same commands by the same client that asks Google's service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.training_platform.jobs.runs.vertex_cloud import JOB, PROJECT, Cloud, Command, submit
from training_platform.cli.main import app

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")


def row(job: Command, run: str) -> dict[str, object]:
    (found,) = json.loads(job("status", run, "--format", "json").stdout)
    return dict(found)


def test_a_run_waits_runs_and_ends(job: Command, vertex: Cloud, root: Path) -> None:
    run = submit(job, root)

    assert row(job, run)["state"] == "waiting"
    said = job("why", run).stdout
    assert f"{run} is PENDING in us-central1" in said
    assert "By flex-start it waits for a3-highgpu-8g, for 21600s at most, then it fails" in said
    vertex.now += 60
    assert row(job, run)["state"] == "running"
    vertex.now += 600
    assert job("wait", run, "--timeout", "0").exit_code == 0
    assert job("why", run).stdout == f"{run} has ended well.\n"


def test_a_run_is_its_teams_account_and_bears_its_own_name(job: Command, vertex: Cloud, root: Path) -> None:
    run = submit(job, root)

    jobs = f"v1/projects/{PROJECT}/locations/us-central1/customJobs"
    (body,) = vertex.cloud.handle("aiplatform", "GET", jobs, [], None)[1]["customJobs"]

    assert body["displayName"] == run
    assert body["jobSpec"]["serviceAccount"] == f"lab-vision-jobs@{PROJECT}.iam.gserviceaccount.com"
    assert body["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"].endswith(f"/{run}")
    assert body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"] == [f"--name={run}"]


def test_a_run_is_cancelled(job: Command, root: Path) -> None:
    run = submit(job, root)

    assert job("cancel", run).stdout == f"{run} is being stopped.\n"
    assert row(job, run)["state"] == "cancelled"
    assert job("wait", run).exit_code == 1
    assert job("cancel", run).stdout == f"{run} has ended already: cancelled.\n"


def test_runs_are_listed_beside_what_does_not_answer(job: Command, root: Path) -> None:
    runs = {submit(job, root) for _ in range(2)}

    listed = job("list", "--team", "vision", "--kubeconfig", "/dev/null", "--format", "json")

    assert {each["name"] for each in json.loads(listed.stdout)} == runs
    assert listed.exit_code == 2
    assert "training-platform: No kubeconfig can be read" in listed.stderr


def test_what_check_refuses_is_not_sent(job: Command, vertex: Cloud, root: Path) -> None:
    path = root / "jobs" / "vision" / "train.yaml"
    path.write_text(JOB.replace("us-central1", "us-west9"))

    result = job("submit", str(path))

    assert result.exit_code == 1
    assert "jobs/vision/train.yaml:5:" in result.stderr
    jobs = f"v1/projects/{PROJECT}/locations/us-central1/customJobs"
    assert vertex.cloud.handle("aiplatform", "GET", jobs, [], None)[1].get("customJobs", []) == []


def test_a_service_that_nobody_serves_is_one_sentence(root: Path) -> None:
    where = ["--root", str(root), "--local-cloud", "http://127.0.0.1:9"]

    result = CliRunner().invoke(app, ["job", "submit", str(root / "jobs" / "vision" / "train.yaml"), *where])

    assert result.exit_code == 2
    assert "cannot be reached" in result.stderr.splitlines()[-1]
    assert result.stdout == ""


def test_a_job_on_machines_that_are_not_deployed_is_told_to_deploy_them(job: Command, root: Path) -> None:
    kept = "machine_type: a2-highgpu-1g, persistent_resource: tuning, boot_disk: {size_gb: 200}"
    path = root / "jobs" / "vision" / "train.yaml"
    text = JOB.replace("machine_type: a3-highgpu-8g, capacity: flex-start, max_wait_hours: 6", kept)
    path.write_text(text)

    result = job("submit", str(path))

    assert result.exit_code == 2
    assert "There is no persistent resource lab-vision-tuning in projects/example-lab" in result.stderr
    assert "deploy the team's stack first" in result.stderr
