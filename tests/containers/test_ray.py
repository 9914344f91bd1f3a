"""A RayJob of a head and one worker, as a member of the team submits it, on two real nodes of the sample cluster.

``TRAINING_PLATFORM_RAY_IMAGE`` names an archive of an image that has ``ray[default]`` and its commands on PATH.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.containers.names import names
from tests.containers.nodes import ADDRESS, IMAGE, NODE, bridge, node, on_this_machine, outfit
from tests.kube.clusters import NEEDED
from tests.kube.deployed import GPU, GPU_TAINT, without_nodes
from tests.kube.operators import OPERATORS, PODS, RAYJOBS, Operated, about
from tests.kube.queues import Json, until

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(900)]

DEFINITIONS = ("TRAINING_PLATFORM_KUBERAY_DEFINITIONS", "TRAINING_PLATFORM_TRAINER_DEFINITIONS")
HEAD = "other"
KUBERAY = "TRAINING_PLATFORM_KUBERAY"
PROGRAM = """\
import ray
ray.init()
@ray.remote(num_gpus=8)
def node(): return ray.get_runtime_context().get_node_id()
assert ray.get(node.remote()) != ray.get_runtime_context().get_node_id()
"""
SECONDS = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    archive = os.environ.get("TRAINING_PLATFORM_RAY_IMAGE")
    if archive is None:
        pytest.skip("no archive of an image with Ray is named by TRAINING_PLATFORM_RAY_IMAGE")
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    folder = tmp_path_factory.mktemp("operators")
    (folder / "share").mkdir()
    needed = (*NEEDED, "jobset", "kuberay", "trainer")
    change = on_this_machine(folder)
    with ExitStack() as stack:
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setenv(KUBERAY, str(operator_with_names(folder)))
        dev = without_nodes(folder / "dev", OPERATORS, needed, DEFINITIONS, kubelets=True, change=change)
        lab = stack.enter_context(dev)
        stack.enter_context(bridge())
        stack.enter_context(names(lab.kueue.client))
        server = lab.kueue.server
        for name, labels, devices in ((NODE, lab.node_labels(), {GPU: 16}), (HEAD, {}, {})):
            stack.enter_context(node(server, name, Path(archive), programs=programs, logs=folder / name))
            outfit(server, name, labels, devices)
        server.merge(f"/api/v1/nodes/{NODE}", {"spec": {"taints": [GPU_TAINT]}})
        yield Operated(lab.kueue.client)


def operator_with_names(folder: Path) -> Path:
    """Write a program that runs KubeRay with the name server of the pods, since it calls heads by their names."""
    if KUBERAY not in os.environ:
        pytest.skip(f"not named by settings: {KUBERAY}")
    resolver = folder / "resolv.conf"
    resolver.write_text(f"nameserver {ADDRESS}\n")
    script = folder / "kuberay"
    own_names = f"mount --bind {resolver} /etc/resolv.conf && exec {os.environ[KUBERAY]} "
    script.write_text(f'#!/bin/sh\nexec unshare --mount sh -c \'{own_names}"$@"\' kuberay "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture(autouse=True)
def _ended(cluster: Operated) -> Iterator[None]:
    """Delete a test's job, of this cluster."""
    yield
    cluster.clear()


def ray_job(program: str) -> Json:
    def pods(container: str, gpus: int) -> Json:
        limits = {"cpu": "2", "memory": "2Gi"}
        if gpus:
            limits[GPU] = str(gpus)
        resources = {"limits": limits, "requests": {**limits, "cpu": "200m"}}
        return {"spec": {"containers": [{"name": container, "image": IMAGE, "resources": resources}]}}

    group = {"groupName": "gpus", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "rayStartParams": {}}
    ray = {
        "rayVersion": "2.55.1",
        "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": pods("ray-head", 0)},
        "workerGroupSpecs": [{**group, "template": pods("ray-worker", 8)}],
    }
    entrypoint = f"python -c '{program}'"
    spec = {"suspend": True, "shutdownAfterJobFinishes": True, "entrypoint": entrypoint, "rayClusterSpec": ray}
    return {**about("RayJob", "sweep", "ray.io/v1"), "spec": spec}


def test_a_task_of_a_ray_job_runs_on_its_worker_and_the_job_ends(cluster: Operated) -> None:
    cluster.make(RAYJOBS, ray_job(PROGRAM))

    assert ended(cluster)["jobStatus"] == "SUCCEEDED"
    no_pod_of_the_cluster_is_left(cluster)


def test_a_ray_job_whose_program_fails_has_failed_and_frees_its_machines(cluster: Operated) -> None:
    cluster.make(RAYJOBS, ray_job("import ray; ray.init(); raise SystemExit(3)"))

    status = ended(cluster)
    assert (status["jobStatus"], status["reason"]) == ("FAILED", "AppFailed")
    no_pod_of_the_cluster_is_left(cluster)


def test_a_deleted_ray_job_ends_its_pods(cluster: Operated) -> None:
    cluster.make(RAYJOBS, ray_job("import time, ray; ray.init(); time.sleep(600)"))
    until(lambda: status_of(cluster).get("jobStatus"), lambda now: now == "RUNNING", SECONDS)

    assert cluster.deleted(f"{RAYJOBS}/sweep") == ""

    no_pod_of_the_cluster_is_left(cluster)


def status_of(cluster: Operated) -> Json:
    status: Any = cluster.get(f"{RAYJOBS}/sweep").get("status", {})
    return dict(status)


def ended(cluster: Operated) -> Json:
    """Wait for the end of the job, and return its status."""
    return until(
        lambda: status_of(cluster), lambda now: now.get("jobDeploymentStatus") in ("Complete", "Failed"), SECONDS
    )


def no_pod_of_the_cluster_is_left(cluster: Operated) -> None:
    until(lambda: cluster.get(f"{PODS}?labelSelector=ray.io/cluster")["items"], lambda pods: not pods, SECONDS)
