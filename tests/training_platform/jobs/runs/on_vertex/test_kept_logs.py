"""What Cloud Logging keeps of runs, asked of the local cloud over HTTP by the client that asks Google's service."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import Result

from tests.training_platform.jobs.runs.vertex_cloud import PROJECT, Cloud, Command, submit
from training_platform.clients.google_services import CloudLogging
from training_platform.jobs.runs import logs
from training_platform.jobs.runs.state import Run

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")

GKE = """\
environment: lab
image: registry.example.com/train:1
gke: {cluster: gpus, flavor: h100, nodes: 2}
"""


def write(cloud: Cloud, log: str, resource: dict[str, Any], **entry: Any) -> None:
    """Write an entry as a program's VM would."""
    body = {"logName": f"projects/{PROJECT}/logs/{log}", "resource": resource, "entries": [entry]}
    assert cloud.cloud.handle("logging", "POST", "v2/entries:write", [], body) == (200, {})


def replica(identity: str, task: str) -> dict[str, Any]:
    return {"type": "ml_job", "labels": {"job_id": identity, "task_name": task, "project_id": PROJECT}}


def identity(job: Command, run: str) -> str:
    (row,) = json.loads(job("status", run, "--format", "json").stdout)
    return str(row["identity"]).rpartition("/")[2]


def test_lines_of_vertex_ai_come_in_their_order_each_after_its_replica(job: Command, vertex: Cloud, root: Path) -> None:
    run, other = submit(job, root), submit(job, root)
    vertex.now += 61
    own = identity(job, run)
    write(vertex, "workerpool0-0", replica(own, "workerpool0-0"), jsonPayload={"message": "step 1\n"})
    vertex.now += 1
    write(vertex, "workerpool0-0", replica(identity(job, other), "workerpool0-0"), textPayload="another's")
    write(vertex, "workerpool1-0", replica(own, "workerpool1-0"), textPayload="step 2")

    result = job("logs", run)

    assert result.stdout.splitlines() == [
        "service | Waiting for job to be provisioned.",
        "service | Job is running.",
        "workerpool0-0 | step 1",
        "workerpool1-0 | step 2",
    ]
    last = json.loads(job("logs", run, "--format", "json").stdout.splitlines()[-1])
    assert last == {"source": "workerpool1-0", "text": "step 2"}


def test_more_lines_than_a_page_come_once_each(job: Command, vertex: Cloud, root: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("training_platform.clients.google_services._PAGE", 7)
    run = submit(job, root)
    own = identity(job, run)
    for number in range(20):
        vertex.now += 1
        write(vertex, "a", replica(own, "workerpool0-0"), textPayload=f"line {number}")

    lines = [line for line in job("logs", run).stdout.splitlines() if line.startswith("workerpool0-0")]

    assert lines == [f"workerpool0-0 | line {number}" for number in range(20)]


def test_following_goes_on_until_the_run_has_ended(job: Command, vertex: Cloud, root: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(logs, "_POLL_SECONDS", 0.05)
    run = submit(job, root)
    own = identity(job, run)
    results: list[Result] = []
    follower = threading.Thread(target=lambda: results.append(job("logs", run, "--follow")))
    follower.start()
    for number in range(3):
        vertex.now += 100
        write(vertex, "a", replica(own, "workerpool0-0"), textPayload=f"line {number}")
    vertex.now += 700
    follower.join(timeout=30)

    lines = results[0].stdout.splitlines()
    assert [line for line in lines if "line" in line] == [f"workerpool0-0 | line {number}" for number in range(3)]
    assert lines[-1] == "service | Job has ended."
    assert len(lines) == len(set(lines))


def test_a_line_that_two_polls_see_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_POLL_SECONDS", 0)
    first, second = (
        {"insertId": str(number), "timestamp": "2026-11-22T10:00:00Z", "textPayload": f"line {number}"}
        for number in (1, 2)
    )
    polls, ends = iter([[first], [first, second], [second]]), iter([False, False, True])
    asked: list[str] = []

    class Log:
        def entries(self, query: str) -> list[dict[str, str]]:
            asked.append(query)
            return next(polls)

    run = Run(
        name="train-bcdfg", job="train", team="vision", target="vertex", place="us-central1",
        identity="projects/1/locations/us-central1/customJobs/7", state="running", created="2026-11-22T09:00:00Z",
    )  # fmt: skip
    ids = iter([{"7": ""}, {"7": ""}, {"7": "", "8": "1"}])
    log = cast("CloudLogging", Log())
    lines = list(logs.vertex_lines(log, run, lambda: next(ids), ended=lambda: next(ends)))

    assert [line[1] for line in lines] == ["line 1", "line 2"]
    assert 'timestamp>="2026-11-22T09:00:00Z"' in asked[0]
    assert 'timestamp>="2026-11-22T10:00:00Z"' in asked[1]
    assert asked[2] == (  # a trial that began may have older lines than the last one
        'resource.type="ml_job" AND resource.labels.job_id=("7" OR "8") AND timestamp>="2026-11-22T09:00:00Z"'
    )


@pytest.fixture
def empty_cluster(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job on GKE whose cluster answers that it has nothing."""
    (root / "jobs" / "vision" / "train.yaml").write_text(GKE)

    class Empty:
        def get(self, *_: Any) -> None:
            return None

    monkeypatch.setattr("training_platform.clients.kubernetes_api.connect", lambda *_, **__: Empty())


CONTAINER = {"cluster_name": "lab-gpus", "namespace_name": "vision", "container_name": "training"}


@pytest.mark.usefixtures("empty_cluster")
def test_a_run_whose_objects_are_gone_still_says_how_it_ended_and_what_it_wrote(job: Command, vertex: Cloud) -> None:
    for pod, text in (("train-bcdfg-slice-0-0-x", "step 1"), ("train-bcdfh-slice-0-0-x", "another run's")):
        labels = {**CONTAINER, "pod_name": pod}
        write(vertex, "stdout", {"type": "k8s_container", "labels": labels}, textPayload=text)
    about = {"kind": "JobSet", "namespace": "vision", "name": "train-bcdfg"}
    event = {"reason": "ReachedMaxRestarts", "message": "jobset failed due to reaching max", "involvedObject": about}
    cluster = {"type": "k8s_cluster", "labels": {"cluster_name": "lab-gpus"}}
    write(vertex, "events", cluster, jsonPayload={"reason": "Restarting", "involvedObject": about})
    write(vertex, "events", cluster, jsonPayload=event)

    (row,) = json.loads(job("status", "train-bcdfg", "--format", "json").stdout)

    assert (row["state"], row["gone"], row["reason"]) == ("failed", True, "jobset failed due to reaching max")
    assert job("logs", "train-bcdfg").stdout == "slice-0-0-x | step 1\n"
    assert job("wait", "train-bcdfg").exit_code == 1
    assert "train-bcdfg failed, and its objects are gone" in job("why", "train-bcdfg").stdout
    assert job("cancel", "train-bcdfg").stdout == "train-bcdfg has ended already: failed.\n"


@pytest.mark.usefixtures("empty_cluster")
def test_a_run_that_nobody_has_seen_is_nowhere(job: Command) -> None:
    result = job("status", "train-bcdfg")

    assert result.exit_code == 2
    assert result.stderr.startswith("training-platform: There is no run train-bcdfg in gke gpus and gke tpus;")
