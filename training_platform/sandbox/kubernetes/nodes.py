"""Simulated nodes: a Node object for each VM of a cluster's node pools, and pods that are deleted at once.

Labels and taints are those that GKE gives (GKE docs, labels and taints of nodes, as of the flavors' in
``config.pools``). Capacity is all that the machine type has; GKE reserves a few percent of a VM for itself. The
place of a VM in a data centre is invented: all of one pool are in one block.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from threading import Event, Thread
from typing import Any, Final, NamedTuple, Self

import httpx

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import MachineType
from training_platform.config.model.node_pool import BLOCK_LEVELS
from training_platform.config.pools import ARCHITECTURE_LABEL, QUEUED_LABEL
from training_platform.sandbox.kubernetes.api_servers import Access
from training_platform.sandbox.kubernetes.values import Json, has_condition

LOG: Final = logging.getLogger("training_platform.sandbox.kubernetes")
MOST_NODES: Final = 200  # of a cluster: each is compared twice a second
_NODES: Final = "/api/v1/nodes"
_SECONDS: Final = 0.5  # between two comparisons
_RUNNING: Final = frozenset({"RUNNING", "RUNNING_WITH_ERROR", "RECONCILING"})
_GPU: Final = "nvidia.com/gpu"


class Kubelets:
    """Keeps a cluster's Node objects equal to ``nodes``, by name, for as long as the block runs.

    A pod that is being deleted, or whose node does not exist any more, is deleted at once: no container of it ever ran.
    """

    def __init__(self, access: Access, nodes: Callable[[], Mapping[str, Json]]) -> None:
        self._client = access.client()
        self._nodes = nodes
        self._ended = Event()
        self._thread = Thread(target=self._run, name="kubelets", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        while not self._ended.wait(_SECONDS):
            try:
                wanted = self._nodes()
                self._register(wanted)
                self._delete_pods(wanted)
            except (httpx.HTTPError, KeyError) as error:  # the next comparison tries again
                LOG.warning("nodes are not up to date: %s", error)

    def _register(self, wanted: Mapping[str, Json]) -> None:
        registered = {node["metadata"]["name"]: node for node in self._items(_NODES)}
        for name in registered.keys() - wanted.keys():
            self._client.delete(f"{_NODES}/{name}").raise_for_status()
        for name, node in wanted.items():
            if name not in registered:
                body = {**node, "apiVersion": "v1", "kind": "Node"}
                self._client.post(_NODES, json=body).raise_for_status()
            if name not in registered or not has_condition(registered[name], "Ready"):
                self._patch(f"{_NODES}/{name}/status", {"status": node["status"]})
                self._patch(f"{_NODES}/{name}", {"spec": node["spec"]})  # the server adds the taint of one not ready

    def _delete_pods(self, nodes: Mapping[str, Json]) -> None:
        for pod in self._items("/api/v1/pods"):
            metadata = pod["metadata"]
            if "deletionTimestamp" in metadata or pod["spec"].get("nodeName", "") not in {*nodes, ""}:
                path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
                self._client.request("DELETE", path, json={"gracePeriodSeconds": 0})

    def _items(self, path: str) -> list[Json]:
        answer = self._client.get(path, params={"resourceVersion": "0"})  # as the server last saw it, from memory
        answer.raise_for_status()
        return list(answer.json()["items"])

    def _patch(self, path: str, body: Json) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        self._client.patch(path, content=json.dumps(body), headers=headers).raise_for_status()


class NodePool(NamedTuple):
    """A node pool as the GKE API describes it, and the number of VMs that it was created with."""

    cluster: str
    name: str
    body: Mapping[str, Any]
    initial_nodes: int = 0

    @property
    def nodes(self) -> int:
        """How many VMs the pool has: the initial ones, and no fewer than its autoscaler keeps."""
        scaling = self.body.get("autoscaling", {})
        if not scaling.get("enabled"):
            return self.initial_nodes
        in_zones: int = scaling.get("minNodeCount", 0) * len(self.body["locations"])
        total: int = scaling.get("totalMinNodeCount", 0)
        return max(self.initial_nodes, total, in_zones)

    @property
    def by_request(self) -> bool:
        """Whether its VMs are queued until a ProvisioningRequest is granted."""
        return bool(self.body.get("queuedProvisioning", {}).get("enabled"))


def node_objects(pools: Iterable[NodePool]) -> dict[str, Json]:
    """Return the nodes of running pools by name, ``MOST_NODES`` at most."""
    running = (pool for pool in pools if pool.body.get("status") in _RUNNING)
    return dict(islice((node for pool in running for node in _of_pool(pool)), MOST_NODES))


def _of_pool(pool: NodePool) -> Iterator[tuple[str, Json]]:
    zones, config = pool.body["locations"], pool.body["config"]
    machine = MACHINE_TYPES.get(config.get("machineType", ""))
    capacity = {**_capacity(config, machine), "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    for index in range(pool.nodes):
        name, zone = f"gke-{pool.cluster[:20]}-{pool.name[:20]}-{index}", zones[index % len(zones)]
        labels = {
            **config.get("labels", {}),
            "cloud.google.com/gke-nodepool": pool.name,
            "kubernetes.io/hostname": name,
            "node.kubernetes.io/instance-type": config.get("machineType", ""),
            "topology.kubernetes.io/region": zone.rpartition("-")[0],
            "topology.kubernetes.io/zone": zone,
            **({"cloud.google.com/gke-spot": "true"} if config.get("spot") else {}),
            **({"cloud.google.com/gke-flex-start": "true"} if config.get("flexStart") else {}),
            **({QUEUED_LABEL: "true"} if pool.by_request else {}),
            **_accelerator_labels(pool, machine, index),
        }
        yield (
            name,
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": list(_taints(pool, machine))},
                "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
            },
        )


def _accelerator_labels(pool: NodePool, machine: MachineType | None, index: int) -> dict[str, str]:
    if gpus := pool.body["config"].get("accelerators"):
        blocks = {level: f"{pool.name}-{level.rpartition('-')[2]}" for level in BLOCK_LEVELS[:-2]}
        host = {BLOCK_LEVELS[-2]: f"{pool.name}-host-{index}"}
        return {"cloud.google.com/gke-accelerator": gpus[0]["acceleratorType"], **blocks, **host}
    if machine is None or machine.accelerator is None:
        return {}
    topology = pool.body.get("placementPolicy", {}).get("tpuTopology") or machine.single_host or ""
    return {
        "cloud.google.com/gke-tpu-accelerator": machine.accelerator.gke_label,
        "cloud.google.com/gke-tpu-topology": topology,
    }


def _capacity(config: Mapping[str, Any], machine: MachineType | None) -> dict[str, str]:
    """Return what pods can request of a VM: vCPUs, memory, and chips, GPUs or the places on shared ones."""
    if machine is None:  # only e2-medium is outside the catalogue
        return {"cpu": "2", "memory": "4Gi"}
    room = {"cpu": str(machine.vcpus), "memory": f"{int(machine.memory_gb)}Gi", "ephemeral-storage": "1Ti"}
    if gpus := config.get("accelerators"):
        partitions = machine.accelerator.partitions if machine.accelerator else {}
        places = int(gpus[0].get("gpuSharingConfig", {}).get("maxSharedClientsPerGpu", 1))
        places *= partitions.get(gpus[0].get("gpuPartitionSize", ""), 1)
        return {**room, _GPU: str(int(gpus[0]["acceleratorCount"]) * places)}
    return {**room, machine.accelerator.resource: str(machine.chips)} if machine.accelerator else room


def _taints(pool: NodePool, machine: MachineType | None) -> Iterator[Json]:
    """Yield a pool's own taints, and those that GKE adds: of GPUs, TPUs, Arm and queued VMs."""
    taints = {taint["key"]: taint for taint in pool.body["config"].get("taints", ())}
    if pool.body["config"].get("accelerators"):
        taints.setdefault(_GPU, {"key": _GPU, "value": "present", "effect": "NO_SCHEDULE"})
    elif machine is not None and machine.accelerator is not None:
        taints["google.com/tpu"] = {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}
    if machine is not None and machine.architecture == "arm64":
        taints[ARCHITECTURE_LABEL] = {"key": ARCHITECTURE_LABEL, "value": "arm64", "effect": "NO_SCHEDULE"}
    if pool.by_request:
        taints[QUEUED_LABEL] = {"key": QUEUED_LABEL, "value": "true", "effect": "NO_SCHEDULE"}
    for taint in taints.values():
        effect = taint["effect"].title().replace("_", "")
        yield {"key": taint["key"], "value": taint.get("value", ""), "effect": effect}
