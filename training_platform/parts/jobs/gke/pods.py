"""Pods of a job on GKE: its layout over slices or VMs, the pod template on each VM, and the volumes of its storage.

Source: kubernetes-sigs/gcp-filestore-csi-driver and GoogleCloudPlatform/gcs-fuse-csi-driver 5fcdc04, docs of their
annotations and volume attributes, read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from training_platform.catalog.locations import region_of
from training_platform.config.expansion import ExpandedPool, Flavor
from training_platform.config.model.node_pool import SLICE_LEVELS
from training_platform.config.names import data_claim
from training_platform.config.reading.source import value_at
from training_platform.parts.jobs.container import (
    ON_GKE,
    container,
    image,
    mount_path,
    output_variables,
    share_folder,
)
from training_platform.parts.jobs.gke.gpu_direct import GpuDirect, gpu_direct
from training_platform.parts.jobs.job_model import GkeTarget, Mount
from training_platform.parts.jobs.rendezvous import RANK, rendezvous
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.resources.kueue import ANY_PLACE, longest_run_hours, resource_flavor, run_limit_hours
from training_platform.resources.scope import SERVICE_ACCOUNT, TEAM_GROUP, bucket_id, repository_id, repository_url


def gke_target(job: ResolvedJob) -> tuple[GkeTarget, Flavor]:
    """Return where the job runs on GKE. Raises ValueError for a job without a GKE target."""
    if job.spec.gke is None or job.flavor is None:
        raise ValueError(f"job {job.name} has no gke target")
    return job.spec.gke, job.flavor


def pulled_image(job: ResolvedJob) -> str:
    """Return the job's image as nodes pull it: of the environment's repository, from the location that serves them."""
    gke, _ = gke_target(job)
    name = image(job)
    images = job.environment.images
    if images is None:
        return name
    nearest = images.nearest(region_of(job.environment.clusters[gke.cluster].location))
    repository = repository_id(job.spec.environment)
    pushed_to = repository_url(repository, job.environment.project, images.location)
    if not name.startswith(f"{pushed_to}/"):
        return name
    return repository_url(repository, job.environment.project, nearest) + name.removeprefix(pushed_to)


def shape(flavor: Flavor) -> ExpandedPool:
    """Return the pool whose VMs a job is laid out for: of the flavor's pools, one with the largest slices or VMs."""
    return max(flavor.pools, key=lambda pool: pool.chips_per_slice)


def layout(gke: GkeTarget, flavor: Flavor) -> tuple[int, int]:
    """Return the number of Jobs and of pods in each: slices and their VMs, or one and the VMs of a GPU job."""
    if flavor.accelerator.kind == "tpu":
        return gke.slices or 1, shape(flavor).hosts
    return 1, gke.nodes or 1


def chips_each(gke: GkeTarget, flavor: Flavor) -> int:
    """Return the chips or GPUs of each pod: the job's number, or all of its VM; 0 on VMs without accelerators."""
    return gke.gpus or shape(flavor).machine.chips


def cpus_each(job: ResolvedJob) -> int | None:
    """Return the vCPUs that each pod requests; None if it requests none, since its accelerators reserve the VM.

    On VMs without accelerators nine tenths are asked for unless the job says a number: no two such pods share a VM.
    """
    if job.spec.cpu or job.flavor is None or job.flavor.accelerator.kind != "cpu":
        return job.spec.cpu
    return int(shape(job.flavor).machine.vcpus * 0.9) or 1


def part_of_vm(job: ResolvedJob, pool: ExpandedPool | None = None) -> float:
    """Return the part that each pod has of a VM of a pool, by default the one that the job is laid out for.

    It is counted in accelerators, or in places on shared ones, and in vCPUs on VMs without.
    """
    gke, flavor = gke_target(job)
    pool = pool or shape(flavor)
    if pool.machine.chips:
        return min(1, chips_each(gke, flavor) / (pool.machine.chips * pool.places_per_gpu))
    return min(1, job.spec.cpu / pool.machine.vcpus) if job.spec.cpu else 1


def roomy_pools(job: ResolvedJob) -> list[ExpandedPool]:
    """Return the pools of the job's flavor whose VMs have room for one of its pods."""
    gke, flavor = gke_target(job)
    chips = chips_each(gke, flavor)
    roomy = [pool for pool in flavor.pools if pool.machine.chips * pool.places_per_gpu >= chips]
    return roomy or [shape(flavor)]


