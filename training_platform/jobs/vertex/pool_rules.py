"""What Vertex AI refuses of roles: reducers, a chief and an evaluator of their own, and machines that differ.

Source: Vertex AI docs on distributed training and Dynamic Workload Scheduler, read 2026-08-22.
"""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.attachments import vertex_counts
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import Capacity, MachineType
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.config.spec.node_options import VmSpec
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.vertex import Reducers, VertexTarget
from training_platform.jobs.vertex.pools import Pool, pools

_CHOICES: tuple[Capacity, ...] = ("on-demand", "flex-start", "spot")


def role_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Yield what is wrong with the roles beside the workers, each at its own machine type."""
    others = [pool for pool in pools(target) if len(pool.field) > 1]
    tpu = target.machine.kind == "tpu"
    for pool in others:
        if tpu:
            message = f"{target.machine_type} is a TPU, whose slice is one pool of one replica"
            yield job.finding(("vertex", pool.field[0]), message, rule="job-vertex-tpu-pool", allowed="none")
        else:
            yield from _machine(job, target, pool)
    if target.reducers and not tpu:
        yield from _reducers(job, target, target.reducers)


def offered(machine: MachineType) -> list[Capacity]:
    """Return the provisioning models that Vertex AI has for a machine type."""
    support = machine.accelerator.vertex if machine.accelerator else None
    quotas = support.quotas if support else machine.vertex_cpu_quota
    flex = support is not None and support.flex_start
    return [each for each in _CHOICES if each in quotas and (flex or each != "flex-start")]


def wrong_machine(job: ResolvedJob, field: tuple[str, ...], vm: VmSpec) -> Finding | None:
    """Return the finding of a machine type that is not for training on Vertex AI, or of GPUs that do not go with it."""
    own = MACHINE_TYPES[vm.machine_type]
    if not own.vertex:
        return _not_offered(job, field, own)
    counts = vertex_counts(own, ACCELERATORS[vm.accelerator]) if vm.accelerator else (vm.accelerator_count,)
    if vm.accelerator_count in counts:
        return None
    message = f"{own.name} does not go with {vm.accelerator_count} {vm.accelerator} on Vertex AI"
    allowed = ", ".join(map(str, counts)) or "an N1 machine type that takes it, or no accelerator"
    near = min(counts, key=lambda each: abs(each - vm.accelerator_count), default=None)
    where = ("vertex", *field[:-1], "accelerator_count" if counts else "accelerator")
    return job.finding(where, message, rule="job-vertex-accelerator", allowed=allowed, nearest=near)


def _not_offered(job: ResolvedJob, field: tuple[str, ...], machine: MachineType) -> Finding:
    names = [name for name, each in MACHINE_TYPES.items() if each.vertex]
    return job.finding(
        ("vertex", *field), f"{machine.name} is not for training on Vertex AI", rule="job-vertex-machine",
        allowed=enumeration(names), nearest=find_nearest(machine.name, names),
    )  # fmt: skip


def _machine(job: ResolvedJob, target: VertexTarget, pool: Pool) -> Iterator[Finding]:
    machine, path = pool.machine, ("vertex", *pool.field)
    if refused := wrong_machine(job, pool.field, pool.vm):
        yield refused
    elif target.capacity == "flex-start" and pool.vm.title != target.title:
        message = f"is {pool.vm.title}, and flex-start has one machine type for all pools"
        allowed = target.title
        yield job.finding(path, message, rule="job-vertex-flex-pools", allowed=allowed, nearest=allowed)
    elif target.capacity not in offered(machine):
        allowed = enumeration([name for name, each in MACHINE_TYPES.items() if target.capacity in offered(each)])
        message = f"{target.capacity} is not offered for {pool.vm.title}"
        yield job.finding(path, message, rule="job-vertex-capacity", allowed=allowed)
    elif target.persistent_resource:
        kept = job.team.vertex.persistent_resources[target.persistent_resource].pools.values()
        has = dict.fromkeys(each.title for each in kept)
        if pool.vm.title not in has:
            allowed, nearest = ", ".join(has), next(iter(has))
            message = f"is {pool.vm.title}, and persistent resource {target.persistent_resource} has {allowed}"
            yield job.finding(path, message, rule="job-vertex-resource", allowed=allowed, nearest=nearest)


def _reducers(job: ResolvedJob, target: VertexTarget, reducers: Reducers) -> Iterator[Finding]:
    """Find a Reduction Server without GPUs to serve, with GPUs of its own, or for a single worker."""
    rule, workers = "job-vertex-reducers", target.machine
    path = ("vertex", "reducers")
    if MACHINE_TYPES[reducers.machine_type].accelerator:
        message = f"{reducers.machine_type} has accelerators, which Reduction Server does not use"
        yield job.finding(
            (*path, "machine_type"), message, rule=rule, allowed="a machine without", nearest="n1-highcpu-16"
        )
    if workers.kind != "gpu":
        message = f"adds up the gradients of GPUs, and {workers.name} has none"
        yield job.finding(path, message, rule=rule, allowed="none")
    elif target.replicas == 1:
        message = "adds up the gradients of several VMs, and the job has one"
        yield job.finding(path, message, rule=rule, allowed="none, or replicas of at least 2")
