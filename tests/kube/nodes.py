"""Simulated nodes: a Node object for each VM of a cluster's node pools, and pods that are deleted at once.

Labels and taints are GKE's (GKE docs, labels and taints of nodes, read as for the flavors in ``config.expansion``).
Capacity is that of the machine type; GKE reserves a few percent of a VM for itself. The location of a VM in a data
centre is made up: all VMs of a pool are in one block.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from threading import Event, Thread
from typing import Any, Final, NamedTuple

from local_google_cloud.api import Store
from local_google_cloud.kubernetes import ObjectRefused
from tests.kube.api_servers import ApiServer
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Accelerator, Json, MachineType
from training_platform.config.expansion import ARCHITECTURE_LABEL, QUEUED_LABEL
from training_platform.config.model.node_pool import BLOCK_LEVELS, POOL_LABEL
from training_platform.views.inputs import at

LOG: Final = logging.getLogger("local_google_cloud.kubernetes")
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

    A pod that is being deleted, or whose node is gone, is deleted at once, since it has no running container. It has
    failed before, as in a cluster: Jobs whose pods are replaced only once they failed wait for that.
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
                if at(pod, ("status", "phase")) not in ("Failed", "Succeeded"):
                    server.merge(f"{path}/status", {"status": {"phase": "Failed"}})
                server.call("DELETE", path, json={"gracePeriodSeconds": 0})


def _items(server: ApiServer, path: str) -> list[Json]:
    return list(server.call("GET", path, params={"resourceVersion": "0"})["items"])  # from the server's cache


def cluster_nodes(store: Store, cluster: str) -> dict[str, Json]:
    """Return the Node objects of a cluster by name; ``cluster`` is its full name in the GKE API."""
    prefix = f"container/{cluster}/nodePools/"
    pools = (record for record in store.all() if record.name.startswith(prefix))
    name = cluster.rpartition("/")[2]
    return node_objects(SimulatedPool(name, pool.id, pool.body, pool.meta.get("nodes", 0)) for pool in pools)


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
    machine_type = pool.body["config"].get("machineType", "")
    node_kind = _node_kind(pool)
    resources = {**node_kind.capacity, "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    for index in range(_node_count(pool)):
        zone = zones[index % len(zones)]
        # No VM moves to another zone or becomes another machine, so that with either a pool has other VMs.
        unique = f"{zlib.crc32(f'{zone}/{machine_type}'.encode()):08x}"
        name = f"gke-{pool.cluster[:20]}-{pool.name[:20]}-{unique}-{index}"
        labels = {
            **node_kind.labels,
            "kubernetes.io/hostname": name,
            "node.kubernetes.io/instance-type": machine_type,
            "topology.kubernetes.io/region": zone.rpartition("-")[0],
            "topology.kubernetes.io/zone": zone,
        }
        if _GPU in node_kind.capacity:
            labels[BLOCK_LEVELS[-2]] = f"{pool.name}-host-{index}"
        node = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": list(node_kind.taints.values())},
            "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
        }
        yield name, node


def _node_count(pool: SimulatedPool) -> int:
    scaling: Mapping[str, int] = pool.body.get("autoscaling", {})
    if not scaling.get("enabled"):
        return pool.initial_nodes
    per_zone = scaling.get("minNodeCount", 0) * len(pool.body["locations"])
    return max(pool.initial_nodes, scaling.get("totalMinNodeCount", 0), per_zone)


class _NodeKind(NamedTuple):
    """What the nodes of a pool have in common; taints by their key."""

    capacity: dict[str, str]
    labels: dict[str, str]
    taints: dict[str, Json]


def _node_kind(pool: SimulatedPool) -> _NodeKind:
    """Return the capacity, labels and taints that GKE gives to nodes of a pool."""
    config = pool.body["config"]
    taints = {
        taint["key"]: _taint(taint["key"], taint.get("value", ""), taint["effect"])
        for taint in config.get("taints", ())
    }
    capacity = {"cpu": "2", "memory": "4Gi"}  # of e2-medium, the only type outside the catalogue
    node_kind = _NodeKind(capacity, {**config.get("labels", {}), POOL_LABEL: pool.name}, taints)
    machine = MACHINE_TYPES.get(config.get("machineType", ""))
    if machine is not None:
        memory = f"{int(machine.memory_gb)}Gi"
        capacity.update({"cpu": str(machine.vcpus), "memory": memory, "ephemeral-storage": "1Ti"})
        if machine.architecture == "arm64":
            taints[ARCHITECTURE_LABEL] = _taint(ARCHITECTURE_LABEL, "arm64")
        if config.get("accelerators"):
            _add_gpus(node_kind, pool, machine)
        elif machine.accelerator is not None:
            _add_tpus(node_kind, pool, machine, machine.accelerator)
    if pool.body.get("queuedProvisioning", {}).get("enabled"):
        node_kind.labels[QUEUED_LABEL] = "true"
        taints[QUEUED_LABEL] = _taint(QUEUED_LABEL, "true")
    for setting, label in _PROVISIONING.items():
        if config.get(setting):
            node_kind.labels[label] = "true"
    return node_kind


def _add_gpus(node_kind: _NodeKind, pool: SimulatedPool, machine: MachineType) -> None:
    """Add the GPUs of a pool; pods that share a GPU count it as several."""
    gpus = pool.body["config"]["accelerators"][0]
    partitions = machine.accelerator.partitions if machine.accelerator else {}
    pods_per_gpu = int(gpus.get("gpuSharingConfig", {}).get("maxSharedClientsPerGpu", 1))
    pods_per_gpu *= partitions.get(gpus.get("gpuPartitionSize", ""), 1)
    node_kind.capacity[_GPU] = str(int(gpus["acceleratorCount"]) * pods_per_gpu)
    node_kind.labels["cloud.google.com/gke-accelerator"] = gpus["acceleratorType"]
    for level in BLOCK_LEVELS[:-2]:
        node_kind.labels[level] = f"{pool.name}-{level.rpartition('-')[2]}"
    node_kind.taints.setdefault(_GPU, _taint(_GPU, "present"))


def _add_tpus(node_kind: _NodeKind, pool: SimulatedPool, machine: MachineType, accelerator: Accelerator) -> None:
    topology = pool.body.get("placementPolicy", {}).get("tpuTopology") or machine.single_host or ""
    node_kind.capacity[accelerator.resource] = str(machine.chips)
    node_kind.labels["cloud.google.com/gke-tpu-accelerator"] = accelerator.gke_label
    node_kind.labels["cloud.google.com/gke-tpu-topology"] = topology
    node_kind.taints["google.com/tpu"] = _taint("google.com/tpu", "present")


def _taint(key: str, value: str, effect: str = "NO_SCHEDULE") -> Json:
    """Return a taint as Kubernetes spells it; ``effect`` is the GKE API's."""
    return {"key": key, "value": value, "effect": effect.title().replace("_", "")}
