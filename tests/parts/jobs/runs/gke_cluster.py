"""A cluster of the invented organisation: a real API server with Kueue's and JobSet's controllers, nodes as objects."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from click.testing import Result

from tests.kube.api_servers import ApiServer
from training_platform.config.workspace import read_workspace
from training_platform.resources import kueue
from training_platform.resources.queues import topology_objects
from training_platform.resources.scope import TEAM_LABEL, environment_scope

Json = dict[str, Any]
SECONDS = 60.0
TEAM = "vision"
CLUSTER = "gpus"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
JOB = """\
environment: lab
image: registry.example.com/train:1
command: [train, "--master={run}-slice-0-0.{run}"]
gke: {cluster: gpus, flavor: h100, nodes: 2}
"""


class Cluster:
    """The cluster ``gpus`` with team vision's queue, and a stand-in for its nodes' kubelets."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.client = server.client()

    def post(self, path: str, body: Json) -> Json:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def items(self, path: str) -> list[Json]:
        answer = self.client.get(path)
        assert answer.is_success, answer.text
        return list(answer.json()["items"])

    def patch(self, path: str, body: Json) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self.client.patch(path, content=json.dumps(body), headers=headers)
        assert answer.is_success, answer.text

    def pods(self, run: str) -> list[Json]:
        selector = f"labelSelector=jobset.sigs.k8s.io/jobset-name={run}"
        return self.items(f"{PODS}?{selector}")

    def reap(self, ended: Event) -> None:
        """Finish the deletion of pods, as their node's kubelet would, until ``ended``."""
        with self.server.client() as client:
            while not ended.wait(0.2):
                for pod in client.get(PODS).json().get("items", ()):
                    if pod["metadata"].get("deletionTimestamp"):
                        client.delete(f"{PODS}/{pod['metadata']['name']}", params={"gracePeriodSeconds": 0})

    def says(self, pod: Json, phase: str, exit_code: int = 0, conditions: tuple[Json, ...] = ()) -> None:
        """Report a pod as a kubelet would."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ended = {
            "terminated": {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed", "finishedAt": now}
        }
        state = {"running": {"startedAt": now}} if phase == "Running" else ended
        status = {
            "phase": phase,
            "conditions": [
                {"type": "Ready", "status": str(phase == "Running"), "lastTransitionTime": now},
                *conditions,
            ],
            "containerStatuses": [
                {
                    "name": "training", "ready": phase == "Running", "restartCount": 0, "state": state,
                    "image": "registry.example.com/train:1", "imageID": "",
                }
            ],
        }  # fmt: skip
        path = f"{PODS}/{pod['metadata']['name']}/status"
        self.patch(path, {"status": status})


T = TypeVar("T")


def until(read: Callable[[], T], right: Callable[[T], bool], seconds: float = SECONDS) -> T:
    """Call ``read`` until its result is right, and return that; the test fails if it never is."""
    deadline = time.monotonic() + seconds
    while not right(latest := read()):
        assert time.monotonic() < deadline, f"this never came true: {latest}"
        time.sleep(0.1)
    return latest


def create_queues(cluster: Cluster, root: Path, name: str = CLUSTER) -> None:
    workspace = read_workspace(root)
    flavors = workspace.flavors("lab", name)
    (team,) = (team for _, team, _ in workspace.teams() if team.name == TEAM)
    cluster.post("/api/v1/namespaces", {"metadata": {"name": TEAM, "labels": {TEAM_LABEL: TEAM}}})
    api = "/apis/kueue.x-k8s.io/v1beta2"
    ((_, environment),) = workspace.environments()
    for topology in topology_objects(name, flavors, environment_scope("lab", environment)):
        cluster.post(f"{api}/topologies", dict(topology.inputs))
    for flavor_name, flavor in flavors.items():
        body = {"kind": "ResourceFlavor", "metadata": {"name": flavor_name}, "spec": kueue.resource_flavor(flavor)}
        cluster.post(f"{api}/resourceflavors", {"apiVersion": kueue.API_VERSION, **body})
    spec = kueue.cluster_queue(team, name, flavors)
    queue = {"apiVersion": kueue.API_VERSION, "kind": "ClusterQueue", "metadata": {"name": TEAM}, "spec": spec}
    cluster.post(f"{api}/clusterqueues", queue)
    for queue_name in kueue.local_queue_names(TEAM):
        body = {"kind": "LocalQueue", "metadata": {"name": queue_name}, "spec": kueue.local_queue(TEAM)}
        cluster.post(f"{api}/namespaces/{TEAM}/localqueues", {"apiVersion": kueue.API_VERSION, **body})


def create_nodes(cluster: Cluster, root: Path) -> None:
    flavor = read_workspace(root).flavors("lab", CLUSTER)["h100"]
    for index in range(8):
        name = f"h100-{index}"
        cluster.post("/api/v1/nodes", {"metadata": {"name": name, "labels": flavor.node_labels}})
        room = {flavor.accelerator.resource: "8", "cpu": "208", "memory": "1800Gi", "pods": "64"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        cluster.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        cluster.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": []}})  # not ready, until a controller looks


Command = Callable[..., Result]
