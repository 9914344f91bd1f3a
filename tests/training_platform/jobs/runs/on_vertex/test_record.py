"""The record that a submission leaves in its run's output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.training_platform.jobs.runs.vertex_cloud import JOB, Command
from training_platform.clients.google_services import CloudStorage

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")


def test_what_was_submitted_is_kept_beside_what_the_run_writes(
    job: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, bytes] = {}
    monkeypatch.setattr(CloudStorage, "put", lambda _, uri, content, __: written.update({uri: content}))

    run = job("submit", str(root / "jobs" / "vision" / "train.yaml")).stdout.strip()

    ((uri, content),) = written.items()
    record = json.loads(content)
    assert uri == f"gs://example-lab-lab-vision-checkpoints/{run}/run.json"
    assert (record["runs"], record["file"], record["place"]) == ([run], "jobs/vision/train.yaml", "us-central1")
    assert record["bodies"][0]["displayName"] == run


def test_a_record_that_cannot_be_written_stops_no_run(job: Command, root: Path) -> None:
    result = job("submit", str(root / "jobs" / "vision" / "train.yaml"))

    assert result.exit_code == 0
    assert "# run.json is not in the run's output: Cloud Storage does not take gs://" in result.stderr
    assert job("status", result.stdout.strip()).exit_code == 0


def test_a_job_without_output_has_no_record(job: Command, root: Path) -> None:
    path = root / "jobs" / "vision" / "train.yaml"
    path.write_text(JOB.replace("output: checkpoints\n", ""))

    assert "run.json" not in job("submit", str(path)).stderr
