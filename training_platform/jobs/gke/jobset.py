"""A job as a JobSet of Kubernetes, queued by Kueue. Pure functions from a resolved job to a manifest.

JobSet v1alpha2: almost nothing of a JobSet can be changed once it exists, so a job is submitted, never deployed by a
stack. A replicated job's ``replicas`` are slices; its Jobs' ``parallelism`` are the VMs of one slice. A GPU job is one
Job over all of its VMs: a pod's rank is JOB_COMPLETION_INDEX, and pod 0 is reached at ``<job>-slice-0-0.<job>``.
Source: JobSet 0.12 multislice page and GKE's page on multislice TPUs with Kueue, read 2026-11-21.
"""

from __future__ import annotations

from typing import Any

from training_platform.config.expansion.flavors import Flavor
from training_platform.config.expansion.pools import ExpandedPool
from training_platform.jobs.container import container
from training_platform.jobs.gke.gpu_direct import GpuDirect, gpu_direct
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.job import GkeTarget
from training_platform.resources.cloud_names import SERVICE_ACCOUNT
from training_platform.resources.kueue.configuration import KEPT_HOURS
from training_platform.resources.kueue.objects import local_queue_names, resource_flavor
from training_platform.resources.kueue.provisioning import MAX_RUN_ANNOTATION, longest_run_hours

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
ROLE = "slice"  # the replicated job; short, since names of pods hold it beside the job's own (63 characters in all)
# One Job of the set per node pool, which is one slice over several VMs: two of those that are idle look alike to the
# scheduler, and pods of one Job would spread over both.
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
# A pod that ended since its node did, or was drained: the Job fails with a reason of its own, and JobSet starts over
# without counting it as one of max_restarts. What the program does wrong, and a pod that somebody deletes, count.
# Source: JobSet 0.12, pkg/controllers/failure_policy.go and its examples, read 2026-11-22.
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
INTERRUPTED = {
    "name": "interrupted",
    "action": "RestartJobSetAndIgnoreMaxRestarts",
    "onJobFailureReasons": ["PodFailurePolicy"],
}
_TPU_PORTS = (8471, 8080)  # the TPU runtime between hosts; the coordinator between slices


def jobset(job: ResolvedJob) -> dict[str, Any]:
    """Return the JobSet; ValueError for a job without a GKE target."""
    gke, flavor = gke_target(job)
    queue, *_ = local_queue_names(job.team.name)
    priority = {PRIORITY_LABEL: gke.priority} if gke.priority else {}
    slices, hosts = layout(gke, flavor)
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": job.name,
            "namespace": job.team.name,
            "labels": {**job.scope.labels, QUEUE_LABEL: queue, **priority},
            **({"annotations": found} if (found := _annotations(gke, flavor)) else {}),
        },
        "spec": {
            "failurePolicy": {"maxRestarts": gke.max_restarts, "rules": [dict(INTERRUPTED)]},
            "ttlSecondsAfterFinished": KEPT_HOURS * 3600,
            "replicatedJobs": [{"name": ROLE, "replicas": slices, "template": _job(job, gke, flavor, hosts)}],
        },
    }


def _annotations(gke: GkeTarget, flavor: Flavor) -> dict[str, str]:
    """Return what JobSet and Kueue read beside the spec: a queued job always says the run that it asks for."""
    exclusive = EXCLUSIVE if shape(flavor).multi_host else {}
    hours = (gke.max_run_hours or longest_run_hours(flavor)) if flavor.by_request else None
    return {**exclusive, **({MAX_RUN_ANNOTATION: str(hours * 3600)} if hours else {})}


def gke_target(job: ResolvedJob) -> tuple[GkeTarget, Flavor]:
    """Return where the job runs on GKE. Raises ValueError for a job without a GKE target."""
    if job.spec.gke is None or job.flavor is None:
        raise ValueError(f"job {job.name} has no gke target")
    return job.spec.gke, job.flavor


def shape(flavor: Flavor) -> ExpandedPool:
    """Return the pool whose VMs a job is laid out for: of the flavor's pools, one with the largest slices or VMs."""
    return max(flavor.pools, key=lambda pool: pool.chips_per_slice)


def layout(gke: GkeTarget, flavor: Flavor) -> tuple[int, int]:
    """Return the number of Jobs and of pods in each: slices and their VMs, or one and the VMs of a GPU job."""
    if flavor.accelerator.kind == "tpu":
        return gke.slices or 1, shape(flavor).hosts
    return 1, gke.nodes or 1


def _job(job: ResolvedJob, gke: GkeTarget, flavor: Flavor, hosts: int) -> dict[str, Any]:
    direct = gpu_direct(job)
    metadata = {"metadata": {"annotations": dict(direct.annotations)}} if direct else {}
    return {
        "spec": {
            "parallelism": hosts,
            "completions": hosts,
            "completionMode": "Indexed",
            "backoffLimit": 0,  # a lost host stops its whole slice: the set restarts, never one pod
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [dict(DISRUPTED)]}]},
            "template": {**metadata, "spec": _pod(job, gke, flavor, direct)},
        }
    }


def _pod(job: ResolvedJob, gke: GkeTarget, flavor: Flavor, direct: GpuDirect | None) -> dict[str, Any]:
    # Kueue compares the selector with its flavors: one with all of a flavor's labels is a choice of that flavor.
    nodes = resource_flavor(flavor)
    network = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if gke.host_network else {}
    return {
        "restartPolicy": "Never",  # a pod failure policy goes with no other
        "serviceAccountName": SERVICE_ACCOUNT,
        "nodeSelector": nodes["nodeLabels"],
        "tolerations": nodes["tolerations"],
        **network,
        **({"initContainers": list(direct.access.daemons)} if direct and direct.access.daemons else {}),
        "containers": [_container(job, flavor, direct)],
        **({"volumes": list(direct.access.volumes)} if direct else {}),
    }


def _container(job: ResolvedJob, flavor: Flavor, direct: GpuDirect | None) -> dict[str, Any]:
    """Return the one container of a pod, which takes all chips of its VM; GKE refuses part of a TPU VM's."""
    chips = {flavor.accelerator.resource: str(shape(flavor).machine.chips)}
    ports = [{"containerPort": port} for port in _TPU_PORTS] if flavor.accelerator.kind == "tpu" else []
    return {
        "name": "training",
        **container(job, "image", direct.variables if direct else None),
        **({"ports": ports} if ports else {}),
        "resources": {"requests": dict(chips), "limits": chips},
        **_access(direct),
    }


def _access(direct: GpuDirect | None) -> dict[str, Any]:
    """Return what a container sees of its node for GPUDirect, and may do there."""
    if direct is None:
        return {}
    access = direct.access
    rights = {"securityContext": {"capabilities": {"add": list(access.capabilities)}}} if access.capabilities else {}
    return {"volumeMounts": list(access.mounts), **rights}