def placement_levels(flavor: Flavor) -> dict[str, str]:
    """Return the levels of a flavor's topology with several VMs by name, the widest first; none for slices.

    The level of Kubernetes' host names is one VM, and a job has whole VMs.
    """
    levels = flavor.topology_levels[:-1] if flavor.topology_levels != SLICE_LEVELS else ()
    return {level.rpartition("-")[2]: level for level in levels}


def run_hours(job: ResolvedJob) -> int | None:
    """Return a job's longest run, for which queued VMs are requested; None if nothing limits it."""
    gke, flavor = gke_target(job)
    limits = [gke.max_run_hours, run_limit_hours(job.team, job.environment)]
    if flavor.by_request and not gke.max_run_hours:
        limits.append(longest_run_hours(flavor))
    return min((hours for hours in limits if hours), default=None)


LONGEST_LIFE = 7 * 24  # hours. Source: GKE docs, flex-start and queued provisioning, read 2026-04


def vm_hours(flavor: Flavor) -> int | None:
    """Return how long VMs of a flavor exist at most, from its pools' ``max_run_hours``; None without an end."""
    if flavor.compute_class or flavor.capacity not in ("flex-start", "queued-provisioning"):
        return None
    return min(LONGEST_LIFE, longest_run_hours(flavor) or LONGEST_LIFE)


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


def job_template(job: ResolvedJob, hosts: int) -> dict[str, Any]:
    """Return the template of a Job with ``hosts`` pods. ValueError for a job without a GKE target."""
    gke, flavor = gke_target(job)
    direct = gpu_direct(job)
    storage = volumes(job, pod_parts(job), chips=chips_each(gke, flavor))
    annotations = dict(direct.annotations) if direct else {}
    annotations |= storage.annotations | placement(gke, flavor, hosts)
    template = pod_template(annotations, _pod(job, gke, flavor, direct, storage))
    return {"spec": program_spec(job, hosts, template)}


def program_spec(job: ResolvedJob, pods: int, template: dict[str, Any]) -> dict[str, Any]:
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


def placement(gke: GkeTarget, flavor: Flavor, hosts: int) -> dict[str, str]:
    """Return the annotations that place pods near each other: as the job says, or preferably in the narrowest level.

    A flavor that has no topology admits no job that asks for one. Source: Kueue v0.19.2, topology-aware scheduling.
    """
    if not flavor.topology_levels:
        return {}
    if hosts == 1:
        return dict(ANY_PLACE)
    if flavor.topology_levels == SLICE_LEVELS:  # each Job of the set needs a slice for itself
        return {SLICES: SLICE_LEVELS[0], SLICE_SIZE: str(hosts)}
    levels = placement_levels(flavor)
    chosen = gke.placement
    if chosen is None:
        return {PREFERRED: [*levels.values()][-1]}
    return {REQUIRED if chosen.required else PREFERRED: levels[chosen.level]}


def _pod(
    job: ResolvedJob, gke: GkeTarget, flavor: Flavor, direct: GpuDirect | None, storage: Volumes
) -> dict[str, Any]:
    # Kueue compares the selector with its flavors: all labels of a flavor choose that flavor.
    nodes = resource_flavor(flavor)
    pod = bare_pod(gke, nodes["nodeLabels"], nodes["tolerations"])
    if direct and direct.access.daemons:
        pod["initContainers"] = list(direct.access.daemons)
    if group := volume_group(job):
        pod["securityContext"] = group
    pod["containers"] = [_container(job, flavor, direct, storage)]
    if merged_volumes := _merged(direct.access.volumes if direct else (), storage.volumes):
        pod["volumes"] = merged_volumes
    return pod


def volume_group(job: ResolvedJob) -> dict[str, Any]:
    """Return the security context of a pod with mounts, by whose group an image writes to them if its user is not root.

    Cloud Storage FUSE's driver gets it from the kubelet, and mounts with gid, file-mode=664 and dir-mode=775; NFS and
    Lustre stay as they are. Source: GoogleCloudPlatform/gcs-fuse-csi-driver, NodePublishVolume, and lustre-csi-driver,
    csi_driver.yaml, read 2026-11-28.
    """
    return {"fsGroup": TEAM_GROUP, "fsGroupChangePolicy": "OnRootMismatch"} if job.spec.mounts else {}


def program_security(job: ResolvedJob, capabilities: Sequence[str] = ()) -> dict[str, Any]:
    """Return the security context of the container with the program: containerd's own filter of system calls.

    GKE sets it for all pods of Autopilot, and not in Standard clusters. It refuses mbind and set_mempolicy (numactl),
    perf_event_open, io_uring and new namespaces, and allows ptrace and process_vm_readv.
    Source: GKE docs, about seccomp; containerd 58e6cee, contrib/seccomp/seccomp_default.go; read 2026-11-28.
    """
    added = {"capabilities": {"add": list(capabilities)}} if capabilities else {}
    gke, _ = gke_target(job)
    if gke.unconfined:
        return added
    return {**added, "seccompProfile": {"type": "RuntimeDefault"}, "allowPrivilegeEscalation": False}


