"""Runs that end: by exit codes, by a leak of memory, at their limit of time; real Kubernetes, JobSet and Kueue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.bodies import QUEUED, job
from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.kube.heads import JOBSETS, Heads
from tests.kube.jobs_on_nodes import case, lab, left, node
from tests.kube.queues import KUEUE, Json, planned, until
from tests.kube.server import Server
from training_platform.catalog import IMAGES
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.naming import as_run
from training_platform.parts.jobs.runs.logs import RESTARTS
from training_platform.resources.admission import MAX_RUN_SECONDS, queued_jobs
from training_platform.resources.admission_policy import Bounds
from training_platform.resources.kueue import RUN_LABEL, configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

RUN = "train-a"
FAILED, INTERRUPTED = RESTARTS
OUT_OF_MEMORY = 137
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heads]:
    settings = configuration(["on-demand"])
    with kueue_cluster(tmp_path_factory.mktemp("ends"), settings, KINDS, (*NEEDED, "jobset")) as cluster:
        yield Heads(cluster.client)


@pytest.fixture
def queues(cluster: Heads) -> Iterator[Heads]:
    yield cluster
    cluster.delete(JOBSETS)
    until(lambda: left(cluster, "vision"), lambda pods: not pods)
    cluster.clear()


def started(queues: Heads, *, limit: int = 0, **fields: Any) -> None:
    """Run a job of two VMs, whose file has ``fields`` too; ``limit`` are seconds instead of the hours of the file."""
    machine, target = case("a2-highgpu-1g", {"nodes": 2, **fields.pop("gke", {})}, max_nodes=2)
    workspace, job = lab(machine, target, **fields)
    queues.deploy_all(planned(workspace))
    for index in range(2):
        node(queues, on_gke(job).flavor, index, "pool-0")
    body = jobset(as_run(job, RUN))
    if limit:
        assert body["metadata"]["labels"][RUN_LABEL] == "3600"
        body["metadata"]["labels"][RUN_LABEL] = str(limit)
    queues.create(JOBSETS, body)
    attempt(queues, 0)


def attempt(queues: Heads, number: int) -> list[Json]:
    """Return the pods of an attempt once they run; those of the attempt before are taken away, as a kubelet does."""

    def pods() -> list[Json]:
        queues.reap("vision")
        pods_of_run = queues.pods(RUN)
        label = "jobset.sigs.k8s.io/restart-attempt"
        return [
            pod for pod in pods_of_run
            if pod["metadata"]["labels"][label] == str(number) and pod["status"].get("phase") == "Running"
        ]  # fmt: skip

    return until(pods, lambda running: len(running) == 2)


def end(queues: Heads, pod: Json, code: int, *conditions: Json) -> None:
    """Say of a pod that its program ended, as a kubelet does."""
    ended = {"exitCode": code, "reason": "OOMKilled" if code == OUT_OF_MEMORY else "Error", "message": "the last line"}
    containers = [{"name": "training", "image": "a", "imageID": "", "ready": False, "restartCount": 0}]
    status = {
        "phase": "Failed",
        "containerStatuses": [{**container, "state": {"terminated": ended}} for container in containers],
    }
    path = f"/api/v1/namespaces/vision/pods/{pod['metadata']['name']}/status"
    queues.change(path, {"status": {**status, "conditions": [*pod["status"]["conditions"], *conditions]}})


def restarts(queues: Heads) -> tuple[int, int]:
    """Return how often the run was started again, and how many of these counted."""
    status = queues.get(f"{JOBSETS}/{RUN}")["status"]
    return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)


def failed(queues: Heads) -> Json:
    """Return the condition by which the run has failed, when it has."""

    def condition() -> list[Json]:
        queues.reap("vision")
        conditions = queues.get(f"{JOBSETS}/{RUN}")["status"].get("conditions", ())
        return [row for row in conditions if row["type"] == "Failed" and row["status"] == "True"]

    (row,) = until(condition, bool)
    return row


def restart_events(queues: Heads) -> dict[str, int]:
    """Return the number of JobSet's events about restarts of the run, by reason."""
    every = queues.get("/api/v1/namespaces/vision/events")["items"]
    uid = queues.get(f"{JOBSETS}/{RUN}")["metadata"]["uid"]
    return dict(Counter(
        event["reason"] for event in every
        if event["involvedObject"].get("uid") == uid and event["reason"] in RESTARTS and not event.get("series")
    ))  # fmt: skip


def held(queues: Heads) -> int:
    """Return the GPUs of the team that are in use."""
    rows = queues.get(f"{KUEUE}/clusterqueues/vision")["status"]["flavorsReservation"]
    return sum(int(resource["total"]) for row in rows for resource in row["resources"])


