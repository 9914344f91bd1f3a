"""Pods of a job on GKE: the pod template on each VM, and the Job around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from training_platform.catalog.types import NetworkDevices
from training_platform.config.model.node_pool import SLICE_LEVELS
from training_platform.parts.jobs.container import ON_GKE, container, image, output_variables
from training_platform.parts.jobs.gke.gke_job import GkeJob
from training_platform.parts.jobs.gke.gpu_direct import GpuDirect, fabric_of, gpu_direct, usable_pools
from training_platform.parts.jobs.gke.pod_sizes import pod_parts, resources
from training_platform.parts.jobs.gke.volumes import (
    LOCAL_CHECKPOINTS_PATH,
    LOCAL_CHECKPOINTS_VARIABLE,
    SHARED_MEMORY,
    Volumes,
    volumes,
)
from training_platform.parts.jobs.rendezvous import RANK, rendezvous
from training_platform.resources.kueue import ANY_PLACE, resource_flavor
from training_platform.resources.pod_admission import CONFINED
from training_platform.resources.scope import SERVICE_ACCOUNT, TEAM_GROUP, repository_id, repository_url


def pulled_image(job: GkeJob) -> str:
    """Return the name under which nodes pull the job's image. If the environment hosts it, use the nearest location."""
    name = image(job)
    images = job.environment.images
    if images is None:
        return name
    nearest = images.nearest(job.region)
    repository = repository_id(job.spec.environment)
    pushed_to = repository_url(repository, job.environment.project, images.location)
    if not name.startswith(f"{pushed_to}/"):
        return name
    return repository_url(repository, job.environment.project, nearest) + name.removeprefix(pushed_to)


UNSTARTABLE: Final = (126, 127, 128)
"""Exit codes of a program that cannot be executed or does not exist, and of a container that does not start.

The launcher and shells return 126 and 127. containerd's ``StartError`` has the code 128.
"""
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
EXPERIMENT_VARIABLES = ("AIP_EXPERIMENT_NAME", "AIP_EXPERIMENT_RUN_NAME")
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
SLICES = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"


CONTAINER = "training"
ROLE = "slice"  # the replicated job; short, since names of pods hold it beside the job's own (63 characters in all)
_TPU_PORTS = (8471, 8080)  # the TPU runtime between hosts; the coordinator between slices


def job_template(job: GkeJob) -> dict[str, Any]:
    """Return the template of the job's Kubernetes Jobs."""
    direct = gpu_direct(job)
    storage = volumes(job, pod_parts(job), chips=job.chips_per_pod)
    annotations = dict(direct.annotations) if direct else {}
    annotations |= storage.annotations | placement(job)
    template = pod_template(annotations, _pod(job, direct, storage))
    return {"spec": program_spec(job, job.hosts, template)}


def program_spec(job: GkeJob, pods: int, template: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job whose pods run the job's own program.

    A pod failure policy rule fails the Job for the exit codes in ``retry_on``, and for those of a program that cannot
    start; JobSet's rules match the message of this rule. ``backoffLimit`` fails it for all other codes. The two must
    not be swapped: the Job controller also applies rules to pods of a suspended Job, so after an eviction by Kueue, the
    exit code of an evicted pod would fail the run when it is admitted again. Source: Kubernetes v1.36.3,
    pkg/controller/job, ``getFailJobMessage``, which also reads pods without finalizers; observed on a kubelet with
    Kueue 0.19.2, 2026-11-28.
    """
    codes = sorted({*job.spec.retry_on, *UNSTARTABLE})
    program = {"containerName": CONTAINER, "operator": "In", "values": codes}
    return job_spec(pods, template, {"action": "FailJob", "onExitCodes": program})


def job_spec(pods: int, template: dict[str, Any], *rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job with a number of pods. It fails when one of them fails, according to ``rules``."""
    return {
        "parallelism": pods,
        "completions": pods,
        "completionMode": "Indexed",
        "backoffLimit": 0,  # a lost host stops its whole slice, so the set restarts and never one pod
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [dict(DISRUPTED)]}, *rules]},
        "template": template,
    }


