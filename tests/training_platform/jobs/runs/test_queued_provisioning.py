"""A queued job and its ProvisioningRequest under the real Kueue: how long it runs is said in one place alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.modules.kueue.conftest import cluster_queue
from tests.training_platform.jobs.runs.conftest import TEAM, Cluster, until
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.queues import Share
from training_platform.config.pools import Flavor, flavors
from training_platform.resources.kueue import objects
from training_platform.resources.kueue.provisioning import (
    CONFIG,
    MAX_RUN_ANNOTATION,
    admission_check,
    provisioning_request_config,
)

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

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
    (found,) = flavors("gpus", ClusterSpec.model_validate(section)).values()
    return found


@pytest.fixture
def queue(cluster: Cluster) -> Iterator[Callable[[Json], None]]:
    """Return a function that makes a queue of the queued flavor, whose configuration has the parameters given."""
    found = flavor()
    share = Share.model_validate({"nominal_quota": 32})
    queue_spec = cluster_queue(TEAM, {found.name: share}, {found.name: found})
    made: list[str] = []

    def make(kind: str, plural: str, name: str, spec: Json, namespace: str = "") -> None:
        path = f"{KUEUE}/{namespace}{plural}"
        cluster.post(path, {"apiVersion": objects.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
        made.append(f"{path}/{name}")

    def with_parameters(parameters: Json) -> None:
        config = provisioning_request_config(found) | ({"parameters": parameters} if parameters else {})
        make(CONFIG, "provisioningrequestconfigs", found.name, config)
        make("AdmissionCheck", "admissionchecks", found.name, admission_check(found))
        make("ResourceFlavor", "resourceflavors", found.name, objects.resource_flavor(found))
        make("ClusterQueue", "clusterqueues", QUEUE, queue_spec | {"cohortName": QUEUE})
        make("LocalQueue", "localqueues", QUEUE, objects.local_queue(QUEUE), f"namespaces/{TEAM}/")
        until(lambda: cluster.client.get(f"{KUEUE}/clusterqueues/{QUEUE}").json(), _active)

    yield with_parameters
    cluster.client.delete(JOBS, params={"propagationPolicy": "Background"})
    until(lambda: cluster.items(JOBS), lambda left: not left)
    for path in reversed(made):
        cluster.client.delete(path)
    until(lambda: [path for path in made if cluster.client.get(path).is_success], lambda left: not left)


def _active(read: Json) -> bool:
    conditions = read.get("status", {}).get("conditions", ())
    return any(each["type"] == "Active" and each["status"] == "True" for each in conditions)


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
    """Watch the requests for a while; returns each one that there was by its id, with the run time that it asks for."""
    until(lambda: cluster.items(REQUESTS), bool)
    seen: dict[str, str] = {}
    end = time.monotonic() + WATCHED
    while time.monotonic() < end:
        for each in cluster.items(REQUESTS):
            seen[each["metadata"]["uid"]] = each["spec"]["parameters"][RUN_TIME]
        time.sleep(0.05)
    return seen


def test_a_shorter_run_than_the_pool_s_keeps_its_one_request(cluster: Cluster, queue: Callable[[Json], None]) -> None:
    queue({})

    cluster.post(JOBS, job(3600))

    assert list(requests_seen(cluster).values()) == ["3600"]


def test_a_run_time_in_the_configuration_too_makes_requests_without_end(
    cluster: Cluster, queue: Callable[[Json], None]
) -> None:
    """What ours must not write: Kueue deletes the request that differs from the configuration, and makes it again."""
    queue({RUN_TIME: str(48 * 3600)})

    cluster.post(JOBS, job(3600))

    assert len(requests_seen(cluster)) > 3
