"""Nodes of API servers in tests: one for each VM of the local cloud's pools."""

from __future__ import annotations

import re
from typing import Any

import pytest

from local_google_cloud.api import Record, Store
from tests.kube.nodes import MOST_NODES, cluster_nodes

CLUSTER_OF_NODES = "projects/example-lab/locations/us-central1/clusters/main"
L4: dict[str, Any] = {
    "machineType": "g2-standard-8",
    "labels": {"training-platform/flavor": "l4"},
    "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
}


def nodes_of(config: dict[str, Any], *, count: int = 1, cluster: str = CLUSTER_OF_NODES, **body: Any) -> dict[str, Any]:
    """Return the nodes of ``CLUSTER_OF_NODES`` if a cluster has one pool that started with ``count`` VMs."""
    whole = {"status": "RUNNING", "locations": ["us-central1-a"], "config": config, **body}
    store = Store()
    name = f"container/{cluster}/nodePools/pool"
    store.put(Record(name=name, project="example-lab", body=whole, meta={"nodes": count}))
    return cluster_nodes(store, CLUSTER_OF_NODES)


def only(config: dict[str, Any], **body: Any) -> dict[str, Any]:
    (node,) = nodes_of(config, **body).values()
    return dict(node)


def taints(node: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(taint["key"], taint["value"], taint["effect"]) for taint in node["spec"]["taints"]}


def test_a_gpu_vm_has_its_labels_its_taint_and_its_room() -> None:
    node = only(L4)

    assert re.fullmatch("gke-main-pool-[0-9a-f]{8}-0", node["metadata"]["name"])
    assert (
        node["metadata"]["labels"].items()
        >= {
            "training-platform/flavor": "l4",
            "cloud.google.com/gke-accelerator": "nvidia-l4",
            "cloud.google.com/gke-nodepool": "pool",
            "node.kubernetes.io/instance-type": "g2-standard-8",
            "topology.kubernetes.io/region": "us-central1",
            "topology.kubernetes.io/zone": "us-central1-a",
        }.items()
    )
    assert taints(node) == {("nvidia.com/gpu", "present", "NoSchedule")}
    room = node["status"]["allocatable"]
    assert (room["nvidia.com/gpu"], room["cpu"], room["memory"]) == ("1", "8", "32Gi")
    assert node["status"]["conditions"][0] == {"type": "Ready", "status": "True", "reason": "KubeletReady"}


@pytest.mark.parametrize(
    "change", [{"locations": ["us-central1-b"]}, {"config": {**L4, "machineType": "g2-standard-16"}}]
)
def test_a_pool_in_another_zone_or_of_another_machine_has_other_vms(change: dict[str, Any]) -> None:
    before = nodes_of(L4).keys()

    assert nodes_of({**L4, "labels": {}}).keys() == before
    assert before.isdisjoint(nodes_of(**{"config": L4, **change}))


def test_a_host_of_a_slice_has_its_chips_and_the_topology_of_the_whole() -> None:
    slices = nodes_of({"machineType": "ct5lp-hightpu-4t"}, count=2, placementPolicy={"tpuTopology": "2x4"})

    assert len(slices) == 2
    for node in slices.values():
        labels = node["metadata"]["labels"]
        assert labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v5-lite-podslice"
        assert labels["cloud.google.com/gke-tpu-topology"] == "2x4"
        assert node["status"]["allocatable"]["google.com/tpu"] == "4"
        assert taints(node) == {("google.com/tpu", "present", "NoSchedule")}


def test_shared_and_partitioned_gpus_are_as_many_as_pods_can_take() -> None:
    gpu = {
        "acceleratorType": "nvidia-tesla-a100", "acceleratorCount": "1", "gpuPartitionSize": "1g.5gb",
        "gpuSharingConfig": {"maxSharedClientsPerGpu": "2"},
    }  # fmt: skip
    node = only({"machineType": "a2-highgpu-1g", "accelerators": [gpu]})

    assert node["status"]["allocatable"]["nvidia.com/gpu"] == str(7 * 2)


@pytest.mark.parametrize(
    ("config", "body", "label"),
    [
        ({"spot": True}, {}, "gke-spot"),
        ({"flexStart": True}, {}, "gke-flex-start"),
        ({}, {"queuedProvisioning": {"enabled": True}}, "gke-queued"),
    ],
)
def test_the_way_to_get_vms_is_a_label(config: dict[str, Any], body: dict[str, Any], label: str) -> None:
    labels = only({**L4, **config}, **body)["metadata"]["labels"]

    ways = {name for name in labels if name.rpartition("/")[2] in {"gke-spot", "gke-flex-start", "gke-queued"}}
    assert ways == {f"cloud.google.com/{label}"}


def test_a_node_has_its_pools_taints_and_that_of_queued_vms() -> None:
    pool_taints = [{"key": "team", "value": "vision", "effect": "NO_EXECUTE"}]
    node = only({**L4, "taints": pool_taints}, queuedProvisioning={"enabled": True})

    assert taints(node) == {
        ("team", "vision", "NoExecute"), ("nvidia.com/gpu", "present", "NoSchedule"),
        ("cloud.google.com/gke-queued", "true", "NoSchedule"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("count", "autoscaling", "expected"),
    [
        (0, {}, 0),
        (3, {}, 3),
        (1, {"enabled": True, "minNodeCount": 2}, 4),  # in each of two zones
        (5, {"enabled": True, "minNodeCount": 2}, 5),
        (1, {"enabled": True, "totalMinNodeCount": 3}, 3),
        (1, {"enabled": False, "minNodeCount": 2}, 1),
        (MOST_NODES + 1, {}, MOST_NODES),
    ],
)
def test_there_is_a_node_for_each_vm_up_to_a_bound(count: int, autoscaling: dict[str, Any], expected: int) -> None:
    zones = ["us-central1-a", "us-central1-b"]

    assert len(nodes_of(L4, count=count, autoscaling=autoscaling, locations=zones)) == expected


def test_vms_are_spread_over_the_zones() -> None:
    spread = nodes_of(L4, count=2, locations=["us-central1-a", "us-central1-b"]).values()

    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in spread]
    assert zones == ["us-central1-a", "us-central1-b"]


@pytest.mark.parametrize("status", ["PROVISIONING", "ERROR", "STOPPING"])
def test_a_pool_that_is_not_up_has_no_nodes(status: str) -> None:
    assert nodes_of(L4, status=status) == {}


def test_another_clusters_pools_are_not_this_ones() -> None:
    assert nodes_of(L4, cluster=f"{CLUSTER_OF_NODES}-2") == {}
