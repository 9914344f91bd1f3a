"""Runs on a real API server with the real controllers of Kueue and JobSet; nodes are objects only."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.parts.jobs.runs.gke_cluster import TEAM, Cluster, Command, until
from tests.support.team_queues import cluster_queue
from training_platform.config.expansion import Flavor, flavors
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.queues import Share
from training_platform.resources import kueue
from training_platform.resources.kueue import CONFIG, MAX_RUN_ANNOTATION, admission_check, provisioning_request_config

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

Submit = Callable[..., str]


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


WHOLE = """\
environment: lab
image: registry.example.com/train:1
command: [python3, train.py]
args: ["--master={run}-slice-0-0.{run}"]
secrets: {TOKEN: token}
mounts: [{name: data, source: {bucket: checkpoints}, caches: true, file_cache_gib: 10}]
cpu: 100
memory_gib: 900
shared_memory_gib: 100
retries: 1
experiment: vit
notify: projects/example-lab/topics/runs
sweep: {parameters: {lr: {values: [0.1, 0.01]}}, metric: loss}
gke: {cluster: gpus, flavor: h100, nodes: 2, grace_seconds: 300}
"""


def test_the_controllers_admit_each_point_of_a_grid_with_every_field(
    submit: Submit, job: Command, cluster: Cluster, root: Path
) -> None:
    file = root / "jobs" / TEAM / "whole.yaml"
    file.write_text(WHOLE)

    first, second = submit(file="whole.yaml").split()

    assert (first[-2:], second[-2:]) == ("-0", "-1")
    for run, rate in ((first, "0.1"), (second, "0.01")):
        start(cluster, job, run)
        pod, *_ = cluster.pods(run)
        (container,) = pod["spec"]["containers"]
        assert container["args"][-2:] == [f"--master={run}-slice-0-0.{run}", f"--lr={rate}"]
        assert pod["metadata"]["annotations"]["jobset.sigs.k8s.io/coordinator"] == f"{run}-slice-0-0.{run}"
        assert pod["spec"]["terminationGracePeriodSeconds"] == 300
        assert {"mount-data", "shared-memory"} <= {volume["name"] for volume in pod["spec"]["volumes"]}
    file.unlink()


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


def test_a_name_that_is_taken_is_refused_and_changes_nothing(submit: Submit, job: Command, root: Path) -> None:
    run = submit("--run", "train-again")

    again = job("submit", str(root / "jobs" / TEAM / "train.yaml"), "--run", run)

    assert again.exit_code == 2
    assert "Cluster gpus has a run train-again already" in again.stderr
    assert again.stdout == ""


def test_a_run_that_fails_says_which_pod_ended_how(submit: Submit, job: Command, cluster: Cluster) -> None:
    run = submit()
    for attempt in range(1 + 3):
        pods = until(partial(cluster.pods, run), partial(fresh, attempt=attempt))
        cluster.says(pods[0], "Running")
        cluster.says(pods[0], "Failed", exit_code=3)

    assert job("wait", run, "--timeout", "1").exit_code == 1
    explanation = job("why", run).stdout
    assert f"{run} has failed after 3 restarts" in explanation


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


def test_a_missing_queue_is_reported_before_anything_is_submitted(cluster: Cluster, job: Command, root: Path) -> None:
    queue = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{TEAM}/localqueues/{TEAM}"
    body = cluster.client.get(queue).json()
    cluster.client.delete(queue)
    try:
        result = job("submit", str(root / "jobs" / TEAM / "train.yaml"))
    finally:
        again = {key: body[key] for key in ("apiVersion", "kind", "spec")}
        cluster.post(queue.rpartition("/")[0], {**again, "metadata": {"name": TEAM}})

    assert result.exit_code == 2
    assert "Cluster gpus has no LocalQueue vision in namespace vision" in result.stderr
    assert cluster.items(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets") == []


Json = dict[str, Any]
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
REQUESTS = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{TEAM}/provisioningrequests"
JOBS = f"/apis/batch/v1/namespaces/{TEAM}/jobs"
RUN_TIME = "maxRunDurationSeconds"
QUEUE = "queued"
WATCHED = 6.0  # seconds
POOL = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "capacity": "queued-provisioning", "max_nodes": 4}
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/14", "services": "10.10.16.0/20"}


def flavor() -> Flavor:
    section = {"location": "us-central1", "subnet": RANGES, "node_pools": {"h100": POOL | {"max_run_hours": 48}}}
    (queued_flavor,) = flavors("gpus", ClusterSpec.model_validate(section)).values()
    return queued_flavor


@pytest.fixture
def queue(cluster: Cluster) -> Iterator[Callable[[Json], None]]:
    """Return a function that creates a queue of the queued flavor with the given parameters in its configuration."""
    queued_flavor = flavor()
    share = Share.model_validate({"nominal_quota": 32})
    queue_spec = cluster_queue(TEAM, {queued_flavor.name: share}, {queued_flavor.name: queued_flavor})
    created: list[str] = []

    def make(kind: str, plural: str, name: str, spec: Json, namespace: str = "") -> None:
        path = f"{KUEUE}/{namespace}{plural}"
        cluster.post(path, {"apiVersion": kueue.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
        created.append(f"{path}/{name}")

    def with_parameters(parameters: Json) -> None:
        config = provisioning_request_config(queued_flavor) | ({"parameters": parameters} if parameters else {})
        make(CONFIG, "provisioningrequestconfigs", queued_flavor.name, config)
        make("AdmissionCheck", "admissionchecks", queued_flavor.name, admission_check(queued_flavor))
        make("ResourceFlavor", "resourceflavors", queued_flavor.name, kueue.resource_flavor(queued_flavor))
        make("ClusterQueue", "clusterqueues", QUEUE, queue_spec | {"cohortName": QUEUE})
        make("LocalQueue", "localqueues", QUEUE, kueue.local_queue(QUEUE), f"namespaces/{TEAM}/")
        until(lambda: cluster.client.get(f"{KUEUE}/clusterqueues/{QUEUE}").json(), _active)

    yield with_parameters
    cluster.client.delete(JOBS, params={"propagationPolicy": "Background"})
    until(lambda: cluster.items(JOBS), lambda objects: not objects)
    for path in reversed(created):
        cluster.client.delete(path)
    until(lambda: [path for path in created if cluster.client.get(path).is_success], lambda objects: not objects)


def _active(read: Json) -> bool:
    conditions = read.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Active" and condition["status"] == "True" for condition in conditions)


def job(seconds: int) -> Json:
    resources = {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}
    container = {"name": "train", "image": "registry.example.com/train:1", "resources": resources}
    return {
        "metadata": {
            "generateName": "queued-",
            "labels": {"kueue.x-k8s.io/queue-name": QUEUE},
            "annotations": {MAX_RUN_ANNOTATION: str(seconds)},
        },
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def requests_seen(cluster: Cluster) -> dict[str, str]:
    """Watch the provisioning requests for a while, and return the run time of each by its id."""
    until(lambda: cluster.items(REQUESTS), bool)
    seen: dict[str, str] = {}
    end = time.monotonic() + WATCHED
    while time.monotonic() < end:
        for request in cluster.items(REQUESTS):
            seen[request["metadata"]["uid"]] = request["spec"]["parameters"][RUN_TIME]
        time.sleep(0.05)
    return seen


def test_a_shorter_run_than_the_pool_s_keeps_its_one_request(cluster: Cluster, queue: Callable[[Json], None]) -> None:
    queue({})

    cluster.post(JOBS, job(3600))

    assert list(requests_seen(cluster).values()) == ["3600"]


def test_a_run_time_in_the_configuration_too_makes_requests_without_end(
    cluster: Cluster, queue: Callable[[Json], None]
) -> None:
    """Shows why ours must not: Kueue deletes a request that differs from the configuration, and creates it again."""
    queue({RUN_TIME: str(48 * 3600)})

    cluster.post(JOBS, job(3600))

    assert len(requests_seen(cluster)) > 3