def bare_pod(gke: GkeTarget, labels: Mapping[str, str], tolerations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of a pod besides containers and volumes, for nodes with some labels and taints."""
    network = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if gke.host_network else {}
    return {
        "restartPolicy": "Never",  # a pod failure policy allows no other
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": gke.grace_seconds,
        "nodeSelector": dict(labels),
        "tolerations": list(tolerations),
        **network,
    }


def _container(job: ResolvedJob, flavor: Flavor, direct: GpuDirect | None, storage: Volumes) -> dict[str, Any]:
    """Return the one container of a pod, which takes all of its VM unless the job says less."""
    chips = chips_each(gke_target(job)[0], flavor)
    ports = [{"containerPort": port} for port in _TPU_PORTS] if flavor.accelerator.kind == "tpu" else []
    mounts = _merged(direct.access.mounts if direct else (), storage.mounts)
    capabilities = list(direct.access.capabilities) if direct else []
    local = job.spec.local_checkpoints
    requested_chips = {flavor.accelerator.resource: str(chips)} if chips else {}
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
    if mounts:
        body["volumeMounts"] = mounts
    if security := program_security(job, capabilities):
        body["securityContext"] = security
    body["terminationMessagePolicy"] = "FallbackToLogsOnError"  # the pod's status keeps the last lines of its log
    return body


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A pod's part of its VM: limits of ``memory`` and ``disk`` in GiB, and requests, also of vCPUs.

    ``cpus`` and what is asked for are 0 for a pod that has its VM alone: nothing else can take its place there.
    """

    memory: int
    disk: int
    cpus: int = 0
    asked_memory: int = 0
    asked_disk: int = 0

    @property
    def shared_memory(self) -> int:
        """The default GiB of /dev/shm: half of the memory, as on Linux."""
        return max(1, self.memory // 2)


MODEL_GIB: Final = 30  # seven billion parameters in 16 bits: 14 GiB, loaded once and saved once


def pod_parts(job: ResolvedJob) -> Parts:
    """Return a pod's part of its VM, from defaults for the smallest VMs with room for it, and from the job's fields.

    A pod that shares its VM asks for its part, and so leaves to each other accelerator as much. Its disk may hold a
    model in any case: 200 GB for eight GPUs leave each 9 GiB.
    """
    spec = job.spec
    pools = roomy_pools(job)
    parts = {pool.name: part_of_vm(job, pool) for pool in pools}
    memory = max(1, min(int(usable_memory_gib(pool) * parts[pool.name]) for pool in pools))
    disk = max(1, min(int(usable_disk_gib(pool) * parts[pool.name]) for pool in pools))
    limits = Parts(
        memory=spec.memory_gib or max(memory, spec.shared_memory_gib or 0),
        disk=spec.disk_gib or max(disk, min(MODEL_GIB, *map(usable_disk_gib, pools))),
    )
    if all(part == 1 for part in parts.values()) or not shape(gke_target(job)[1]).machine.chips:
        return limits
    return replace(
        limits,
        cpus=max(1, min(int(pool.machine.vcpus * 0.9 * parts[pool.name]) for pool in pools)),
        asked_memory=memory,
        asked_disk=disk,
    )


def resources(job: ResolvedJob, chips: dict[str, str], parts: Parts | None = None) -> dict[str, Any]:
    """Return the container's requests and limits; without a limit of CPUs, which would only slow it.

    Without ``parts`` it has no limits but the job's own.

    A program that outgrows its limits fails, and its restarts are counted. Without limits the kubelet would evict it to
    save the VM, as it does when a spot VM ends: without a count, and so for ever. What /dev/shm and checkpoints in
    memory may hold is memory.
    Source: Kubernetes v1.36.3, pkg/kubelet/eviction, whose evictions for a pod's own limits are no disruptions.
    """
    spec = job.spec
    sizes_gib = {"memory": parts.memory if parts else spec.memory_gib, "ephemeral-storage": spec.disk_gib}
    if parts and not spec.disk_gib:
        caches = sum(mount.file_cache_gib for mount in spec.mounts)  # of a sidecar, counted with the pod
        sizes_gib["ephemeral-storage"] = parts.disk + caches
    cpus = cpus_each(job) or (parts.cpus if parts else 0)
    cpu = {"cpu": str(cpus)} if cpus else {}
    limits = {name: f"{size}Gi" for name, size in sizes_gib.items() if size}
    local = {spec.local_checkpoints.medium: spec.local_checkpoints.size_gib} if spec.local_checkpoints else {}
    in_memory = (spec.shared_memory_gib or 0) + local.get("memory", 0)
    on_disk = local.get("ssd", 0)
    requested = {
        "memory": spec.memory_gib or max(in_memory, parts.asked_memory if parts else 0),
        "ephemeral-storage": spec.disk_gib or max(on_disk, parts.asked_disk if parts else 0),
    }
    # Without a request Kubernetes would take the limit.
    requests = {name: f"{size}Gi" if size else "0" for name, size in requested.items() if size or name in limits}
    return {"requests": {**chips, **cpu, **requests}, "limits": {**chips, **limits}}


_PAGES: Final = ("node_config", "linux_node_config", "hugepages_config")


def usable_memory_gib(pool: ExpandedPool) -> int:
    """Return the GiB of a VM's memory that a job may use: nine tenths of what GKE and large pages leave.

    Source of GKE's reservation: GKE docs, plan node sizes. Unverified: the figures were not read there again.
    """
    usable = remaining_gb = float(pool.machine.memory_gb)
    for step, share in ((4, 0.25), (4, 0.2), (8, 0.1), (112, 0.06), (usable, 0.02)):
        usable -= min(remaining_gb, step) * share
        remaining_gb = max(0.0, remaining_gb - step)
    pages = value_at(pool.spec.provider_inputs, _PAGES) or {}
    usable -= 0.1  # the kubelet evicts below 100 MiB
    usable -= pages.get("hugepage_size2m", 0) / 512 + pages.get("hugepage_size1g", 0)
    return max(1, int(usable * 0.9))


def usable_disk_gib(pool: ExpandedPool) -> int:
    """Return the GiB of a VM's own disk that a job may fill: three quarters of what GKE leaves, to leave images room.

    Source of GKE's reservation: GKE docs, plan node sizes. Unverified: the figures were not read there again.
    """
    size = local_disk_gib(pool)
    disks = local_ssds(pool)
    reserved = 25 * (min(disks, 3) + 1) if disks else min(size / 2, 6 + size * 0.35, 100)
    return max(1, int((size * 0.9 - reserved) * 0.75))


def local_disk_gib(pool: ExpandedPool) -> int:
    """Return the GiB of the disk for images and containers' own files: local SSD where the VM has it, or boot disk."""
    return local_ssds(pool) * pool.machine.local_ssd.partition_gib or pool.spec.boot_disk.size_gb


def local_ssds(pool: ExpandedPool) -> int:
    """Return the number of local SSDs that hold images and containers' own files."""
    local_ssd = pool.spec.local_ssd
    return (local_ssd.count or pool.machine.local_ssd.bundled) if local_ssd.use == "ephemeral" else 0


def platform_variables(job: ResolvedJob) -> dict[str, str]:
    """Return the variables that Vertex AI sets itself: paths of the output, and the experiment for its library."""
    experiment = (
        dict(zip(EXPERIMENT_VARIABLES, (job.spec.experiment, job.name), strict=True)) if job.spec.experiment else {}
    )
    return {**output_variables(job), **experiment}


def node_variables(job: ResolvedJob) -> dict[str, Any]:
    """Return the variables by which the job's VMs find each other; Kubernetes numbers the pods of each slice.

    The Job controller writes JOB_COMPLETION_INDEX, and the annotation from which it reads it; JobSet the label.
    Source: JobSet 0.12, ``jobset_types.go``, and Kubernetes' page on indexed Jobs, read 2026-11-23.
    """
    gke, flavor = gke_target(job)
    slices, hosts = layout(gke, flavor)
    names = [f"{job.name}-{ROLE}-{number}-{host}.{job.name}" for number in range(slices) for host in range(hosts)]
    rank: Any = "0" if len(names) == 1 else _field("annotations['batch.kubernetes.io/job-completion-index']")
    variables: dict[str, Any] = {}
    if slices > 1:
        rank = RANK
        variables["SLICE_INDEX"] = _field("labels['jobset.sigs.k8s.io/job-index']")
        variables["SLICE_HOSTS"] = str(hosts)
    if len(names) == 1:
        names = ["localhost"]
    return variables | rendezvous(
        job,
        tpu=flavor.accelerator.kind == "tpu",
        chips=chips_each(gke, flavor),
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


FUSE_DRIVER: Final = "gcsfuse.csi.storage.gke.io"


SHARED_MEMORY: Final = "shared-memory"


SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 # the pod's own folder


LOCAL_CHECKPOINTS: Final = "local-checkpoints"


LOCAL_CHECKPOINTS_PATH: Final = "/local-checkpoints"


LOCAL_CHECKPOINTS_VARIABLE: Final = "LOCAL_CHECKPOINT_DIR"


# The sidecar's defaults, 250m and 256Mi, slow a job that reads a lot; 0 is no limit.
_FUSE_ANNOTATIONS = {
    "gke-gcsfuse/volumes": "true",
    "gke-gcsfuse/cpu-limit": "0",
    "gke-gcsfuse/memory-limit": "0",
    "gke-gcsfuse/ephemeral-storage-limit": "0",
}


_FUSE_OPTIONS = "implicit-dirs"  # prefixes of object names count as folders


@dataclass(frozen=True, kw_only=True)
class Volumes:
    """The parts of a pod that hold its storage; ``mounts`` are those of the container that trains."""

    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)


def volumes(job: ResolvedJob, parts: Parts | None = None, *, chips: int) -> Volumes:
    """Return the volumes of a job's pods with ``chips`` accelerators each."""
    every = list(_storage(job))
    if (memory := shared_memory(job, parts, chips=chips)) is not None:
        every.append((memory, {"name": SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH}))
    if local := job.spec.local_checkpoints:
        medium = {"medium": "Memory"} if local.medium == "memory" else {}
        folder = {"name": LOCAL_CHECKPOINTS, "emptyDir": {**medium, "sizeLimit": f"{local.size_gib}Gi"}}
        every.append((folder, {"name": LOCAL_CHECKPOINTS, "mountPath": LOCAL_CHECKPOINTS_PATH}))
    data_sets = job.environment.data_sets
    sources = [mount.source for mount in job.spec.mounts]
    fuse = any(source.bucket or (source.data_set and data_sets[source.data_set].bucket) for source in sources)
    return Volumes(
        volumes=[volume for volume, _ in every],
        mounts=[mount for _, mount in every],
        annotations=dict(_FUSE_ANNOTATIONS) if fuse else {},
    )


def shared_memory(job: ResolvedJob, parts: Parts | None = None, *, chips: int) -> dict[str, Any] | None:
    """Return the volume for /dev/shm; None without accelerators and data loaders, for which 64 MiB suffice.

    PyTorch's data loaders hand over batches there, and end in a bus error where it is full. What it holds counts as the
    container's memory.
    """
    size = job.spec.shared_memory_gib
    if size == 0 or (size is None and not chips and not job.spec.data_loaders):
        return None
    size = size or (parts.shared_memory if parts else None)
    limit = {"sizeLimit": f"{size}Gi"} if size else {}
    return {"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory", **limit}}


def _storage(job: ResolvedJob) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the volume and the container's mount for each mount of the job."""
    for mount in job.spec.mounts:
        name = f"mount-{mount.name}"
        inside: dict[str, Any] = {"name": name, "mountPath": mount_path(job, mount)}
        if mount.read_only:
            inside["readOnly"] = True
        if directory := mount.source.directory:
            if folder := share_folder(job, directory):
                inside["subPath"] = folder
            yield {"name": name, "persistentVolumeClaim": {"claimName": directory}}, inside
        elif data_set := mount.source.data_set:
            claim: dict[str, Any] = {"claimName": data_claim(data_set)}
            if mount.read_only or job.environment.data_sets[data_set].writer != job.team.name:
                claim["readOnly"] = inside["readOnly"] = True
            yield {"name": name, "persistentVolumeClaim": claim}, inside
        elif bucket := mount.source.bucket:
            yield {"name": name, "csi": _fuse(job, bucket_id(job.scope, bucket), mount)}, inside


def _fuse(job: ResolvedJob, bucket: str, mount: Mount) -> dict[str, Any]:
    """Return the driver's part of a volume; on the VM's network, an option makes it act as the pod's account."""
    host = {"hostNetworkPodKSA": "true"} if job.spec.gke and job.spec.gke.host_network else {}
    cache = {"fileCacheCapacity": f"{mount.file_cache_gib}Gi", "fileCacheForRangeRead": "true"}
    attributes = {"bucketName": bucket, "mountOptions": _FUSE_OPTIONS}
    if mount.file_cache_gib:
        attributes |= cache
    volume: dict[str, Any] = {"driver": FUSE_DRIVER}
    if mount.read_only:
        volume["readOnly"] = True
    return {**volume, "volumeAttributes": attributes | host}
