"""Runs that end after interruptions, or at their limit of time, by real Kubernetes, JobSet and Kueue.

``tests/containers/test_ends.py`` has the ends that a kubelet reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.kube.heads import JOBSETS, Heads
from tests.kube.jobs_on_nodes import case, lab, node
from tests.kube.queues import KUEUE, Json, planned, until
from training_platform.parts.jobs.gke.gke_job import on_gke
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.naming import as_run
from training_platform.resources.kueue import RUN_LABEL, configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

RUN = "train-a"


@pytest.fixture
def queues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heads]:
    settings = configuration(["on-demand"])
    with kueue_cluster(tmp_path_factory.mktemp("ends"), settings, KINDS, (*NEEDED, "jobset")) as cluster:
        yield Heads(cluster.client)


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


def end_attempt(queues: Heads, number: int) -> None:
    """Interrupt a pod of an attempt once both run; those of the attempt before are taken away, as a kubelet does."""

    def pods() -> list[Json]:
        queues.reap("vision")
        label = "jobset.sigs.k8s.io/restart-attempt"
        attempt = [pod for pod in queues.pods(RUN) if pod["metadata"]["labels"][label] == str(number)]
        return [pod for pod in attempt if pod["status"].get("phase") == "Running"]

    pod, _ = until(pods, lambda running: len(running) == 2)
    interrupted = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    status = {"phase": "Failed", "conditions": [*pod["status"]["conditions"], interrupted]}
    queues.change(f"/api/v1/namespaces/vision/pods/{pod['metadata']['name']}/status", {"status": status})


def wait_until_nothing_is_held(queues: Heads) -> None:
    """Wait until no GPU of the team is in use."""

    def held() -> int:
        queues.reap("vision")
        rows = queues.get(f"{KUEUE}/clusterqueues/vision")["status"]["flavorsReservation"]
        return sum(int(resource["total"]) for row in rows for resource in row["resources"])

    until(held, lambda gpus: gpus == 0)


def test_interruptions_that_count_end_a_run_too(queues: Heads) -> None:
    started(queues, retries=2, count_interruptions=True)

    for number in range(3):
        end_attempt(queues, number)

    wait_until_nothing_is_held(queues)
    status = queues.get(f"{JOBSETS}/{RUN}")["status"]
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (2, 2)
    assert any(row["type"] == "Failed" and row["reason"] == "ReachedMaxRestarts" for row in status["conditions"])


def test_a_run_ends_at_its_limit_over_its_restarts(queues: Heads) -> None:
    started(queues, gke={"max_run_hours": 1}, limit=12)

    end_attempt(queues, 0)

    until(lambda: queues.workload("vision", RUN)["spec"].get("active"), lambda active: active is False)
    wait_until_nothing_is_held(queues)
    assert queues.conditions("vision", RUN)["Evicted"]["reason"] == "DeactivatedDueToMaximumExecutionTimeExceeded"
