"""Simulated nodes: a Node object for each VM of a cluster's node pools, and pods that are deleted at once.

Labels and taints are GKE's (GKE docs, labels and taints of nodes, read as for the flavors in ``config.expansion``).
Capacity is that of the machine type; GKE reserves a few percent of a VM for itself. The location of a VM in a data
centre is made up: all VMs of a pool are in one block.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from threading import Event, Thread
from typing import Any, Final, NamedTuple

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Json
from training_platform.config.expansion import ARCHITECTURE_LABEL, QUEUED_LABEL
from training_platform.config.model.node_pool import BLOCK_LEVELS, POOL_LABEL
from training_platform.parts.sandbox.kubernetes.api_servers import ApiServer
from training_platform.parts.sandbox.kubernetes.object_store import ObjectRefused
from training_platform.views.inputs import at

LOG: Final = logging.getLogger("training_platform.parts.sandbox.kubernetes")
MOST_NODES: Final = 200  # of a cluster: each is compared twice a second
_NODES: Final = "/api/v1/nodes"
_SECONDS: Final = 0.5  # between two comparisons
_RUNNING: Final = frozenset({"RUNNING", "RUNNING_WITH_ERROR", "RECONCILING"})
_GPU: Final = "nvidia.com/gpu"
# Labels by the setting of a pool's provisioning model.
_PROVISIONING: Final = {"spot": "cloud.google.com/gke-spot", "flexStart": "cloud.google.com/gke-flex-start"}


@contextmanager
def kubelets(server: ApiServer, nodes: Callable[[], Mapping[str, Json]]) -> Iterator[None]:
    """Keep a cluster's Node objects equal to ``nodes``, by name, while the block runs.

    A pod that is being deleted, or whose node is gone, is deleted at once, since it has no running container.
    """
    ended = Event()

    def run() -> None:
        while not ended.wait(_SECONDS):
            try:
                current = nodes()
                _register(server, current)
                _delete_pods(server, current)
            except (ObjectRefused, KeyError) as error:  # the next comparison tries again
                LOG.warning("nodes are not up to date: %s", error)

    thread = Thread(target=run, name="kubelets", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _register(server: ApiServer, nodes: Mapping[str, Json]) -> None:
    registered = {node["metadata"]["name"]: node for node in _items(server, _NODES)}
    for name in registered.keys() - nodes.keys():
        server.call("DELETE", f"{_NODES}/{name}")
    for name, node in nodes.items():
        if name not in registered:
            server.call("POST", _NODES, json={**node, "apiVersion": "v1", "kind": "Node"})
        conditions = at(registered.get(name), ("status", "conditions")) or []
        if not any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions):
            server.merge(f"{_NODES}/{name}/status", {"status": node["status"]})
            server.merge(
                f"{_NODES}/{name}", {"spec": node["spec"]}
            )  # clears the taint that the server gives to new nodes


def _delete_pods(server: ApiServer, nodes: Mapping[str, Json]) -> None:
    for pod in _items(server, "/api/v1/pods"):
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata or pod["spec"].get("nodeName", "") not in {*nodes, ""}:
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            with suppress(ObjectRefused):
                server.call("DELETE", path, json={"gracePeriodSeconds": 0})


def _items(server: ApiServer, path: str) -> list[Json]:
    return list(server.call("GET", path, params={"resourceVersion": "0"})["items"])  # from the server's cache


class SimulatedPool(NamedTuple):
    """A node pool as the GKE API shows it, and the number of VMs that it was created with."""

    cluster: str
    name: str
    body: Mapping[str, Any]
    initial_nodes: int = 0


def node_objects(pools: Iterable[SimulatedPool]) -> dict[str, Json]:
    """Return the nodes of running pools by name, at most ``MOST_NODES``."""
    running = (pool for pool in pools if pool.body.get("status") in _RUNNING)
    return dict(islice((node for pool in running for node in _nodes_of_pool(pool)), MOST_NODES))


def _nodes_of_pool(pool: SimulatedPool) -> Iterator[tuple[str, Json]]:
    """Yield names and objects of a pool's initial VMs, but no fewer than its autoscaler keeps."""
    zones = pool.body["locations"]
    config = pool.body["config"]
    machine = MACHINE_TYPES.get(config.get("machineType", ""))
    labels = {**config.get("labels", {}), POOL_LABEL: pool.name}
    taints = {
        taint["key"]: _taint(taint["key"], taint.get("value", ""), taint["effect"])
        for taint in config.get("taints", ())
    }
    capacity = {"cpu": "2", "memory": "4Gi"}  # of e2-medium, the only type outside the catalogue
    if machine is not None:
        memory = f"{int(machine.memory_gb)}Gi"
        capacity = {"cpu": str(machine.vcpus), "memory": memory, "ephemeral-storage": "1Ti"}
        if machine.architecture == "arm64":
            taints[ARCHITECTURE_LABEL] = _taint(ARCHITECTURE_LABEL, "arm64")
        if gpus := config.get("accelerators"):
            partitions = machine.accelerator.partitions if machine.accelerator else {}
            pods_per_gpu = int(gpus[0].get("gpuSharingConfig", {}).get("maxSharedClientsPerGpu", 1))
            pods_per_gpu *= partitions.get(gpus[0].get("gpuPartitionSize", ""), 1)
            capacity[_GPU] = str(int(gpus[0]["acceleratorCount"]) * pods_per_gpu)
            labels["cloud.google.com/gke-accelerator"] = gpus[0]["acceleratorType"]
            labels |= {level: f"{pool.name}-{level.rpartition('-')[2]}" for level in BLOCK_LEVELS[:-2]}
            taints.setdefault(_GPU, _taint(_GPU, "present"))
        elif machine.accelerator is not None:
            capacity[machine.accelerator.resource] = str(machine.chips)
            labels["cloud.google.com/gke-tpu-accelerator"] = machine.accelerator.gke_label
            topology = pool.body.get("placementPolicy", {}).get("tpuTopology") or machine.single_host or ""
            labels["cloud.google.com/gke-tpu-topology"] = topology
            taints["google.com/tpu"] = _taint("google.com/tpu", "present")
    if pool.body.get("queuedProvisioning", {}).get("enabled"):
        labels[QUEUED_LABEL] = "true"
        taints[QUEUED_LABEL] = _taint(QUEUED_LABEL, "true")
    labels |= {label: "true" for setting, label in _PROVISIONING.items() if config.get(setting)}
    nodes = pool.initial_nodes
    scaling = pool.body.get("autoscaling", {})
    if scaling.get("enabled"):
        nodes = max(nodes, scaling.get("totalMinNodeCount", 0), scaling.get("minNodeCount", 0) * len(zones))
    resources = {**capacity, "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    for index in range(nodes):
        name = f"gke-{pool.cluster[:20]}-{pool.name[:20]}-{index}"
        zone = zones[index % len(zones)]
        node_labels = {
            **labels,
            "kubernetes.io/hostname": name,
            "node.kubernetes.io/instance-type": config.get("machineType", ""),
            "topology.kubernetes.io/region": zone.rpartition("-")[0],
            "topology.kubernetes.io/zone": zone,
        }
        if _GPU in capacity:
            node_labels[BLOCK_LEVELS[-2]] = f"{pool.name}-host-{index}"
        node = {
            "metadata": {"name": name, "labels": node_labels},
            "spec": {"taints": list(taints.values())},
            "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
        }
        yield name, node


def _taint(key: str, value: str, effect: str = "NO_SCHEDULE") -> Json:
    """Return a taint as Kubernetes spells it; ``effect`` is the GKE API's."""
    return {"key": key, "value": value, "effect": effect.title().replace("_", "")}
