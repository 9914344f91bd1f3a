"""Runs on a real API server with the real controllers of Kueue and JobSet; nodes are objects only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.parts.jobs.runs.gke_cluster import TEAM, Cluster, Command, until

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

Submit = Callable[..., str]
Json = dict[str, Any]


def state(job: Command, run: str) -> str:
    result = job("status", run, "--format", "json")
    assert result.exit_code == 0, result.output
    return str(json.loads(result.stdout)[0]["state"])


def start(cluster: Cluster, job: Command, run: str) -> None:
    """Let the pods of an admitted run start, as its nodes would."""
    for pod in until(lambda: cluster.pods(run), lambda pods: len(pods) == 2 and all_bound(pods)):
        cluster.says(pod, "Running")
    until(lambda: state(job, run), lambda now: now == "running")


def all_bound(pods: list[dict[str, dict[str, object]]]) -> bool:
    return all(pod["spec"].get("nodeName") for pod in pods)


def test_a_run_is_submitted_starts_and_ends(submit: Submit, job: Command, cluster: Cluster) -> None:
    run = submit()

    assert re.fullmatch(r"train-[a-z0-9]{5}", run)
    start(cluster, job, run)
    (container,) = cluster.pods(run)[0]["spec"]["containers"]
    assert container["args"] == ["train", f"--master={run}-slice-0-0.{run}"]  # of the launcher
    for pod in cluster.pods(run):
        cluster.says(pod, "Succeeded")
    assert job("wait", run, "--timeout", "1").exit_code == 0
    assert state(job, run) == "succeeded"
    assert job("why", run).stdout == f"{run} has succeeded.\n"


def test_of_three_runs_that_exceed_the_share_the_last_waits_and_says_why(
    submit: Submit, job: Command, cluster: Cluster
) -> None:
    first = submit()
    second = submit()
    third = submit()
    start(cluster, job, first)
    start(cluster, job, second)

    until(lambda: job("why", third).stdout, lambda text: "insufficient unused quota" in text)
    explanation = job("why", third).stdout

    assert f"{third} waits for quota in queue {TEAM} of gpus." in explanation
    assert "It requests 16 nvidia.com/gpu of h100. Team vision uses 32 of its 32, and can use up to 40" in explanation
    assert first in explanation
    assert second in explanation
    assert "differs from the submitted" not in explanation + job("why", first).stdout
    listed = {row["name"]: row["state"] for row in json.loads(job("list", "--team", TEAM, "--format", "json").stdout)}
    assert listed == {first: "running", second: "running", third: "waiting"}

    assert job("cancel", first).stdout == f"{first} is being stopped.\n"
    start(cluster, job, third)


def fresh(pods: list[Json], attempt: int) -> bool:
    attempts = [pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in pods]
    return attempts == [str(attempt)] * 2


def test_a_run_that_is_interrupted_ten_times_still_ends(submit: Submit, job: Command, cluster: Cluster) -> None:
    run = submit()
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    for attempt in range(10):
        pods = until(partial(cluster.pods, run), partial(fresh, attempt=attempt))
        cluster.says(pods[0], "Failed", exit_code=143, conditions=(disrupted,))
    pods = until(partial(cluster.pods, run), partial(fresh, attempt=10))
    for pod in pods:
        cluster.says(pod, "Succeeded")

    assert job("wait", run, "--timeout", "1").exit_code == 0
    row = json.loads(job("status", run, "--format", "json").stdout)[0]
    assert (row["restarts"], row["interruptions"]) == (0, 10)


def test_a_deactivated_run_is_requeued_by_its_team(submit: Submit, job: Command, cluster: Cluster) -> None:
    run = submit()
    start(cluster, job, run)
    refused = job("requeue", run)
    (workload,) = cluster.items(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{TEAM}/workloads")
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{TEAM}/workloads/{workload['metadata']['name']}"
    cluster.patch(path, {"spec": {"active": False}})
    until(lambda: cluster.pods(run), lambda pods: not pods)

    explanation = job("why", run).stdout
    again = job("requeue", run)

    assert refused.exit_code == 2
    assert f"Kueue has not deactivated {run}" in " ".join(refused.stderr.split())
    assert f"training-platform job requeue {run} puts it back" in " ".join(explanation.split())
    assert (again.exit_code, again.stdout) == (0, f"{run} is in its queue again.\n"), again.output
    start(cluster, job, run)
