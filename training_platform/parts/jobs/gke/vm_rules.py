"""Findings about the requests of a job on GKE: CPUs, memory, disk, placement, and directories."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.nearest import find_nearest
from training_platform.config.data_sets import reaches
from training_platform.config.reading.declaration import Draft, finding
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.common_rules import JOB_LOCAL_CHECKPOINTS, JOB_RETRY_ON
from training_platform.parts.jobs.gke.gke_job import GkeJob
from training_platform.parts.jobs.gke.pod_sizes import local_ssds, pod_parts, usable_disk_gib, vm_sizes
from training_platform.parts.jobs.gke.volumes import LOCAL_CHECKPOINTS_PATH
from training_platform.parts.jobs.job_rules import gke_rule
from training_platform.parts.jobs.storage_rules import JOB_MOUNT

OUT_OF_MEMORY = 137  # the exit code of a killed program
HOST = "host"  # the level of a physical host, which has one VM of these machine types


def vm_findings(job: GkeJob) -> Iterator[Draft]:
    """Find requests that the job's VMs or its cluster cannot satisfy."""
    yield from _machine(job)
    yield from _local_checkpoints(job)
    yield from _directories(job)
    yield from _placement(job)
    yield from _file_caches(job)


JOB_MACHINE = gke_rule(
    "job-machine",
    "Find more CPUs, memory or disk than a VM of the flavor has.",
)


