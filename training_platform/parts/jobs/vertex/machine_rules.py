"""Rules for the machines of a job on Vertex AI. Facts: Vertex AI docs and protos, read 2026-08-22.

Disks and regions follow the rules of persistent resources, since the same API provides VMs for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from training_platform.catalog import ACCELERATORS, BOOT_DISK_LIMITS, MACHINE_TYPES
from training_platform.catalog.attachments import vertex_counts
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.refused_values import (
    refused_disk_size,
    refused_disk_type,
    unlisted_region,
    vertex_disk_types,
)
from training_platform.catalog.topologies import legal_for, nearest_topology, topologies_text
from training_platform.catalog.types import ChargedCapacity, MachineType
from training_platform.config.model.node_pool import VmSpec
from training_platform.config.model.team import PersistentResourceSpec
from training_platform.config.reading.declaration import RULES, Draft, finding
from training_platform.config.reading.finding import Severity
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.job_model import Reducers, VertexTarget
from training_platform.parts.jobs.job_rules import vertex_rule
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.vertex.worker_pools import Pool, pools, vms
from training_platform.resources.network import attachment

JOB_VERTEX_TOPOLOGY = vertex_rule(
    "job-vertex-topology",
    "Find a TPU without a valid topology, or a topology of another machine.",
)
JOB_VERTEX_REPLICAS = vertex_rule(
    "job-vertex-replicas",
    "Find several replicas of a TPU: its topology determines the number of VMs.",
)


def slice_findings(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Draft]:
    """Find a TPU without a valid topology or with several replicas, and a topology for another machine type."""
    topology = target.topology
    if machine.kind != "tpu":
        if topology is not None:
            yield finding(
                job,
                ("vertex", "topology"),
                f"{machine.name} is not a TPU and has no topology",
                rule=JOB_VERTEX_TOPOLOGY,
                allowed="none",
            )
        return
    if target.replicas != 1:
        yield finding(
            job,
            ("vertex", "replicas"),
            f"is {target.replicas}: Vertex AI derives a TPU's VMs from the topology",
            rule=JOB_VERTEX_REPLICAS,
            allowed="1",
            nearest=1,
        )
    if topology is None:
        yield finding(
            job,
            ("vertex", "topology"),
            "is missing: a TPU slice needs one",
            rule=JOB_VERTEX_TOPOLOGY,
            allowed=topologies_text(machine),
            nearest=machine.single_host,
        )
    elif not legal_for(machine, topology):
        yield finding(
            job,
            ("vertex", "topology"),
            f"{topology!r} is not a valid topology for it",
            rule=JOB_VERTEX_TOPOLOGY,
            allowed=topologies_text(machine),
            nearest=nearest_topology(machine, topology),
        )


JOB_VERTEX_CAPACITY = vertex_rule(
    "job-vertex-capacity",
    "Find a provisioning model that Vertex AI does not offer for the machine type.",
)


def capacity_findings(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Draft]:
    """Find a provisioning model that Vertex AI does not support for the machine type."""
    supported = offered(machine)
    if target.capacity not in supported:
        yield finding(
            job,
            ("vertex", "capacity"),
            f"{target.capacity} is not offered for {machine.name}",
            rule=JOB_VERTEX_CAPACITY,
            allowed=", ".join(supported),
            nearest=supported[-1] if supported else None,
        )
    elif machine.kind == "tpu" and target.capacity == "spot" and vms(target) > 1:
        yield finding(
            job,
            ("vertex", "capacity"),
            f"spot is not offered for slices of several VMs, and {target.topology} has {vms(target)}",
            rule=JOB_VERTEX_CAPACITY,
            allowed="on-demand",
            nearest="on-demand",
        )


_CHOICES: tuple[ChargedCapacity, ...] = ("on-demand", "flex-start", "spot")


def offered(machine: MachineType) -> list[ChargedCapacity]:
    """Return the provisioning models that Vertex AI offers for a machine type."""
    support = machine.accelerator.vertex if machine.accelerator else None
    quotas = support.quotas if support else machine.vertex_cpu_quota
    flex = support is not None and support.flex_start
    return [capacity for capacity in _CHOICES if capacity in quotas and (flex or capacity != "flex-start")]


JOB_VERTEX_RESOURCE = vertex_rule(
    "job-vertex-resource",
    "Find a job that differs from the persistent resource that it runs on, or needs more VMs than the resource has.",
)


def resource_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Find differences from the persistent resource: other machines, disks or networks, or more VMs."""
    if target.persistent_resource is None:
        return
    resource = job.team.vertex.persistent_resources[target.persistent_resource]
    title = f"persistent resource {target.persistent_resource}"
    pool = resource.pool_for(target, target.boot_disk)
    for path, of_job, of_resource in (
        (("region",), target.region, resource.region),
        (("machine_type",), target.title, pool.title),
        (("boot_disk", "type"), target.boot_disk.type, pool.boot_disk.type),
        (("boot_disk", "size_gb"), target.boot_disk.size_gb, pool.boot_disk.size_gb),
        (("capacity",), target.capacity, "on-demand"),
        (("network",), target.network, None),
        (("network_attachment",), _attachment(job, target), _attachment(job, resource)),
        (("kms_key",), target.kms_key, job.scope.key(resource.region)),
    ):
        if of_job != of_resource:
            yield finding(
                job,
                ("vertex", *path),
                f"is {of_job or 'not set'}, but {title} has {of_resource or 'none'}",
                rule=JOB_VERTEX_RESOURCE,
                allowed=str(of_resource or "none"),
                nearest=of_resource,
            )
    replicas = Counter[str]()
    machines: dict[str, VmSpec] = {}
    for worker_pool in pools(target):
        replicas[worker_pool.vm.title] += worker_pool.replicas
        machines[worker_pool.vm.title] = worker_pool.vm
    for machine_title, vm in machines.items():
        max_vms = resource.pool_for(vm, target.boot_disk).max_vms
        if replicas[machine_title] > max_vms:
            yield finding(
                job,
                ("vertex", "replicas"),
                f"is {replicas[machine_title]}, but {title} has at most {max_vms} VMs",
                rule=JOB_VERTEX_RESOURCE,
                allowed=f"at most {max_vms}",
                nearest=max_vms,
            )