def test_a_leak_of_memory_ends_and_gives_its_machines_back(queues: Heads) -> None:
    started(queues, retries=2)

    for number in range(3):
        end(queues, attempt(queues, number)[0], OUT_OF_MEMORY)

    assert failed(queues)["reason"] == "ReachedMaxRestarts"
    assert restarts(queues) == (2, 2)
    until(lambda: restart_events(queues), lambda events: events == {FAILED: 2})
    until(lambda: held(queues), lambda gpus: gpus == 0)


def test_interruptions_are_not_counted_also_where_exit_codes_are(queues: Heads) -> None:
    started(queues, retries=0, retry_on=[75])

    for number in range(3):
        end(queues, attempt(queues, number)[0], OUT_OF_MEMORY, PREEMPTED)

    assert len(attempt(queues, 3)) == 2
    assert restarts(queues) == (3, 0)
    until(lambda: restart_events(queues), lambda events: events == {INTERRUPTED: 3})


def test_interruptions_that_count_end_a_run_too(queues: Heads) -> None:
    started(queues, retries=2, count_interruptions=True)

    for number in range(3):
        end(queues, attempt(queues, number)[0], OUT_OF_MEMORY, PREEMPTED)

    assert failed(queues)["reason"] == "ReachedMaxRestarts"
    assert restarts(queues) == (2, 2)
    until(lambda: held(queues), lambda gpus: gpus == 0)


def test_an_exit_code_that_is_retried_counts_and_any_other_ends_the_run(queues: Heads) -> None:
    started(queues, retries=5, retry_on=[75])

    end(queues, attempt(queues, 0)[1], 75)
    end(queues, attempt(queues, 1)[1], 3)

    assert failed(queues)["reason"] == "FailJobSetFailurePolicyAction"
    assert restarts(queues) == (1, 1)
    until(lambda: held(queues), lambda gpus: gpus == 0)


@pytest.mark.parametrize("code", [126, 127, 128])
def test_a_program_that_cannot_start_ends_the_run_at_once(queues: Heads, code: int) -> None:
    started(queues, retries=5)

    end(queues, attempt(queues, 0)[0], code)

    assert failed(queues)["reason"] == "FailJobSetFailurePolicyAction"
    assert restarts(queues) == (0, 0)


def test_a_run_ends_at_its_limit_over_its_restarts(queues: Heads) -> None:
    started(queues, gke={"max_run_hours": 1}, limit=12)

    end(queues, attempt(queues, 0)[0], 1)
    attempt(queues, 1)

    def away() -> list[Json]:
        queues.reap("vision")
        return queues.pods(RUN)

    until(lambda: queues.workload("vision", RUN)["spec"].get("active"), lambda active: active is False)
    until(away, lambda pods: not pods)
    until(lambda: held(queues), lambda gpus: gpus == 0)
    assert queues.conditions("vision", RUN)["Evicted"]["reason"] == "DeactivatedDueToMaximumExecutionTimeExceeded"


LIMITS = {"3600": True, "60": True, "3601": False, "0": False, "1h": False, "9999999999": False, "": False}


def test_a_job_without_the_teams_limit_of_time_is_refused(queues: Heads) -> None:
    queues.deploy({"vision": {"shares": {}}})
    queues.change("/api/v1/namespaces/vision", {"metadata": {"annotations": {MAX_RUN_SECONDS: "3600"}}})
    server = Server(queues._client)
    policy = queued_jobs(Bounds(), IMAGES)
    parts = {"ValidatingAdmissionPolicy": policy.spec, "ValidatingAdmissionPolicyBinding": policy.binding}
    for kind, spec in parts.items():
        assert server.ask(kind, {"metadata": {"name": policy.name}, "spec": spec}, keep=True) == ""

    def refusal(seconds: str) -> str:
        labels = {**QUEUED, RUN_LABEL: seconds} if seconds else QUEUED
        return server.ask("Job", job(labels))

    until(lambda: refusal(""), lambda message: "ValidatingAdmissionPolicy" in message)
    refusals = {seconds: refusal(seconds) for seconds in LIMITS}

    assert {seconds: message == "" for seconds, message in refusals.items()} == LIMITS
    assert all(f"{RUN_LABEL} is missing, or above" in message for message in refusals.values() if message)
    for kind in parts:
        server.delete(kind, {"metadata": {"name": policy.name}})
    queues.change("/api/v1/namespaces/vision", {"metadata": {"annotations": {MAX_RUN_SECONDS: None}}})
