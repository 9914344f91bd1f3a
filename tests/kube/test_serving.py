"""Model servers played by the real controllers: autoscaler, Deployments, Kueue, scheduler. Nodes are objects only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kube.clusters import KINDS, kueue_cluster
from tests.kube.metrics_api import MetricsApi
from tests.kube.model_servers import ADAPTER_PATHS, H100, SERVER, Servers, adapter_objects, team
from tests.kube.queues import PATHS, until
from training_platform.resources.kueue import configuration
from training_platform.resources.scope import Scope

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

MEGA = {
    "training-platform/flavor": "h100-mega-reservation", "cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb",
}  # fmt: skip


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


def test_the_api_server_takes_what_the_adapter_is_made_of(cluster: tuple[Servers, MetricsApi], scope: Scope) -> None:
    servers, _ = cluster
    bodies = adapter_objects(scope)

    assert {body["kind"] for body in bodies} == ADAPTER_PATHS.keys()
    for body in bodies:
        servers.apply(body, ADAPTER_PATHS, dryRun="All")


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
