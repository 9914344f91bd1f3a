"""Probes that read clusters by their API servers: controllers, nodes with their devices."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import NODES, PODS, ClusterApi, ClusterError
from training_platform.config.expansion import ExpandedPool, pools
from training_platform.config.model.node_pool import POOL_LABEL
from training_platform.parts.adopt.sections.values import key_of
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.probes import Answer, Platform, proven, refuted, undecided
from training_platform.resources import resource_types
from training_platform.resources.node_pools import node_pool_name
from training_platform.resources.resource_types import RELEASE

# Seconds in which a kubelet tries a failed pull four times again: it waits for 10 s at first, and then twice as long as
# before. Source: Kubernetes, pkg/kubelet/kubelet.go and pkg/kubelet/images/image_manager.go, read 2026-11-23.
_RECOVERY: Final = 180.0


def cluster_answers(platform: Platform) -> Iterator[Answer]:
    """Answer for each planned cluster: whether it can be asked."""
    for path in (match.path for match in platform.found(resource_types.CLUSTER)):
        if path not in platform.clusters:
            yield undecided(f"{short(path)} was not asked", "the kubeconfig has no context for it")
            continue
        try:
            kinds = platform.clusters[path].kinds("v1")
        except ClusterError as error:
            if error.status in (401, 403):
                raise
            yield refuted(f"{short(path)} does not answer", str(error))
        else:
            yield proven(f"{short(path)} answers", f"{len(kinds)} kinds of its core API")


def cluster_controllers(platform: Platform) -> Iterator[Answer]:
    """Answer for the pods in each namespace of a planned release, once those that cannot start had time to recover."""
    releases = (one for one in platform.resources if one.type == RELEASE)
    every = [(platform.cluster_of(one), str(one.inputs["namespace"])) for one in releases]
    places = [(cluster, namespace) for cluster, namespace in every if cluster in platform.clusters]

    until = time.monotonic() + min(platform.seconds, _RECOVERY)
    for cluster, namespace in places:  # cluster-answers has told of the other clusters
        pods = _settled_pods(platform.clusters[cluster], namespace, until)
        if not pods:
            yield undecided(f"{namespace} in {short(cluster)} has no pod", "the release may run none, or is starting")
        for pod in pods:
            name, stuck = f"{namespace}/{pod['metadata']['name']}", waiting(pod)
            phase = (pod.get("status") or {}).get("phase")
            if stuck:
                yield refuted(f"{name} does not run: {stuck[0]}", stuck[1])
            elif phase in ("Running", "Succeeded"):
                yield proven(f"{name} runs", ", ".join(_images(pod)))
            else:
                yield undecided(f"{name} is {phase}", "it waits for a node, or starts")


def _settled_pods(api: ClusterApi, namespace: str, until: float) -> list[Json]:
    """Return the pods of a namespace as soon as each of them can start, or as they are at a time."""
    pods: list[Json] = []

    def can_start() -> bool:
        pods[:] = api.objects(PODS, namespace)
        return not any(map(waiting, pods))

    wait_for(can_start, until - time.monotonic())
    return pods


def _images(pod: Json) -> list[str]:
    return [one["image"] for one in pod["spec"]["containers"]]


def waiting(pod: Json) -> tuple[str, str] | None:
    """Return reason and message of a container that cannot start now, initial ones first; None where all can."""
    status = pod.get("status") or {}
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = (one.get("state") or {}).get("waiting") or {}
        if state.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return str(state["reason"]), str(state.get("message", ""))
    return None


def pools_nodes(platform: Platform) -> Iterator[Answer]:
    """Answer for the nodes that are there: devices, drivers by the label of GKE, addresses; no node is started."""
    for path, api in platform.clusters.items():
        of_cluster = (pool for pool in pools(platform.environment) if cluster_of(platform, pool) == path)
        by_name = {node_pool_name(pool, gke): pool for pool in of_cluster for gke in pool.gke_pools}
        good: Counter[str] = Counter()
        for node in api.objects(NODES, ""):
            labels = node["metadata"].get("labels") or {}
            pool = by_name.get(labels.get(POOL_LABEL, ""))
            wrong = list(_node_faults(node, pool))
            yield from (refuted(f"node {node['metadata']['name']} {fault}", short(path)) for fault in wrong)
            if not wrong:
                good[labels.get(POOL_LABEL, "no pool")] += 1
        for name, count in sorted(good.items()):
            yield proven(f"{count} nodes of {name} are ready, private and whole", short(path))
        if not good:
            yield undecided(f"{short(path)} has no node to look at")


def cluster_of(platform: Platform, pool: ExpandedPool) -> str:
    """Return the path of a pool's cluster, empty where it cannot be asked."""
    names = ((path, path.rpartition("/")[2]) for path in platform.clusters)
    return next((path for path, name in names if key_of(platform.name, name) == pool.cluster), "")


def _node_faults(node: Json, pool: ExpandedPool | None) -> Iterator[str]:
    status, labels = node["status"], node["metadata"].get("labels") or {}
    ready: Json = next((row for row in status.get("conditions") or () if row["type"] == "Ready"), {})
    if ready.get("status") != "True":
        yield f"is not ready: {ready.get('reason', 'no condition')}"
    for address in status.get("addresses") or ():
        if address["type"] == "ExternalIP":
            yield f"has an external address, {address['address']}"
    machine = MACHINE_TYPES.get(labels.get("node.kubernetes.io/instance-type", ""))
    if pool is None or machine is None:
        return
    if machine.name != pool.machine.name:
        yield f"is a {machine.name}, and its pool is planned with {pool.machine.name}"
    if machine.accelerator is not None:
        offered = int((status.get("allocatable") or {}).get(machine.accelerator.resource, 0))
        expected = machine.chips * pool.places_per_gpu
        if offered != expected:
            yield f"offers {offered} of {expected} {machine.accelerator.resource}: a faulty device, or no driver"


def short(path: str) -> str:
    """Return a resource's own name."""
    return path.rpartition("/")[2]
