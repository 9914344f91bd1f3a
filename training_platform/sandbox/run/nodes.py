"""The nodes of a cluster of the local cloud: a Kubernetes object for each VM that its node pools have now.

Labels and taints are those that GKE gives (GKE docs, labels and taints of nodes, as of the flavors' in
``config.pools``). Room is all that the machine type has; of a VM GKE keeps a few percent for itself. Where VMs
stand in a data centre is invented: those of one pool are in one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import MachineType
from training_platform.config.model.node_pool import BLOCK_LEVELS
from training_platform.config.pools import ARCHITECTURE_LABEL, QUEUED_LABEL
from training_platform.sandbox.cloud.state.store import Record, Store

Json = dict[str, Any]
MOST_NODES: Final = 200  # of a cluster: each is looked at twice a second
_UP: Final = frozenset({"RUNNING", "RUNNING_WITH_ERROR", "RECONCILING"})
_PODS: Final = "110"
_GPU: Final = "nvidia.com/gpu"


def nodes(store: Store, cluster: str) -> dict[str, Json]:
    """Return the nodes by name, ``MOST_NODES`` at most; ``cluster`` is ``projects/*/locations/*/clusters/*``."""
    prefix = f"container/{cluster}/nodePools/"
    pools = [each for each in store.all() if each.name.startswith(prefix) and each.body.get("status") in _UP]
    return dict(islice((node for pool in pools for node in _of_pool(pool)), MOST_NODES))


def _of_pool(pool: Record) -> Iterator[tuple[str, Json]]:
    cluster, zones = pool.name.split("/")[6], pool.body["locations"]
    for index in range(_count(pool.body, pool.meta.get("nodes", 0), len(zones))):
        name = f"gke-{cluster[:20]}-{pool.id[:20]}-{index}"
        yield name, _node(name, pool, zones[index % len(zones)], index)


def _count(body: Json, began_with: int, zones: int) -> int:
    """Return how many VMs a pool has: those it was given, and no fewer than its autoscaler keeps."""
    scaling = body.get("autoscaling", {})
    if not scaling.get("enabled"):
        return began_with
    least: int = max(scaling.get("totalMinNodeCount", 0), scaling.get("minNodeCount", 0) * zones)
    return max(began_with, least)


def _node(name: str, pool: Record, zone: str, index: int) -> Json:
    config = pool.body["config"]
    machine = MACHINE_TYPES.get(config.get("machineType", ""))
    labels = {
        **config.get("labels", {}),
        "cloud.google.com/gke-nodepool": pool.id,
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": config.get("machineType", ""),
        "topology.kubernetes.io/region": zone.rpartition("-")[0],
        "topology.kubernetes.io/zone": zone,
        **_provisioning_labels(pool.body),
        **_accelerator_labels(pool, machine, index),
    }
    room = {**_room(config, machine), "pods": _PODS}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(_taints(pool.body, machine))},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def _provisioning_labels(body: Json) -> dict[str, str]:
    config = body["config"]
    told = {
        "gke-spot": config.get("spot"),
        "gke-flex-start": config.get("flexStart"),
    }
    found = {f"cloud.google.com/{name}": "true" for name, is_so in told.items() if is_so}
    return found | ({QUEUED_LABEL: "true"} if _by_request(body) else {})


def _by_request(body: Json) -> bool:
    return bool(body.get("queuedProvisioning", {}).get("enabled"))


def _accelerator_labels(pool: Record, machine: MachineType | None, index: int) -> dict[str, str]:
    if gpus := pool.body["config"].get("accelerators"):
        places = {level: f"{pool.id}-{level.rpartition('-')[2]}" for level in BLOCK_LEVELS[:-2]}
        host = {BLOCK_LEVELS[-2]: f"{pool.id}-host-{index}"}
        return {"cloud.google.com/gke-accelerator": gpus[0]["acceleratorType"], **places, **host}
    if machine is None or machine.accelerator is None:
        return {}
    topology = pool.body.get("placementPolicy", {}).get("tpuTopology") or machine.single_host or ""
    return {
        "cloud.google.com/gke-tpu-accelerator": machine.accelerator.gke_label,
        "cloud.google.com/gke-tpu-topology": topology,
    }


def _room(config: Json, machine: MachineType | None) -> dict[str, str]:
    """Return what pods can have of a VM: chips, GPUs or the places on shared ones, vCPUs and memory."""
    if machine is None:  # only e2-medium is outside the catalogue
        return {"cpu": "2", "memory": "4Gi"}
    room = {"cpu": str(machine.vcpus), "memory": f"{int(machine.memory_gb)}Gi", "ephemeral-storage": "1Ti"}
    if gpus := config.get("accelerators"):
        parts = machine.accelerator.partitions if machine.accelerator else {}
        places = int(gpus[0].get("gpuSharingConfig", {}).get("maxSharedClientsPerGpu", 1))
        places *= parts.get(gpus[0].get("gpuPartitionSize", ""), 1)
        return {**room, _GPU: str(int(gpus[0]["acceleratorCount"]) * places)}
    return {**room, machine.accelerator.resource: str(machine.chips)} if machine.accelerator else room


def _taints(body: Json, machine: MachineType | None) -> Iterator[Json]:
    """Yield a pool's own taints, and those that GKE adds: of GPUs, TPUs, Arm and queued VMs."""
    own = {each["key"]: each for each in body["config"].get("taints", ())}
    if body["config"].get("accelerators"):
        own.setdefault(_GPU, {"key": _GPU, "value": "present", "effect": "NO_SCHEDULE"})
    elif machine is not None and machine.accelerator is not None:
        own["google.com/tpu"] = {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}
    if machine is not None and machine.architecture == "arm64":
        own[ARCHITECTURE_LABEL] = {"key": ARCHITECTURE_LABEL, "value": "arm64", "effect": "NO_SCHEDULE"}
    if _by_request(body):
        own[QUEUED_LABEL] = {"key": QUEUED_LABEL, "value": "true", "effect": "NO_SCHEDULE"}
    for each in own.values():
        effect = each["effect"].title().replace("_", "")
        yield {"key": each["key"], "value": each.get("value", ""), "effect": effect}
