"""Model servers played by the real controllers: autoscaler, Deployments, Kueue, scheduler. Nodes are objects only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kube.clusters import KINDS, kueue_cluster
from tests.kube.metrics_api import MetricsApi
from tests.kube.model_servers import H100, Servers, team
from tests.kube.queues import PATHS, until
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]


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
