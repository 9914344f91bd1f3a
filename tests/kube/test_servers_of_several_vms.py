"""Model servers on several VMs played by the real controllers: LeaderWorkerSet's, Kueue's, autoscaler, scheduler.

``TRAINING_PLATFORM_LWS`` names LeaderWorkerSet's controller, ``TRAINING_PLATFORM_LWS_DEFINITIONS`` the folder of its
CustomResourceDefinitions (``config/crd/bases`` of its source).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.kube.metrics_api import MetricsApi
from tests.kube.model_servers import H100, SERVER, Servers
from tests.kube.queues import KUEUE, PATHS, Json, until
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

DEFINITIONS = (*KINDS, "gmp", "TRAINING_PLATFORM_LWS_DEFINITIONS")
NODE_POOL = "cloud.google.com/gke-nodepool"
GROUP = "leaderworkerset.sigs.k8s.io/group-index"
WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
PLACED = "tpu-v5e-2x4"  # slices of 2 VMs, which Kueue places jobs on


class Groups(Servers):
    """A cluster with model servers whose replicas are groups of pods."""

    selector = "leaderworkerset.sigs.k8s.io/name=serve-chat"

    def nodes(self, team: str) -> dict[str, set[str]]:
        """Return the nodes of each group's running pods, after pods with a node started to run."""
        self.run(team)
        nodes_of_groups: dict[str, set[str]] = {}
        for pod in self.pods(team, running=True):
            nodes_of_groups.setdefault(pod["metadata"]["labels"][GROUP], set()).add(pod["spec"]["nodeName"])
        return nodes_of_groups

    def clear(self) -> None:
        for namespace in (namespace["metadata"]["name"] for namespace in self.get("/api/v1/namespaces")["items"]):
            self.delete(PATHS["LeaderWorkerSet"].format(namespace))
        super().clear()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Groups, MetricsApi]]:
    settings = configuration(["reservation"], pods=True)
    with kueue_cluster(tmp_path_factory.mktemp("groups"), settings, DEFINITIONS, (*NEEDED, "lws")) as cluster:
        groups = Groups(cluster.client)

        def leaders(team: str) -> list[str]:
            about = (pod["metadata"] for pod in groups.pods(team, running=True))
            return [pod["name"] for pod in about if pod["labels"][WORKER] == "0"]

        with MetricsApi(cluster.server, leaders) as metrics:
            yield groups, metrics


@pytest.fixture
def groups(cluster: tuple[Groups, MetricsApi]) -> Iterator[Groups]:
    groups, metrics = cluster
    metrics.load = 0
    yield groups
    groups.clear()


def team(flavor: str, chips: int, max_replicas: int, **server: object) -> dict[str, Json]:
    chat = {**SERVER, "flavor": flavor, "max_replicas": max_replicas, **server}
    shares = {"main": {flavor: {"nominal_quota": chips}}}
    return {"vision": {"shares": shares, "serving": {"main": {"chat": chat}}}}


def test_each_group_has_a_slice_for_itself(groups: Groups) -> None:
    labels = {"training-platform/flavor": PLACED, "cloud.google.com/gke-tpu-topology": "2x4"}
    labels |= {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}
    for index in range(4):
        pool = f"slice-{index // 2}"
        groups.node(f"{pool}-{index % 2}", {**labels, NODE_POOL: pool}, "google.com/tpu", 4)

    groups.deploy(team(PLACED, 2 * 2 * 4, 2, min_replicas=2))

    nodes_of_groups = until(lambda: groups.nodes("vision"), lambda now: sum(map(len, now.values())) == 4)
    assert sorted(nodes_of_groups.values(), key=min) == [{"slice-0-0", "slice-0-1"}, {"slice-1-0", "slice-1-1"}]
    (queue,) = {
        workload["spec"]["queueName"] for workload in groups.get(f"{KUEUE}/namespaces/vision/workloads")["items"]
    }
    assert queue == "vision"


def test_groups_follow_the_load_and_training_yields_to_a_whole_one(
    groups: Groups, cluster: tuple[Groups, MetricsApi]
) -> None:
    for index in range(4):
        groups.node(f"h100-{index}", H100, "nvidia.com/gpu", 8)
    groups.deploy(team("h100-reservation", 32, 2, vms=2, worker_command=["ray"]))
    until(lambda: groups.nodes("vision"), lambda now: [*map(len, now.values())] == [2])
    groups.submit("vision", "train", 16, priority="high")
    groups.runs("vision", "train")

    cluster[1].load = 10  # of which each group is to have 5

    until(lambda: groups.nodes("vision"), lambda now: [*map(len, now.values())] == [2, 2])
    groups.waits("vision", "train")
    assert cluster[1].asked == {"prometheus.googleapis.com|vllm:num_requests_waiting|gauge"}
