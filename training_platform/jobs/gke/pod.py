"""The Job template of a JobSet: one slice, or all VMs of a GPU job, and the pod on each VM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from training_platform.config.expansion.flavors import Flavor
from training_platform.config.spec.node_pool import SLICE_LEVELS
from training_platform.jobs.container import container
from training_platform.jobs.gke.gpu_direct import GpuDirect, gpu_direct
from training_platform.jobs.gke.layout import gke_target, placement_levels, shape
from training_platform.jobs.gke.volumes import SHARED_MEMORY, Volumes, volumes
from training_platform.jobs.outputs import output_variables
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.gke import GkeTarget
from training_platform.resources.cloud_names import SERVICE_ACCOUNT
from training_platform.resources.kueue.objects import ANY_PLACE, resource_flavor

DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
EXPERIMENT_VARIABLES = ("AIP_EXPERIMENT_NAME", "AIP_EXPERIMENT_RUN_NAME")
PREFERRED, REQUIRED = "kueue.x-k8s.io/podset-preferred-topology", "kueue.x-k8s.io/podset-required-topology"
SLICES, SLICE_SIZE = "kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size"
CONTAINER = "training"
_TPU_PORTS = (8471, 8080)  # the TPU runtime between hosts; the coordinator between slices


def job_template(job: ResolvedJob, hosts: int) -> dict[str, Any]:
    """Return the template of a Job with ``hosts`` pods. ValueError for a job without a GKE target."""
    gke, flavor = gke_target(job)
    direct, storage = gpu_direct(job), volumes(job, shape(flavor).machine.chips)
    annotations = {**(direct.annotations if direct else {}), **storage.annotations, **placement(gke, flavor, hosts)}
    return {"spec": job_spec(hosts, pod_template(annotations, _pod(job, gke, flavor, direct, storage)))}


def job_spec(pods: int, template: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job with so many pods, which fails as soon as one of them does."""
    return {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,  # a lost host stops its whole slice: the set restarts, never one pod
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [dict(DISRUPTED)]}]},
        "template": template,
    }


def pod_template(annotations: Mapping[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    """Return the template of a pod."""
    metadata = {"metadata": {"annotations": dict(annotations)}} if annotations else {}
    return {**metadata, "spec": spec}


def placement(gke: GkeTarget, flavor: Flavor, hosts: int) -> dict[str, str]:
    """Return what asks Kueue to place pods near each other: as the job says, else in the narrowest level, if it can.

    A flavor that has no topology admits no job that asks for one. Source: Kueue v0.19.2, topology-aware scheduling.
    """
    if not flavor.topology_levels:
        return {}
    if hosts == 1:
        return dict(ANY_PLACE)
    if flavor.topology_levels == SLICE_LEVELS:  # each Job of the set is a slice, and needs one for itself
        return {SLICES: SLICE_LEVELS[0], SLICE_SIZE: str(hosts)}
    levels, chosen = placement_levels(flavor), gke.placement
    if chosen is None:
        return {PREFERRED: [*levels.values()][-1]}
    return {REQUIRED if chosen.required else PREFERRED: levels[chosen.level]}


def _pod(
    job: ResolvedJob, gke: GkeTarget, flavor: Flavor, direct: GpuDirect | None, storage: Volumes
) -> dict[str, Any]:
    # Kueue compares the selector with its flavors: one with all of a flavor's labels is a choice of that flavor.
    nodes = resource_flavor(flavor)
    every = _merged(direct.access.volumes if direct else (), storage.volumes)
    return {
        **bare_pod(gke, nodes["nodeLabels"], nodes["tolerations"]),
        **({"initContainers": list(direct.access.daemons)} if direct and direct.access.daemons else {}),
        "containers": [_container(job, flavor, direct, storage)],
        **({"volumes": every} if every else {}),
    }


def bare_pod(gke: GkeTarget, labels: Mapping[str, str], tolerations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what a pod has beside containers and volumes, on nodes with some labels and taints."""
    network = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if gke.host_network else {}
    return {
        "restartPolicy": "Never",  # a pod failure policy goes with no other
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": gke.grace_seconds,
        "nodeSelector": dict(labels),
        "tolerations": list(tolerations),
        **network,
    }


def _container(job: ResolvedJob, flavor: Flavor, direct: GpuDirect | None, storage: Volumes) -> dict[str, Any]:
    """Return the one container of a pod, which takes all chips of its VM; GKE refuses part of a TPU VM's."""
    ports = [{"containerPort": port} for port in _TPU_PORTS] if flavor.accelerator.kind == "tpu" else []
    mounts = _merged(direct.access.mounts if direct else (), storage.mounts)
    capabilities = list(direct.access.capabilities) if direct else []
    platform = {**(direct.variables if direct else {}), **platform_variables(job)}
    return {
        "name": CONTAINER,
        **container(job, "image", platform),
        **({"ports": ports} if ports else {}),
        "resources": resources(job, {flavor.accelerator.resource: str(shape(flavor).machine.chips)}),
        **({"volumeMounts": mounts} if mounts else {}),
        **({"securityContext": {"capabilities": {"add": capabilities}}} if capabilities else {}),
    }


def resources(job: ResolvedJob, chips: dict[str, str]) -> dict[str, Any]:
    """Return what the container asks for; a limit on memory keeps its VM alive, one on CPUs would only slow it.

    What /dev/shm may hold is memory: where the job says no more of its memory, it asks for that much.
    """
    spec = job.spec
    asked = {"cpu": str(spec.cpu or ""), "memory": _gib(spec.memory_gib or spec.shared_memory_gib)}
    limits = {"memory": _gib(spec.memory_gib)}
    return {
        "requests": {**chips, **{name: amount for name, amount in asked.items() if amount}},
        "limits": {**chips, **{name: amount for name, amount in limits.items() if amount}},
    }


def _gib(size: int | None) -> str:
    return f"{size}Gi" if size else ""


def platform_variables(job: ResolvedJob) -> dict[str, str]:
    """Return what Vertex AI sets by itself: places of the output, and what its library reads of the experiment."""
    experiment = (
        dict(zip(EXPERIMENT_VARIABLES, (job.spec.experiment, job.name), strict=True)) if job.spec.experiment else {}
    )
    return {**output_variables(job), **experiment}


def _merged(direct: tuple[dict[str, Any], ...], own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return both lists, with /dev/shm once: as the job says it, where it does."""
    taken = {each["name"] for each in own}
    return [*(each for each in direct if each["name"] != SHARED_MEMORY or SHARED_MEMORY not in taken), *own]
