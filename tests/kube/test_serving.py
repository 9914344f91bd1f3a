"""Model servers played by the real controllers: autoscaler, Deployments, Kueue, scheduler. Nodes are objects only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.kube.clusters import KINDS, kueue_cluster
from tests.kube.metrics_api import MetricsApi
from tests.kube.queues import PATHS, Json, Queues, until
from tests.support.plans import composed
from training_platform.resources.kueue import configuration
from training_platform.resources.metrics_adapter import metrics_adapter
from training_platform.resources.scope import Scope

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

H100 = {"training-platform/flavor": "h100-reservation", "cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
MEGA = {
    "training-platform/flavor": "h100-mega-reservation", "cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb",
}  # fmt: skip
SERVER = {"flavor": "h100-reservation", "image": "registry.example.com/vllm:1"}


class Servers(Queues):
    """A cluster with model servers; pods that have a node run, as a kubelet would say."""

    selector = "training-platform/server"

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(client)
        self._http = client

    def pods(self, team: str, *, running: bool = False) -> list[Json]:
        """Return the pods of servers that are not being deleted."""
        every = self.get(f"/api/v1/namespaces/{team}/pods?labelSelector={self.selector}")["items"]
        alive = [pod for pod in every if not pod["metadata"].get("deletionTimestamp")]
        return [pod for pod in alive if not running or pod.get("status", {}).get("phase") == "Running"]

    def run(self, team: str) -> int:
        """Say of every pod with a node that it runs and is ready; return how many there are."""
        for pod in self.pods(team):
            if pod["spec"].get("nodeName") and pod["status"].get("phase") != "Running":
                ready = {"type": "Ready", "status": "True"}
                body = json.dumps({"status": {"phase": "Running", "conditions": [ready]}})
                path = f"/api/v1/namespaces/{team}/pods/{pod['metadata']['name']}/status"
                headers = {"Content-Type": "application/merge-patch+json"}
                self._http.patch(path, content=body, headers=headers).raise_for_status()
        return len(self.pods(team, running=True))

    def clear(self) -> None:
        for namespace in (namespace["metadata"]["name"] for namespace in self.get("/api/v1/namespaces")["items"]):
            for kind in ("HorizontalPodAutoscaler", "Deployment"):
                self.delete(PATHS[kind].format(namespace))
            until(lambda namespace=namespace: self._pods_gone(namespace), bool)  # type: ignore[misc]
        super().clear()

    def _pods_gone(self, namespace: str) -> bool:
        path = f"/api/v1/namespaces/{namespace}/pods"
        self._http.request("DELETE", path, json={"gracePeriodSeconds": 0})  # there is no kubelet to end them
        return not self.get(path)["items"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Servers, MetricsApi]]:
    settings = configuration(["reservation"], pods=True)
    with kueue_cluster(tmp_path_factory.mktemp("serving"), settings, (*KINDS, "gmp")) as cluster:
        servers = Servers(cluster.client)

        def running(team: str) -> list[str]:
            return [pod["metadata"]["name"] for pod in servers.pods(team, running=True)]

        with MetricsApi(cluster.server, running) as metrics:
            yield servers, metrics


@pytest.fixture
def servers(cluster: tuple[Servers, MetricsApi]) -> Iterator[Servers]:
    servers, metrics = cluster
    metrics.load = 0
    for index in range(4):
        servers.node(f"h100-{index}", H100, "nvidia.com/gpu", 8)
    yield servers
    servers.clear()


@pytest.fixture
def metrics(cluster: tuple[Servers, MetricsApi]) -> MetricsApi:
    return cluster[1]


RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADAPTER_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "RoleBinding": f"{RBAC}/namespaces/{{}}/rolebindings",
    "Deployment": PATHS["Deployment"],
    "Service": PATHS["Service"],
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
}


def adapter_objects(scope: Scope) -> list[Json]:
    """Return what a deployment of the adapter makes in a cluster."""
    plan = composed(lambda into: metrics_adapter(into, scope, "a@example.com"), "main-adapter")
    return [dict(resource.inputs) for resource in plan.resources if resource.inputs.get("kind") in ADAPTER_PATHS]


def test_the_api_server_takes_what_the_adapter_is_made_of(cluster: tuple[Servers, MetricsApi], scope: Scope) -> None:
    servers, _ = cluster
    bodies = adapter_objects(scope)

    assert {body["kind"] for body in bodies} == ADAPTER_PATHS.keys()
    for body in bodies:
        servers.apply(body, ADAPTER_PATHS, dryRun="All")


def team(gpus: int, max_replicas: int, **fields: Any) -> dict[str, Json]:
    shares = {"main": {"h100-reservation": {"nominal_quota": gpus}}}
    return {
        "vision": {"shares": shares, "serving": {"main": {"chat": {**SERVER, "max_replicas": max_replicas}}}, **fields}
    }


def test_pods_follow_the_load_between_the_fewest_and_the_most(servers: Servers, metrics: MetricsApi) -> None:
    servers.deploy(team(32, 3))
    until(lambda: servers.run("vision"), lambda pods: pods == 1)

    metrics.load = 9  # of which each pod is to have 5
    until(lambda: servers.run("vision"), lambda pods: pods == 2)
    metrics.load = 100
    until(lambda: servers.run("vision"), lambda pods: pods == 3)

    path = f"{PATHS['HorizontalPodAutoscaler'].format('vision')}/serve-chat"
    until(lambda: servers.get(path)["status"].get("desiredReplicas"), lambda pods: pods == 3)
    assert metrics.asked == {"prometheus.googleapis.com|vllm:num_requests_waiting|gauge"}
    metrics.load = 0
    servers.change(path, {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}})  # else 5 minutes
    until(lambda: len(servers.pods("vision")), lambda pods: pods == 1)


def test_training_yields_to_a_server_that_grows(servers: Servers, metrics: MetricsApi) -> None:
    servers.deploy(team(16, 2))
    until(lambda: servers.run("vision"), lambda pods: pods == 1)
    servers.submit("vision", "train", 8, priority="high")
    servers.runs("vision", "train")

    metrics.load = 10

    until(lambda: servers.run("vision"), lambda pods: pods == 2)
    servers.waits("vision", "train")


def test_a_pod_waits_at_its_gate_where_no_training_yields(servers: Servers, metrics: MetricsApi) -> None:
    servers.deploy(team(16, 2, preemption={"within_queue": "Never"}))
    until(lambda: servers.run("vision"), lambda pods: pods == 1)
    servers.submit("vision", "train", 8)
    servers.runs("vision", "train")

    metrics.load = 10

    until(lambda: len(servers.pods("vision")), lambda pods: pods == 2)
    gated = [pod for pod in servers.pods("vision") if pod["spec"].get("schedulingGates")]
    assert [gate["name"] for pod in gated for gate in pod["spec"]["schedulingGates"]][:1] == [
        "kueue.x-k8s.io/admission"
    ]
    assert servers.run("vision") == 1
    servers.runs("vision", "train")


def test_a_server_gets_a_flavor_with_a_topology_beside_one_without(servers: Servers) -> None:
    shares = {"main": {name: {"nominal_quota": 8} for name in ("h100-reservation", "h100-mega-reservation")}}
    chat = {**SERVER, "flavor": "h100-mega-reservation", "max_replicas": 1}
    levels = {f"cloud.google.com/gce-topology-{level}": "one" for level in ("block", "subblock", "host")}
    labels = {**MEGA, **levels}
    servers.node("mega-0", labels, "nvidia.com/gpu", 8)

    servers.deploy({"vision": {"shares": shares, "serving": {"main": {"chat": chat}}}})

    until(lambda: servers.run("vision"), lambda running: running == 1)
    (pod,) = servers.pods("vision")
    assert pod["spec"]["nodeName"] == "mega-0"
