"""Probes that read clusters through their API servers: controllers, and nodes with their devices."""

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
from training_platform.parts.adopt.matches import object_differences
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.probes import Answer, Platform, proven, refuted, undecided
from training_platform.resources import resource_types
from training_platform.resources.node_pools import node_pool_name
from training_platform.resources.resource_types import RELEASE

# Seconds in which a kubelet repeats a failed pull four times: it waits for 10 s at first, and then twice as long as
# before. Source: Kubernetes, pkg/kubelet/kubelet.go and pkg/kubelet/images/image_manager.go, read 2026-11-23.
_RECOVERY: Final = 180.0


def cluster_answers(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict for each planned cluster on whether its control plane can be reached."""
    for match in platform.existing(resource_types.CLUSTER):
        name = short_name(match.path)
        if match.path not in platform.clusters:
            yield undecided(f"{name} was not contacted", "the kubeconfig has no context for it")
            continue
        try:
            kinds = platform.clusters[match.path].kinds("v1")
        except ClusterError as error:
            if error.status in (401, 403):
                raise
            yield refuted(f"{name} does not answer", str(error))
        else:
            yield proven(f"{name} answers", f"its core API lists {len(kinds)} kinds")


def cluster_objects(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on each existing object that lacks a planned value, and one with the number of all others.

    Kubernetes and Pulumi's plugin drop unknown fields without a message. Helm releases are left out, since a role that
    can read them can read all Secrets. Values of Secrets are left out too. Fields that others set in addition to the
    plan are not a difference.
    """
    same_objects: Counter[str] = Counter()
    for match in platform.in_clusters.values():
        kind = match.planned.inputs.get("kind")
        if kind is None or kind == "Secret":
            continue
        cluster = platform.cluster_of(match.planned)
        changes = [
            str(change) for change in object_differences(match.planned, match.body or {}) if change.planned is not None
        ]
        if changes:
            yield refuted(f"{kind} {match.id} of {short_name(cluster)} differs from the plan", "; ".join(changes))
        else:
            same_objects[cluster] += 1
    for cluster, number in same_objects.items():
        yield proven(f"{short_name(cluster)} has the planned objects", f"{number} objects, compared field by field")


def cluster_controllers(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on the pods in each planned release's namespace. Pods that cannot start get time to recover."""
    deadline = time.monotonic() + min(platform.seconds, _RECOVERY)
    releases = [resource for resource in platform.resources if resource.type == RELEASE]
    for release in releases:
        cluster = platform.cluster_of(release)
        if cluster not in platform.clusters:  # which cluster-answers has reported
            continue
        namespace = str(release.inputs["namespace"])
        pods = _settled_pods(platform.clusters[cluster], namespace, deadline)
        if not pods:
            evidence = "the release may have no pods, or may still be starting"
            yield undecided(f"{namespace} in {short_name(cluster)} has no pod", evidence)
        for pod in pods:
            yield _controller_answer(pod, f"{namespace}/{pod['metadata']['name']}")


def _controller_answer(pod: Json, name: str) -> Answer:
    stuck = start_failure(pod)
    phase = (pod.get("status") or {}).get("phase")
    if stuck:
        reason, message = stuck
        return refuted(f"{name} does not run: {reason}", message)
    if phase in ("Running", "Succeeded"):
        images = [container["image"] for container in pod["spec"]["containers"]]
        return proven(f"{name} runs", ", ".join(images))
    return undecided(f"{name} is {phase}", "it waits for a node, or is starting")


def _settled_pods(api: ClusterApi, namespace: str, deadline: float) -> list[Json]:
    """Return the pods of a namespace when all of them can start, or their state at the deadline."""
    pods: list[Json] = []

    def can_start() -> bool:
        pods[:] = api.objects(PODS, namespace)
        return not any(map(start_failure, pods))

    wait_for(can_start, deadline - time.monotonic())
    return pods


def start_failure(pod: Json) -> tuple[str, str] | None:
    """Return reason and message of the first container that cannot start at present, or None if all can."""
    status = pod.get("status") or {}
    initial_containers = status.get("initContainerStatuses") or ()
    containers = status.get("containerStatuses") or ()
    for container in (*initial_containers, *containers):
        state = (container.get("state") or {}).get("waiting") or {}
        if state.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return str(state["reason"]), str(state.get("message", ""))
    return None


def pools_nodes(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on existing nodes: readiness, devices, drivers (by GKE's label), addresses. Starts no node."""
    for path, api in platform.clusters.items():
        cluster_name = short_name(path)
        pools_by_name: dict[str, ExpandedPool] = {}
        for pool in pools(platform.environment):
            if _cluster_of_pool(platform, pool) == path:
                pools_by_name.update({node_pool_name(pool, gke_pool): pool for gke_pool in pool.gke_pools})
        sound_nodes: Counter[str] = Counter()
        for node in api.objects(NODES, ""):
            pool_name = (node["metadata"].get("labels") or {}).get(POOL_LABEL, "no pool")
            faults = list(_node_faults(node, pools_by_name.get(pool_name)))
            for fault in faults:
                yield refuted(f"node {node['metadata']['name']} {fault}", cluster_name)
            if not faults:
                sound_nodes[pool_name] += 1
        for pool_name, count in sorted(sound_nodes.items()):
            yield proven(f"{count} nodes of {pool_name} are ready and private, with all chips", cluster_name)
        if not sound_nodes:
            yield undecided(f"{cluster_name} has no node without faults")


def _cluster_of_pool(platform: Platform, pool: ExpandedPool) -> str:
    """Return the path of a pool's cluster, or an empty string if the cluster cannot be reached."""
    for path in platform.clusters:
        if short_name(path) == f"{platform.name}-{pool.cluster}":
            return path
    return ""


def _node_faults(node: Json, pool: ExpandedPool | None) -> Iterator[str]:
    status = node["status"]
    labels = node["metadata"].get("labels") or {}
    conditions = status.get("conditions") or ()
    ready: Json = next((condition for condition in conditions if condition["type"] == "Ready"), {})
    if ready.get("status") != "True":
        yield f"is not ready: {ready.get('reason', 'no condition')}"
    for address in status.get("addresses") or ():
        if address["type"] == "ExternalIP":
            yield f"has an external address, {address['address']}"
    machine = MACHINE_TYPES.get(labels.get("node.kubernetes.io/instance-type", ""))
    if pool is None or machine is None:
        return
    if machine.name != pool.machine.name:
        yield f"is a {machine.name}, but its pool is planned with {pool.machine.name}"
    if machine.accelerator is not None:
        resource = machine.accelerator.resource
        offered = int((status.get("allocatable") or {}).get(resource, 0))
        expected = machine.chips * pool.places_per_gpu
        if offered != expected:
            yield f"offers {offered} of {expected} {resource}: a faulty device, or no driver"


def short_name(path: str) -> str:
    """Return the last part of a resource's path."""
    return path.rpartition("/")[2]