def _attachment(job: ResolvedJob, spec: VertexTarget | PersistentResourceSpec) -> str | None:
    return attachment(spec.network_attachment, spec.region, job.scope)


JOB_VERTEX_TPU_POOL = vertex_rule(
    "job-vertex-tpu-pool",
    "Find reducers, a chief or an evaluator in a job on a TPU, which has only one pool.",
)


def role_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Yield the findings about replicas with roles other than worker, each at the machine type of its role."""
    tpu = target.machine.kind == "tpu"
    for pool in pools(target):
        if len(pool.field) == 1:  # the workers'
            continue
        if tpu:
            yield finding(
                job,
                ("vertex", pool.field[0]),
                f"{target.machine_type} is a TPU, and a TPU slice is one pool of one replica",
                rule=JOB_VERTEX_TPU_POOL,
                allowed="none",
            )
        else:
            yield from _machine(job, target, pool)
    if target.reducers and not tpu:
        yield from _reducers(job, target, target.reducers)


JOB_VERTEX_FLEX_POOLS = vertex_rule(
    "job-vertex-flex-pools",
    "Find pools of several machine types with flex-start.",
)


def _machine(job: ResolvedJob, target: VertexTarget, pool: Pool) -> Iterator[Draft]:
    path = ("vertex", *pool.field)
    if refused := wrong_machine(job, pool.field, pool.vm):
        yield refused
    elif target.capacity == "flex-start" and pool.vm.title != target.title:
        yield finding(
            job,
            path,
            f"is {pool.vm.title}, but flex-start requires one machine type for all pools",
            rule=JOB_VERTEX_FLEX_POOLS,
            allowed=target.title,
            nearest=target.title,
        )
    elif target.capacity not in offered(pool.machine):
        yield finding(
            job,
            path,
            f"{target.capacity} is not offered for {pool.vm.title}",
            rule=JOB_VERTEX_CAPACITY,
            allowed=enumeration([name for name, row in MACHINE_TYPES.items() if target.capacity in offered(row)]),
        )
    elif target.persistent_resource:
        resource = job.team.vertex.persistent_resources[target.persistent_resource]
        titles = list(dict.fromkeys(resource_pool.title for resource_pool in resource.pools.values()))
        if pool.vm.title not in titles:
            allowed = ", ".join(titles)
            yield finding(
                job,
                path,
                f"is {pool.vm.title}, but persistent resource {target.persistent_resource} has {allowed}",
                rule=JOB_VERTEX_RESOURCE,
                allowed=allowed,
                nearest=titles[0],
            )


JOB_VERTEX_REDUCERS = vertex_rule(
    "job-vertex-reducers",
    "Find a Reduction Server with GPUs, or in a job with fewer than two GPU VMs.",
)


def _reducers(job: ResolvedJob, target: VertexTarget, reducers: Reducers) -> Iterator[Draft]:
    """Find a Reduction Server for workers without GPUs, with its own GPUs, or for a single worker."""
    if MACHINE_TYPES[reducers.machine_type].accelerator:
        yield finding(
            job,
            ("vertex", "reducers", "machine_type"),
            f"{reducers.machine_type} has accelerators, which Reduction Server does not use",
            rule=JOB_VERTEX_REDUCERS,
            allowed="a machine without",
            nearest="n1-highcpu-16",
        )
    if target.machine.kind != "gpu":
        yield finding(
            job,
            ("vertex", "reducers"),
            f"adds up the gradients of GPUs, but {target.machine.name} has none",
            rule=JOB_VERTEX_REDUCERS,
            allowed="none",
        )
    elif target.replicas == 1:
        yield finding(
            job,
            ("vertex", "reducers"),
            "adds up the gradients of several VMs, but the job has one",
            rule=JOB_VERTEX_REDUCERS,
            allowed="none, or replicas of at least 2",
        )


JOB_VERTEX_MACHINE = vertex_rule(
    "job-vertex-machine",
    "Find a machine type that is not for training on Vertex AI.",
)
JOB_VERTEX_ACCELERATOR = vertex_rule(
    "job-vertex-accelerator",
    "Find GPUs of a kind or number that Vertex AI does not attach to the machine type.",
)


def wrong_machine(job: ResolvedJob, field: tuple[str, ...], vm: VmSpec) -> Draft | None:
    """Return the finding about a machine type that Vertex AI does not offer for training or with its GPUs, or None."""
    machine = MACHINE_TYPES[vm.machine_type]
    if not machine.vertex:
        names = [name for name, row in MACHINE_TYPES.items() if row.vertex]
        return finding(
            job,
            ("vertex", *field),
            f"{machine.name} is not for training on Vertex AI",
            rule=JOB_VERTEX_MACHINE,
            allowed=enumeration(names),
            nearest=find_nearest(machine.name, names),
        )
    counts = vertex_counts(machine, ACCELERATORS[vm.accelerator]) if vm.accelerator else (vm.accelerator_count,)
    if vm.accelerator_count in counts:
        return None
    return finding(
        job,
        ("vertex", *field[:-1], "accelerator_count" if counts else "accelerator"),
        f"Vertex AI does not attach {vm.accelerator_count} {vm.accelerator} to {machine.name}",
        rule=JOB_VERTEX_ACCELERATOR,
        allowed=", ".join(map(str, counts)) or "an N1 machine type that supports it, or no accelerator",
        nearest=min(counts, key=lambda count: abs(count - vm.accelerator_count), default=None),
    )


def shared_findings(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Draft]:
    """Find disks and regions that are also refused for persistent resources, with the same rule ids."""
    disk = target.boot_disk
    types = vertex_disk_types(machine)
    for rule, field, problem in (
        ("vertex-boot-disk-size", "boot_disk.size_gb", refused_disk_size(disk.size_gb, BOOT_DISK_LIMITS["vertex"])),
        ("vertex-boot-disk-type", "boot_disk.type", refused_disk_type(machine.name, disk.type, types)),
        ("vertex-region", "region", unlisted_region(machine, target.region)),
    ):
        if problem:
            severity: Severity = "warning" if rule == "vertex-region" else "error"
            yield finding(job, ("vertex", *field.split(".")), rule=RULES[rule], severity=severity, **problem._asdict())
