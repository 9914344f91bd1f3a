"""Simulated nodes: a Node object for each VM of a cluster's node pools, and pods that are deleted at once.

Labels and taints are those that GKE gives (GKE docs, labels and taints of nodes, as of the flavors' in
``config.pools``). Capacity is all that the machine type has; GKE reserves a few percent of a VM for itself. The
place of a VM in a data centre is invented: all of one pool are in one block.
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
# Labels by the setting of a pool that says how its VMs are got.
_PROVISIONING: Final = {"spot": "cloud.google.com/gke-spot", "flexStart": "cloud.google.com/gke-flex-start"}


@contextmanager
def kubelets(server: ApiServer, nodes: Callable[[], Mapping[str, Json]]) -> Iterator[None]:
    """Keep a cluster's Node objects equal to ``nodes``, by name, for as long as the block runs.

    A pod that is being deleted, or whose node does not exist any more, is deleted at once: no container of it ever ran.
    """
    ended = Event()

    def run() -> None:
        while not ended.wait(_SECONDS):
            try:
                wanted = nodes()
                _register(server, wanted)
                _delete_pods(server, wanted)
            except (ObjectRefused, KeyError) as error:  # the next comparison tries again
                LOG.warning("nodes are not up to date: %s", error)

    thread = Thread(target=run, name="kubelets", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _register(server: ApiServer, wanted: Mapping[str, Json]) -> None:
    registered = {node["metadata"]["name"]: node for node in _items(server, _NODES)}
    for name in registered.keys() - wanted.keys():
        server.call("DELETE", f"{_NODES}/{name}")
    for name, node in wanted.items():
        if name not in registered:
            server.call("POST", _NODES, json={**node, "apiVersion": "v1", "kind": "Node"})
        conditions = at(registered.get(name), ("status", "conditions")) or []
        if not any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions):
            server.merge(f"{_NODES}/{name}/status", {"status": node["status"]})
            server.merge(f"{_NODES}/{name}", {"spec": node["spec"]})  # the server adds the taint of one not ready


def _delete_pods(server: ApiServer, nodes: Mapping[str, Json]) -> None:
    for pod in _items(server, "/api/v1/pods"):
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata or pod["spec"].get("nodeName", "") not in {*nodes, ""}:
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            with suppress(ObjectRefused):
                server.call("DELETE", path, json={"gracePeriodSeconds": 0})


def _items(server: ApiServer, path: str) -> list[Json]:
    return list(server.call("GET", path, params={"resourceVersion": "0"})["items"])  # as last seen, from memory


class SimulatedPool(NamedTuple):
    """A node pool as the GKE API describes it, and the number of VMs that it was created with."""

    cluster: str
    name: str
    body: Mapping[str, Any]
    initial_nodes: int = 0


def node_objects(pools: Iterable[SimulatedPool]) -> dict[str, Json]:
    """Return the nodes of running pools by name, ``MOST_NODES`` at most."""
    running = (pool for pool in pools if pool.body.get("status") in _RUNNING)
    return dict(islice((node for pool in running for node in _of_pool(pool)), MOST_NODES))


def _of_pool(pool: SimulatedPool) -> Iterator[tuple[str, Json]]:
    """Yield names and objects of the initial VMs of a pool, and no fewer than its autoscaler keeps."""
    zones, config = pool.body["locations"], pool.body["config"]
    machine = MACHINE_TYPES.get(config.get("machineType", ""))
    labels = {**config.get("labels", {}), POOL_LABEL: pool.name}
    own_taints = (_taint(taint["key"], taint.get("value", ""), taint["effect"]) for taint in config.get("taints", ()))
    taints = {taint["key"]: taint for taint in own_taints}
    capacity = {"cpu": "2", "memory": "4Gi"}  # of e2-medium, which alone is outside the catalogue
    if machine is not None:
        memory = f"{int(machine.memory_gb)}Gi"
        capacity = {"cpu": str(machine.vcpus), "memory": memory, "ephemeral-storage": "1Ti"}
        if machine.architecture == "arm64":
            taints[ARCHITECTURE_LABEL] = _taint(ARCHITECTURE_LABEL, "arm64")
        if gpus := config.get("accelerators"):
            partitions = machine.accelerator.partitions if machine.accelerator else {}
            places = int(gpus[0].get("gpuSharingConfig", {}).get("maxSharedClientsPerGpu", 1))
            places *= partitions.get(gpus[0].get("gpuPartitionSize", ""), 1)
            capacity[_GPU] = str(int(gpus[0]["acceleratorCount"]) * places)
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
    nodes, scaling = pool.initial_nodes, pool.body.get("autoscaling", {})
    if scaling.get("enabled"):
        nodes = max(nodes, scaling.get("totalMinNodeCount", 0), scaling.get("minNodeCount", 0) * len(zones))
    resources = {**capacity, "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    for index in range(nodes):
        name, zone = f"gke-{pool.cluster[:20]}-{pool.name[:20]}-{index}", zones[index % len(zones)]
        own = {
            "kubernetes.io/hostname": name,
            "node.kubernetes.io/instance-type": config.get("machineType", ""),
            "topology.kubernetes.io/region": zone.rpartition("-")[0],
            "topology.kubernetes.io/zone": zone,
            **({BLOCK_LEVELS[-2]: f"{pool.name}-host-{index}"} if _GPU in capacity else {}),
        }
        node = {
            "metadata": {"name": name, "labels": {**labels, **own}},
            "spec": {"taints": list(taints.values())},
            "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
        }
        yield name, node


def _taint(key: str, value: str, effect: str = "NO_SCHEDULE") -> Json:
    """Return a taint as Kubernetes has it; ``effect`` is the GKE API's."""
    return {"key": key, "value": value, "effect": effect.title().replace("_", "")}
