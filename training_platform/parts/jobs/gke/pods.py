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
    """Return the job's image as nodes pull it: of the environment's repository, from the location that serves them."""
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
"""Exit codes of a program that may not be executed or does not exist, as the launcher and shells give them, and of a
container that does not start (containerd's ``StartError``)."""
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
    """Return the template of each of the job's Jobs."""
    direct = gpu_direct(job)
    storage = volumes(job, pod_parts(job), chips=job.chips_per_pod)
    annotations = dict(direct.annotations) if direct else {}
    annotations |= storage.annotations | placement(job)
    template = pod_template(annotations, _pod(job, direct, storage))
    return {"spec": program_spec(job, job.hosts, template)}


def program_spec(job: GkeJob, pods: int, template: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job whose pods run the job's own program.

    Exit codes of ``retry_on``, and those of a program that cannot start, fail it by a rule, whose message JobSet's own
    rules know, and all others by ``backoffLimit``. Never the other way round: the Job controller also applies rules to
    pods of a suspended Job, and would hold the exit code of an eviction against the run when Kueue admits it again.
    Source: Kubernetes v1.36.3, pkg/controller/job, ``getFailJobMessage``, which reads pods without finalizers too; seen
    on a kubelet with Kueue 0.19.2, 2026-11-28.
    """
    codes = sorted({*job.spec.retry_on, *UNSTARTABLE})
    program = {"containerName": CONTAINER, "operator": "In", "values": codes}
    return job_spec(pods, template, {"action": "FailJob", "onExitCodes": program})


def job_spec(pods: int, template: dict[str, Any], *rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job with so many pods, which fails as soon as one of them does; ``rules`` say how."""
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
    """Return the template of a pod, which stays on its VM until it ends."""
    return {"metadata": {"annotations": {**NOT_MOVED, **annotations}}, "spec": spec}


def placement(job: GkeJob) -> dict[str, str]:
    """Return the annotations that place pods near each other: as the job says, or preferably in the narrowest level.

    A flavor that has no topology admits no job that asks for one. Source: Kueue v0.19.2, topology-aware scheduling.
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
    """Return the network devices that each pod claims: none on one VM, on the VM's network, or without GPUDirect."""
    if job.slices * job.hosts == 1 or job.gke.host_network:
        return None
    if job.is_tpu:
        return job.pool.network_devices
    fabric = fabric_of(job.flavor, job.nodes)
    return usable_pools(job.flavor, job.nodes)[0].network_devices if fabric else None


def volume_group(job: GkeJob) -> dict[str, Any]:
    """Return the security context of a pod with mounts, by whose group an image writes to them if its user is not root.

    Cloud Storage FUSE's driver gets it from the kubelet, and mounts with gid, file-mode=664 and dir-mode=775; NFS and
    Lustre stay as they are. Source: GoogleCloudPlatform/gcs-fuse-csi-driver, NodePublishVolume, and lustre-csi-driver,
    csi_driver.yaml, read 2026-11-28.
    """
    return {"fsGroup": TEAM_GROUP, "fsGroupChangePolicy": "OnRootMismatch"} if job.spec.mounts else {}


def program_security(job: GkeJob, capabilities: Sequence[str] = ()) -> dict[str, Any]:
    """Return the security context of the container with the program: containerd's own filter of system calls.

    GKE sets it for all pods of Autopilot, and not in Standard clusters. It refuses mbind and set_mempolicy (numactl),
    perf_event_open, io_uring and new namespaces, and allows ptrace and process_vm_readv.
    Source: GKE docs, about seccomp; containerd 58e6cee, contrib/seccomp/seccomp_default.go; read 2026-11-28.
    """
    added = {"capabilities": {"add": list(capabilities)}} if capabilities else {}
    if job.gke.unconfined:
        return added
    return {**added, **CONFINED}


def bare_pod(job: GkeJob, labels: Mapping[str, str], tolerations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of a pod besides containers and volumes, for nodes with some labels and taints."""
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
    """Return the one container of a pod, which takes all of its VM unless the job says less."""
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
    """Return the variables that Vertex AI sets itself: paths of the output, and the experiment for its library."""
    experiment = (
        dict(zip(EXPERIMENT_VARIABLES, (job.spec.experiment, job.name), strict=True)) if job.spec.experiment else {}
    )
    return {**output_variables(job), **experiment}


def node_variables(job: GkeJob) -> dict[str, Any]:
    """Return the variables by which the job's VMs find each other; Kubernetes numbers the pods of each slice.

    The Job controller writes JOB_COMPLETION_INDEX, and the annotation from which it reads it; JobSet the label.
    Source: JobSet 0.12, ``jobset_types.go``, and Kubernetes' page on indexed Jobs, read 2026-11-23.
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
    """Return both lists, with /dev/shm once; the job's wins."""
    twice = any(row["name"] == SHARED_MEMORY for row in of_job)
    return [*(row for row in of_direct if row["name"] != SHARED_MEMORY or not twice), *of_job]
