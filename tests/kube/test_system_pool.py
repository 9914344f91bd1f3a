"""The system pool under the real scheduler and Kueue: no pod of a team has a place there; nodes are objects only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.clusters import kueue_cluster
from tests.kube.jobs_on_nodes import SUBNET
from tests.kube.queues import Json, Queues, planned, stacks, until
from training_platform.config.expansion import SYSTEM_PRIORITY, SYSTEM_PRIORITY_VALUE, cpu_pools
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources.kueue import configuration, kueue_values

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

VCPUS_OF_A_POD = 16
VCPUS_OF_A_NODE = 208  # as in Queues.node
POOLS: Json = {
    "system_pool": {"min_nodes": 2, "max_nodes": 2},
    "cpu_pools": {"general": {"max_nodes": 3}},
    "node_pools": {"h100": {"machine_type": "a3-highgpu-8g", "max_nodes": 1}},
}
PODS = "/api/v1/namespaces/{}/pods"


@pytest.fixture
def queues(tmp_path: Path) -> Iterator[Queues]:
    with kueue_cluster(tmp_path, configuration(["on-demand"])) as cluster:
        yield Queues(cluster.client)


def nodes_of(queues: Queues, spec: ClusterSpec) -> None:
    """Add the VMs of pools without accelerators, as many as there may be, with their taints."""
    for pool in cpu_pools(spec):
        key, value = pool.taint or ("", "")
        taints = [{"key": key, "value": value, "effect": "NoSchedule"}] if pool.taint else []
        for index in range(pool.spec.max_nodes):
            queues.node(
                f"{pool.name}-{index}", {"cloud.google.com/gke-nodepool": pool.name}, "example.com/none", 1, taints
            )


def test_four_thousand_vcpus_of_a_team_leave_the_system_pool_to_the_controllers(queues: Queues) -> None:
    clusters = {"main": {"location": "us-central1-a", "subnet": SUBNET, **POOLS}}
    workspace = stacks({"clusters": clusters}, {"vision": {"shares": {"main": {"h100": {"nominal_quota": 8}}}}})
    environment = workspace.stacks["lab"].environment
    assert environment is not None
    spec = environment.clusters["main"]
    queues.deploy_all(planned(workspace))
    nodes_of(queues, spec)

    queues.submit("vision", "prepare", VCPUS_OF_A_POD, pods=4_000 // VCPUS_OF_A_POD, resource="cpu")

    room = 3 * (VCPUS_OF_A_NODE // VCPUS_OF_A_POD)
    until(lambda: placed(queues, "vision"), lambda pods: pods["general"] == room)
    until(lambda: unschedulable(queues), lambda pods: pods == 4_000 // VCPUS_OF_A_POD - room)
    assert set(placed(queues, "vision")) == {"general", ""}
    priority = {"metadata": {"name": SYSTEM_PRIORITY}, "value": SYSTEM_PRIORITY_VALUE}
    queues.create("/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    queues.create("/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
    for index in range(2):
        controller(queues, f"kueue-{index}", spec)
    until(lambda: placed(queues, "kueue-system"), lambda pods: pods == {"system": 2})
    assert placed(queues, "vision")["general"] == room  # nobody was evicted for them


def controller(queues: Queues, name: str, spec: ClusterSpec) -> None:
    """Add a pod of Kueue's, as its chart has it from our values."""
    values = kueue_values("main", spec)["controllerManager"]
    container = {
        "name": "manager", "image": "registry.example.com/kueue:1",
        "resources": {"requests": values["manager"]["resources"]["requests"]},
    }  # fmt: skip
    placement = {"tolerations": values["tolerations"], "priorityClassName": values["manager"]["priorityClassName"]}
    body = {"metadata": {"name": name}, "spec": {"containers": [container], **placement}}
    queues.create(PODS.format("kueue-system"), body)


def placed(queues: Queues, namespace: str) -> Counter[str]:
    """Count the pods of a namespace by the pool of their node; those without a node are under an empty name."""
    pods = queues.get(PODS.format(namespace))["items"]
    return Counter(pod["spec"].get("nodeName", "").rpartition("-")[0] for pod in pods)


def unschedulable(queues: Queues) -> int:
    """Count the pods that the scheduler looked at and found no node for."""
    pods = queues.get(PODS.format("vision"))["items"]
    rows = [row for pod in pods for row in pod["status"].get("conditions", ())]
    return sum(row["type"] == "PodScheduled" and row.get("reason") == "Unschedulable" for row in rows)
