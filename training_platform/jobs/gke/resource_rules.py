"""What a VM of the flavor does not have for a job: CPUs, memory, storage that is near, time to end, and a search."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog.nearest import find_nearest
from training_platform.config.data_sets import reaches
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.jobs.gke.layout import gke_target, placement_levels, shape
from training_platform.jobs.resolve import ResolvedJob

HOST = "host"  # the level of a physical host, on which these machine types have one VM
SPOT_SECONDS = 25  # Source: GKE docs, spot VMs, graceful termination of other than system pods, read 2026-11


def resource_findings(job: ResolvedJob) -> Iterator[Finding]:
    """Yield what is wrong with what a job asks of its VMs and their cluster."""
    yield from _machine(job)
    yield from _directories(job)
    yield from _placement(job)
    gke, flavor = gke_target(job)
    if flavor.capacity == "spot" and gke.grace_seconds > SPOT_SECONDS and "grace_seconds" in gke.model_fields_set:
        message = f"is {gke.grace_seconds}, and VMs of {flavor.name} end {SPOT_SECONDS} seconds after their notice"
        yield job.finding(
            ("gke", "grace_seconds"), message, rule="job-grace", severity="warning",
            allowed=f"at most {SPOT_SECONDS}", nearest=SPOT_SECONDS,
        )  # fmt: skip
    if job.spec.sweep and job.spec.sweep.method != "grid":
        message = f"GKE does not search: a {job.spec.sweep.method} search runs on Vertex AI"
        yield job.finding(("sweep", "method"), message, rule="job-sweep", allowed="grid", nearest="grid")


def _machine(job: ResolvedJob) -> Iterator[Finding]:
    """Find more CPUs or memory than a VM has; what its own software takes of them is not known here."""
    _, flavor = gke_target(job)
    machine, spec = shape(flavor).machine, job.spec
    memory = int(machine.memory_gb)
    for field, asked, has, unit in (
        ("cpu", spec.cpu, machine.vcpus, "vCPUs"),
        ("memory_gib", spec.memory_gib, memory, "GiB"),
        ("shared_memory_gib", spec.shared_memory_gib, memory, "GiB"),
    ):
        if asked and asked >= has:
            message = f"is {asked}, and a VM of {flavor.name} ({machine.name}) has {has} {unit} with its own software's"
            yield job.finding(
                (field,), message, rule="job-machine", allowed=f"less than {has}", nearest=int(has * 0.9) or None
            )


def _placement(job: ResolvedJob) -> Iterator[Finding]:
    """Find a level of a topology that the flavor does not have, and one that can never hold all VMs of the job."""
    gke, flavor = gke_target(job)
    levels, chosen, rule = placement_levels(flavor), gke.placement, "job-placement"
    if chosen is None:
        return
    if not levels:
        slices = bool(flavor.topology_levels)
        why = "puts each slice on VMs of one node pool already" if slices else "has no topology"
        other = "the field left out" + ("" if slices else ", or topology_aware: true of the flavor's pools")
        yield job.finding(("gke", "placement"), f"{flavor.name} {why}", rule=rule, allowed=other)
    elif chosen.level not in levels:
        nearest = next((name for name, label in levels.items() if label == chosen.level), None)
        yield job.finding(
            ("gke", "placement", "level"), f"{chosen.level!r} is not a level of {flavor.name}", rule=rule,
            allowed=", ".join(levels), nearest=nearest or find_nearest(chosen.level, levels),
        )  # fmt: skip
    elif chosen.required and chosen.level == HOST and (gke.nodes or 1) > 1:
        *wider, _ = levels
        message = f"one host has one VM of {flavor.name}, and the job has {gke.nodes}: it would wait for ever"
        yield job.finding(
            ("gke", "placement", "level"), message, rule=rule,
            allowed=f"{', '.join(wider)}, or required: false", nearest=wider[-1],
        )  # fmt: skip


def _directories(job: ResolvedJob) -> Iterator[Finding]:
    """Find directories that the cluster's pods do not reach, and two on one instance, on which a pod waits for ever."""
    gke, _ = gke_target(job)
    mounted: dict[str, str] = {}
    near = [
        name
        for name, directory in job.team.directories.items()
        if reaches(job.environment.filestore[directory.filestore], job.environment.clusters[gke.cluster])
    ]
    for index, mount in enumerate(job.spec.mounts):
        if (name := mount.source.directory) is None:
            continue
        path, instance = ("mounts", index, "source", "directory"), job.team.directories[name].filestore
        if name not in near:
            where = job.environment.filestore[instance].location
            message = f"{name} is on Filestore in {where}, too far from cluster {gke.cluster}"
            allowed = f"directories near it: {enumeration(near) or 'the team has none'}"
            yield job.finding(path, message, rule="job-mount-far", allowed=allowed, nearest=near[0] if near else None)
        elif instance in mounted:
            message = f"{name} is on Filestore instance {instance}, as {mounted[instance]} is: a pod mounts it once"
            yield job.finding(path, message, rule="job-mount-twice", allowed="one directory of each instance")
        mounted.setdefault(instance, name)