def _machine(job: GkeJob) -> Iterator[Draft]:
    """Find a job that requests more CPUs, memory or disk than a VM has. How much the VM itself uses is unknown."""
    pool = job.pool
    spec = job.spec
    units = {"cpu": "vCPUs", "disk_gib": "GiB of disk"}
    for field, (available, usable) in vm_sizes(pool).items():
        requested = getattr(spec, field)
        unit = units.get(field, "GiB")
        if requested and requested >= available:
            nearest = int(available * 0.9)
            if job.gke.gpus:
                nearest = max(1, usable // (pool.machine.chips * pool.places_per_gpu)) * job.gke.gpus
            vm = f"a VM of {job.flavor.name} ({pool.machine.name})"
            message = f"is {requested}, but {vm} has {available} {unit}, which its system software also uses"
            allowed = f"less than {available}"
            yield finding(job, (field,), message, rule=JOB_MACHINE, allowed=allowed, nearest=nearest or None)
    if OUT_OF_MEMORY in spec.retry_on:
        path = ("retry_on", spec.retry_on.index(OUT_OF_MEMORY))
        message = (
            "is also the exit code of a program that ran out of memory: it would restart until its retries are used up"
        )
        yield finding(job, path, message, rule=JOB_RETRY_ON, severity="warning", allowed="other codes")


def _local_checkpoints(job: GkeJob) -> Iterator[Draft]:
    """Find local checkpoints on VMs without local SSD, larger than the job's limits, or in a Pathways job."""
    local = job.spec.local_checkpoints
    rule = JOB_LOCAL_CHECKPOINTS
    if local is None:
        return
    if job.gke.pathways:
        message = "are for programs on the VMs of the slices, but a Pathways job runs its program on another VM"
        yield finding(job, ("local_checkpoints",), message, rule=rule, allowed="the field left out")
        return
    for index, mount in enumerate(job.spec.mounts):
        if mount.path == LOCAL_CHECKPOINTS_PATH:
            message = f"{mount.path} is also the path of local_checkpoints"
            yield finding(job, ("mounts", index, "path"), message, rule=JOB_MOUNT, allowed="different paths")
    without_ssd = [pool.name for pool in job.flavor.pools if not local_ssds(pool)]
    if local.medium == "ssd" and without_ssd:
        names = enumeration(without_ssd)
        message = f"is ssd, but VMs of {names} ({job.flavor.name}) do not store containers' files on local SSD"
        path = ("local_checkpoints", "medium") if "medium" in local.model_fields_set else ("local_checkpoints",)
        allowed = "memory, or a flavor with local SSD"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest="memory")
        return
    parts = pod_parts(job)
    if local.medium == "memory":
        field = "memory_gib"
        shared_memory = job.spec.shared_memory_gib or 0
        room = parts.memory - shared_memory
        amount = f"{room:,} GiB of memory{' without /dev/shm' if shared_memory else ''}"
    else:
        field = "disk_gib"
        room = parts.disk
        amount = f"{room:,} GiB of disk"
    if local.size_gib >= room:
        path = ("local_checkpoints", "size_gib")
        message = f"is {local.size_gib:,}, but the job has {amount} on each VM of {job.flavor.name}"
        allowed = f"less than {room:,}, or a larger {field}"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=max(room // 2, 0) or None)


JOB_MOUNT_FAR = gke_rule(
    "job-mount-far",
    "Find a directory on Filestore that the cluster's pods cannot reach.",
)


def _directories(job: GkeJob) -> Iterator[Draft]:
    """Find directories that the cluster's pods cannot reach."""
    instances = job.environment.filestore
    cluster = job.cluster
    near: list[str] = []
    for name, directory in job.team.directories.items():
        if directory.filestore in instances and reaches(instances[directory.filestore], cluster):
            near.append(name)
    for index, mount in enumerate(job.spec.mounts):
        mounted = mount.source.directory
        if mounted is None or mounted in near:
            continue
        path = ("mounts", index, "source", "directory")
        location = instances[job.team.directories[mounted].filestore].location
        message = f"{mounted} is on Filestore in {location}, too far from cluster {job.gke.cluster}"
        allowed = f"directories near it: {enumeration(near) or 'the team has none'}"
        yield finding(job, path, message, rule=JOB_MOUNT_FAR, allowed=allowed, nearest=near[0] if near else None)


JOB_PLACEMENT = gke_rule(
    "job-placement",
    "Find a placement that the flavor's topology does not have, or that is too small for all VMs.",
)


def _placement(job: GkeJob) -> Iterator[Draft]:
    """Find a level that is not in the flavor's topology, or that can never contain all VMs of the job."""
    levels = job.placement_levels
    chosen = job.gke.placement
    path = ("gke", "placement", "level")
    rule = JOB_PLACEMENT
    if chosen is None:
        return
    if not levels and job.flavor.topology_levels:
        message = f"{job.flavor.name} always puts each slice on VMs of one node pool"
        yield finding(job, ("gke", "placement"), message, rule=rule, allowed="the field left out")
    elif not levels:
        message = f"{job.flavor.name} has no topology"
        allowed = "the field left out, or topology_aware: true of the flavor's pools"
        yield finding(job, ("gke", "placement"), message, rule=rule, allowed=allowed)
    elif chosen.level not in levels:
        same_label = [name for name, label in levels.items() if label == chosen.level]
        nearest = same_label[0] if same_label else find_nearest(chosen.level, levels)
        message = f"{chosen.level!r} is not a level of {job.flavor.name}"
        yield finding(job, path, message, rule=rule, allowed=", ".join(levels), nearest=nearest)
    elif chosen.required and chosen.level == HOST and job.demand > job.pool.machine.chips:
        *wider_levels, _ = levels
        message = f"a host has only one VM of {job.flavor.name}, but the job has {job.gke.nodes}: it would wait forever"
        allowed = f"{', '.join(wider_levels)}, or required: false"
        yield finding(job, path, message, rule=rule, allowed=allowed, nearest=wider_levels[-1])


JOB_FILE_CACHE = gke_rule(
    "job-file-cache",
    "Find bucket caches that are larger than the VM's disk, or than the job's part of the disk.",
)


def _file_caches(job: GkeJob) -> Iterator[Draft]:
    """Find bucket caches that are larger than the disk of the VM, or than the job's share of it."""
    pool = min(job.roomy_pools, key=usable_disk_gib)
    whole = usable_disk_gib(pool)
    part = int(whole * job.part_of_vm(pool))
    total = sum(mount.file_cache_gib for mount in job.spec.mounts)
    if total <= part:
        return
    index = max(range(len(job.spec.mounts)), key=lambda row: job.spec.mounts[row].file_cache_gib)
    has = f"a VM of {job.flavor.name} has {whole:,} GiB of disk for jobs"
    message = f"the job requests caches of {total:,} GiB, but {has}{f', {part:,} for this job' if part < whole else ''}"
    severity: Severity = "error" if total > whole else "warning"
    path = ("mounts", index, "file_cache_gib")
    yield finding(
        job, path, message, rule=JOB_FILE_CACHE, severity=severity, allowed=f"at most {part:,} in all", nearest=part
    )
