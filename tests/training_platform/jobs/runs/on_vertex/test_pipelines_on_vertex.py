"""Runs in training pipelines: what they wait for, and what they wrote, is with the job that works for the pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training_platform.jobs.runs.on_vertex.test_faults_on_vertex import ON_DEMAND, STOCKOUT, SWEEP, play
from tests.training_platform.jobs.runs.on_vertex.test_kept_logs import replica, write
from tests.training_platform.jobs.runs.vertex_cloud import JOB, Cloud, Command, submit
from training_platform.clients.vertex_ai import VertexJobs

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")

MODEL = "pipeline: {model: {name: a, image: 'registry.example.com/serve:1'}}"
PIPELINE = JOB.replace(ON_DEMAND, f"{ON_DEMAND}, {MODEL}")


@pytest.fixture
def run(job: Command, root: Path, request: pytest.FixtureRequest) -> str:
    """The run of a pipeline; parametrized, it has the lines given before those of its file."""
    (root / "jobs" / "vision" / "train.yaml").write_text(getattr(request, "param", "") + PIPELINE)
    return submit(job, root)


def row(job: Command, run: str) -> dict[str, Any]:
    (found,) = json.loads(job("status", run, "--format", "json").stdout)
    return dict(found)


def bodies(vertex: Cloud, kind: str) -> list[dict[str, Any]]:
    return [each.body for each in vertex.cloud.store.all() if each.name.split("/")[-2] == kind]


def working(vertex: Cloud, run: str) -> str:
    """Return the id of the job that the only pipeline names."""
    vertex.cloud.settle()
    (pipeline,) = bodies(vertex, "trainingPipelines")
    assert pipeline["displayName"] == run
    ((field, name),) = pipeline["trainingTaskMetadata"].items()
    assert field in ("backingCustomJob", "backingHyperparameterTuningJob")
    return str(name).rpartition("/")[2]


@pytest.mark.parametrize("labelled", [True, False])
def test_a_pipeline_whose_job_waits_is_waiting_though_it_says_that_it_runs(
    job: Command, vertex: Cloud, run: str, labelled: bool
) -> None:
    if not labelled:
        for each in bodies(vertex, "customJobs"):
            del each["labels"]

    assert row(job, run)["state"] == "waiting"
    assert bodies(vertex, "trainingPipelines")[0]["state"] == "PIPELINE_STATE_RUNNING"
    assert "By flex-start it waits for a3-highgpu-8g, for 21600s at most" in job("why", run).stdout
    vertex.now += 61
    assert row(job, run)["state"] == "running"
    assert row(job, run)["started"] == bodies(vertex, "customJobs")[0]["startTime"]


def test_the_job_of_a_pipeline_is_no_run_of_its_own(job: Command, run: str) -> None:
    job("status", run)  # the pipeline names its job from its second answer on

    listed = job("list", "--team", "vision", "--kubeconfig", "/dev/null", "--format", "json")

    assert [each["name"] for each in json.loads(listed.stdout)] == [run]
    assert json.loads(listed.stdout)[0]["state"] == "waiting"


def test_lines_stand_under_the_id_of_the_job_that_works_for_the_pipeline(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61
    own = row(job, run)["identity"].rpartition("/")[2]
    write(vertex, "a", replica(working(vertex, run), "workerpool0-0"), textPayload="step 1")

    assert job("logs", run).stdout.splitlines() == [
        "service | Waiting for job to be provisioned.",
        "service | Job is running.",
        "workerpool0-0 | step 1",
    ]
    assert own != working(vertex, run)


@pytest.mark.parametrize("run", [SWEEP], indirect=True)
def test_lines_of_trials_stand_after_their_number(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61
    tuning = working(vertex, run)
    (body,) = bodies(vertex, "hyperparameterTuningJobs")
    place = body["name"].replace(f"hyperparameterTuningJobs/{tuning}", "customJobs")
    body["trials"] = [{"id": str(number), "customJob": f"{place}/100{number}"} for number in (1, 2)]
    write(vertex, "a", replica("1001", "workerpool0-0"), textPayload="by its job")
    vertex.now += 1
    label = {"ml.googleapis.com/trial_id": "2"}
    write(vertex, "a", replica(tuning, "workerpool0-0"), textPayload="by its label", labels=label)

    assert job("logs", run).stdout.splitlines()[2:] == [
        "trial-1 workerpool0-0 | by its job",
        "trial-2 workerpool0-0 | by its label",
    ]


def test_a_pipeline_whose_job_found_no_vms_says_so(job: Command, vertex: Cloud, root: Path) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(PIPELINE)
    play(vertex, STOCKOUT)
    run = submit(job, root)
    vertex.now += 6 * 3600 + 1

    assert row(job, run)["state"] == "failed"
    assert f"{run} waited 21600s for a3-highgpu-8g, and us-central1 did not have it" in job("why", run).stdout


def test_a_cancelled_pipeline_stops_the_job_that_works_for_it(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61

    assert job("cancel", run).exit_code == 0

    assert row(job, run)["state"] == "cancelled"
    assert bodies(vertex, "customJobs")[0]["state"] == "JOB_STATE_CANCELLED"
    assert job("why", run).stdout.startswith(f"{run} was cancelled at ")


def test_a_pipeline_whose_job_has_ended_goes_on_and_says_so(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61 + 601
    working(vertex, run)
    (pipeline,) = bodies(vertex, "trainingPipelines")
    assert pipeline["modelToUpload"]["name"].startswith(pipeline["name"].partition("/trainingPipelines/")[0])
    pipeline["state"] = "PIPELINE_STATE_RUNNING"  # as it is while the model is uploaded

    assert row(job, run)["state"] == "running"
    assert "Its training has ended, and its pipeline still runs" in job("why", run).stdout


def test_a_pipeline_whose_job_somebody_deleted_is_shown_by_itself(job: Command, vertex: Cloud, run: str) -> None:
    vertex.now += 61 + 601
    name = working(vertex, run)
    vertex.cloud.store.delete(next(each.name for each in vertex.cloud.store.all() if each.name.endswith(name)))

    assert row(job, run)["state"] == "succeeded"
    assert job("why", run).stdout == f"{run} has ended well.\n"
    assert job("logs", run).stdout == ""


def test_a_list_asks_once_for_each_kind(job: Command, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    send = VertexJobs.send

    def counted(self: VertexJobs, request: Any, retries: int = 2) -> Any:
        asked.append(request.methodId)
        return send(self, request, retries)

    monkeypatch.setattr(VertexJobs, "send", counted)
    job("list", "--team", "vision", "--kubeconfig", "/dev/null")

    kinds = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines")
    assert asked == [f"aiplatform.projects.locations.{kind}.list" for kind in kinds]