# The cluster autoscaler would otherwise move a pod that uses less than half of its VM to another VM, which ends the run
# at its last checkpoint. Source: kubernetes/autoscaler 0024f25, FAQ, pods that keep a node; google/tunix #2342, where a
# mostly idle head was lost so; read 2026-11-28.
NOT_MOVED: Final = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def pod_template(annotations: Mapping[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    """Return the template of a pod that stays on its VM until it ends."""
    return {"metadata": {"annotations": {**NOT_MOVED, **annotations}}, "spec": spec}


def placement(job: GkeJob) -> dict[str, str]:
    """Return the annotations that place pods near each other.

    The job sets the level; by default, the narrowest level is preferred. A flavor without a topology does not admit a
    job that requests one. Source: Kueue v0.19.2, topology-aware scheduling.
    """
    if not job.flavor.topology_levels:
        return {}
    if job.hosts == 1:
        return dict(ANY_PLACE)
    if job.flavor.topology_levels == SLICE_LEVELS:  # each Job of the set needs a slice for itself
        return {SLICES: SLICE_LEVELS[0], SLICE_SIZE: str(job.hosts)}
    levels = job.placement_levels
    chosen = job.gke.placement
    if chosen is None:
        return {PREFERRED: [*levels.values()][-1]}
    return {REQUIRED if chosen.required else PREFERRED: levels[chosen.level]}


def _pod(job: GkeJob, direct: GpuDirect | None, storage: Volumes) -> dict[str, Any]:
    # Kueue compares the selector with its flavors: all labels of a flavor choose that flavor.
    nodes = resource_flavor(job.flavor)
    pod = bare_pod(job, nodes["nodeLabels"], nodes["tolerations"])
    if direct and direct.access.daemons:
        pod["initContainers"] = list(direct.access.daemons)
    if group := volume_group(job):
        pod["securityContext"] = group
    pod["containers"] = [_container(job, direct, storage)]
    if merged_volumes := _merged(direct.access.volumes if direct else (), storage.volumes):
        pod["volumes"] = merged_volumes
    if devices := claimed_devices(job):
        pod["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": devices.template}]
    return pod


CLAIM = "network-devices"


def claimed_devices(job: GkeJob) -> NetworkDevices | None:
    """Return the network devices that each pod claims.

    The result is None for a job with one VM, on the host's network, or without GPUDirect.
    """
    if job.slices * job.hosts == 1 or job.gke.host_network:
        return None
    if job.is_tpu:
        return job.pool.network_devices
    fabric = fabric_of(job.flavor, job.nodes)
    return usable_pools(job.flavor, job.nodes)[0].network_devices if fabric else None


def volume_group(job: GkeJob) -> dict[str, Any]:
    """Return the security context of a pod with mounts. Its group lets users other than root write to the mounts.

    The kubelet passes the group to the driver of Cloud Storage FUSE, which mounts with gid, file-mode=664 and
    dir-mode=775. NFS and Lustre are not changed. Source: GoogleCloudPlatform/gcs-fuse-csi-driver, NodePublishVolume,
    and lustre-csi-driver, csi_driver.yaml, read 2026-11-28.
    """
    return {"fsGroup": TEAM_GROUP, "fsGroupChangePolicy": "OnRootMismatch"} if job.spec.mounts else {}


def program_security(job: GkeJob, capabilities: Sequence[str] = ()) -> dict[str, Any]:
    """Return the security context of the program's container: containerd's default filter of system calls.

    GKE sets it for all pods of Autopilot, but not in Standard clusters. It refuses mbind and set_mempolicy (numactl),
    perf_event_open, io_uring and new namespaces, and allows ptrace and process_vm_readv. Source: GKE docs, about
    seccomp; containerd 58e6cee, contrib/seccomp/seccomp_default.go; read 2026-11-28.
    """
    added = {"capabilities": {"add": list(capabilities)}} if capabilities else {}
    if job.gke.unconfined:
        return added
    return {**added, **CONFINED}


def bare_pod(job: GkeJob, labels: Mapping[str, str], tolerations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of a pod other than containers and volumes, for nodes with the given labels and taints."""
    network = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if job.gke.host_network else {}
    return {
        "restartPolicy": "Never",  # a pod failure policy allows no other
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": job.gke.grace_seconds,
        "nodeSelector": dict(labels),
        "tolerations": list(tolerations),
        **network,
    }


def _container(job: GkeJob, direct: GpuDirect | None, storage: Volumes) -> dict[str, Any]:
    """Return the only container of a pod. It takes all of its VM unless the job requests less."""
    chips = job.chips_per_pod
    ports = [{"containerPort": port} for port in _TPU_PORTS] if job.is_tpu else []
    mounts = _merged(direct.access.mounts if direct else (), storage.mounts)
    capabilities = list(direct.access.capabilities) if direct else []
    local = job.spec.local_checkpoints
    requested_chips = {job.flavor.accelerator.resource: str(chips)} if chips else {}
    platform: dict[str, Any] = dict(direct.variables) if direct else {}
    platform |= platform_variables(job) | node_variables(job)
    if local:
        platform[LOCAL_CHECKPOINTS_VARIABLE] = LOCAL_CHECKPOINTS_PATH
    restarts = local.restarts if local else 0
    script = direct.script if direct else ""
    body = {"name": CONTAINER, **container(job, ON_GKE, platform, restarts=restarts, script=script)}
    body["image"] = pulled_image(job)
    if ports:
        body["ports"] = ports
    body["resources"] = resources(job, requested_chips, pod_parts(job))
    if claimed_devices(job):
        body["resources"]["claims"] = [{"name": CLAIM}]
    if mounts:
        body["volumeMounts"] = mounts
    if security := program_security(job, capabilities):
        body["securityContext"] = security
    body["terminationMessagePolicy"] = "FallbackToLogsOnError"  # the pod's status keeps the last lines of its log
    return body


def platform_variables(job: GkeJob) -> dict[str, str]:
    """Return, for GKE, the variables that Vertex AI sets by itself: output paths, and its library's experiment."""
    experiment = (
        dict(zip(EXPERIMENT_VARIABLES, (job.spec.experiment, job.name), strict=True)) if job.spec.experiment else {}
    )
    return {**output_variables(job), **experiment}


def node_variables(job: GkeJob) -> dict[str, Any]:
    """Return the variables with which the job's VMs find each other. Kubernetes numbers the pods of each slice.

    The Job controller sets JOB_COMPLETION_INDEX and the annotation that it is read from. JobSet sets the label. Source:
    JobSet 0.12, ``jobset_types.go``, and Kubernetes' page on indexed Jobs, read 2026-11-23.
    """
    names: list[str] = []
    for number in range(job.slices):
        names += [f"{job.name}-{ROLE}-{number}-{host}.{job.name}" for host in range(job.hosts)]
    rank: Any = "0" if len(names) == 1 else _field("annotations['batch.kubernetes.io/job-completion-index']")
    variables: dict[str, Any] = {}
    if job.slices > 1:
        rank = RANK
        variables["SLICE_INDEX"] = _field("labels['jobset.sigs.k8s.io/job-index']")
        variables["SLICE_HOSTS"] = str(job.hosts)
    if len(names) == 1:
        names = ["localhost"]
    return variables | rendezvous(
        job,
        tpu=job.is_tpu,
        chips=job.chips_per_pod,
        nodes=str(len(names)),
        rank=rank,
        names=",".join(names),
        host=names[0],
    )


def _field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"fieldPath": f"metadata.{path}"}}


def _merged(of_direct: tuple[dict[str, Any], ...], of_job: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of both lists. If both have one for /dev/shm, only the job's entry is kept."""
    twice = any(row["name"] == SHARED_MEMORY for row in of_job)
    return [*(row for row in of_direct if row["name"] != SHARED_MEMORY or not twice), *of_job]
