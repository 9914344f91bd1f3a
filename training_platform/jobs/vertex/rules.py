"""What Vertex AI refuses of a custom job. Facts: Vertex AI docs and protos, read 2026-08-22.

Disks and regions are judged as those of persistent resources are, whose machines a job's are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from training_platform.catalog import BOOT_DISK_LIMITS
from training_platform.catalog.topologies import legal_for, legal_topologies, nearest_topology
from training_platform.catalog.types import MachineType
from training_platform.config.reading.finding import Finding, Path, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.spec.team import PersistentResourceSpec
from training_platform.jobs.data_sets import data_set_findings
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.rules import readable
from training_platform.jobs.spec.vertex import VertexTarget
from training_platform.jobs.vertex.place_rules import place_findings
from training_platform.jobs.vertex.pool_rules import offered, role_findings, wrong_machine
from training_platform.jobs.vertex.pools import pools, program_texts, vertex_target, vms
from training_platform.jobs.vertex.study_rules import study_findings
from training_platform.resources.network.vertex_attachment import attachment
from training_platform.resources.vertex.machines import (
    refused_disk_size,
    refused_disk_type,
    unlisted_region,
    vertex_disk_types,
)

FLEX_HOURS = 7 * 24
MOST_VARIABLES = 100
MOST_ARGS = 100_000  # characters, all arguments together
_SHOWN = 16  # shapes that a finding lists


def vertex_findings(job: ResolvedJob) -> list[Finding]:
    """Return what is wrong with the Vertex AI target of a job whose file the model takes."""
    target = vertex_target(job)
    machine = target.machine
    if refused := wrong_machine(job, ("machine_type",), target):
        return [refused]
    return [
        *_slice(job, target, machine),
        *_capacity(job, target, machine),
        *_times(job, target),
        *_resource(job, target),
        *role_findings(job, target),
        *place_findings(job, target),
        *study_findings(job, target),
        *_shared(job, target, machine),
        *_container(job),
        *_output(job, target),
        *data_set_findings(job, target.region, vertex=True),
    ]


def _slice(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Finding]:
    """Find a TPU without a valid topology or with several replicas, and a topology on any other machine type."""
    path: Path = ("vertex", "topology")
    rule, topology = "job-vertex-topology", target.topology
    if machine.kind != "tpu":
        if topology is not None:
            yield job.finding(path, f"{machine.name} is not a TPU and has no topology", rule=rule, allowed="none")
        return
    if target.replicas != 1:
        message = f"is {target.replicas}: Vertex AI derives a TPU's VMs from the topology"
        yield job.finding(("vertex", "replicas"), message, rule="job-vertex-replicas", allowed="1", nearest=1)
    if topology is None or not legal_for(machine, topology):
        first = list(islice(legal_topologies(machine), _SHOWN + 1))
        allowed = ", ".join(first[:_SHOWN]) + (" and larger ones" if len(first) > _SHOWN else "")
        said = (
            "is missing: a TPU slice needs one" if topology is None else f"{topology!r} is not a valid topology for it"
        )
        nearest = machine.single_host if topology is None else nearest_topology(machine, topology)
        yield job.finding(path, said, rule=rule, allowed=allowed, nearest=nearest)


def _capacity(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Finding]:
    """Find a provisioning model that Vertex AI does not support for the machine type."""
    path: Path = ("vertex", "capacity")
    choices = offered(machine)
    if target.capacity not in choices:
        message = f"{target.capacity} is not offered for {machine.name}"
        nearest = choices[-1] if choices else None
        yield job.finding(path, message, rule="job-vertex-capacity", allowed=", ".join(choices), nearest=nearest)
    elif machine.kind == "tpu" and target.capacity == "spot" and vms(target) > 1:
        message = f"spot is not offered for slices of several VMs, and {target.topology} has {vms(target)}"
        yield job.finding(path, message, rule="job-vertex-capacity", allowed="on-demand", nearest="on-demand")


def _times(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    flex = target.capacity == "flex-start"
    if flex and target.timeout_hours > FLEX_HOURS:
        yield job.finding(
            ("vertex", "timeout_hours"), f"is {target.timeout_hours}", rule="job-vertex-timeout",
            allowed=f"at most {FLEX_HOURS} with flex-start", nearest=FLEX_HOURS,
        )  # fmt: skip
    if target.max_wait_hours is not None and not flex:
        message = f"is for flex-start alone; {target.capacity} does not wait"
        yield job.finding(("vertex", "max_wait_hours"), message, rule="job-vertex-wait", allowed="no max_wait_hours")


def _attachment(job: ResolvedJob, of: VertexTarget | PersistentResourceSpec) -> str | None:
    return attachment(of.network_attachment, of.region, job.scope)


def _resource(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find what differs from the persistent resource: machine and disk must be its own, and no replica is beyond it."""
    if target.persistent_resource is None:
        return
    rule, resource = "job-vertex-resource", job.team.vertex.persistent_resources[target.persistent_resource]
    there = f"persistent resource {target.persistent_resource}"
    if resource.ray:
        message = f"{there} is a Ray cluster, which runs only Ray jobs"
        yield job.finding(("vertex", "persistent_resource"), message, rule=rule, allowed="one without ray, or none")
        return
    own = resource.pool_for(target, target.boot_disk)
    for path, asked, has in (
        (("region",), target.region, resource.region),
        (("machine_type",), target.title, own.title),
        (("boot_disk", "type"), target.boot_disk.type, own.boot_disk.type),
        (("boot_disk", "size_gb"), target.boot_disk.size_gb, own.boot_disk.size_gb),
        (("capacity",), target.capacity, "on-demand"),
        (("network",), target.network, None),
        (("network_attachment",), _attachment(job, target), _attachment(job, resource)),
        (("kms_key",), target.kms_key, job.scope.key(resource.region)),
    ):
        if asked != has:
            message = f"is {asked or 'not written'}, and {there} has {has or 'none'}"
            yield job.finding(("vertex", *path), message, rule=rule, allowed=str(has or "none"), nearest=has)
    needed, machines = Counter[str](), pools(target)
    for pool in machines:
        needed[pool.vm.title] += pool.replicas
    for title, vm in {pool.vm.title: pool.vm for pool in machines}.items():
        replicas, most = needed[title], resource.pool_for(vm, target.boot_disk).most
        if replicas > most:
            message = f"is {replicas}, and {there} has at most {most} VMs"
            yield job.finding(("vertex", "replicas"), message, rule=rule, allowed=f"at most {most}", nearest=most)


def _shared(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Finding]:
    """Find disks and regions as the rules of persistent resources do, under their names."""
    disk, types = target.boot_disk, vertex_disk_types(machine)
    severities: dict[str, Severity] = {"vertex-region": "warning"}
    for rule, field, wrong in (
        ("vertex-boot-disk-size", "boot_disk.size_gb", refused_disk_size(disk.size_gb, BOOT_DISK_LIMITS["vertex"])),
        ("vertex-boot-disk-type", "boot_disk.type", refused_disk_type(machine.name, disk.type, types)),
        ("vertex-region", "region", unlisted_region(machine, target.region)),
    ):
        if wrong:
            severity = severities.get(rule, "error")
            yield job.finding(("vertex", *field.split(".")), rule=rule, severity=severity, **wrong._asdict())


def _container(job: ResolvedJob) -> Iterator[Finding]:
    """Find more variables or longer arguments than Vertex AI takes."""
    if not readable(job):  # what the launcher is told of it is not known
        return
    count, length = program_texts(job)
    if count > MOST_VARIABLES:
        allowed = f"at most {MOST_VARIABLES} on Vertex AI, OUTPUT_URI among them"
        yield job.finding(("env",), f"the container has {count} variables", rule="job-vertex-env", allowed=allowed)
    if length > MOST_ARGS:
        allowed = f"at most {MOST_ARGS:,} characters on Vertex AI"
        yield job.finding(("args",), f"has {length:,} characters", rule="job-vertex-args", allowed=allowed)


def _output(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find a bucket in another region, which Vertex AI refuses, or reads and writes slowly."""
    if job.spec.output is None:
        return
    location = job.team.buckets[job.spec.output].location
    if location != target.region:
        near = sorted(name for name, bucket in job.team.buckets.items() if bucket.location == target.region)
        message = f"{job.spec.output} is in {location}, and the job runs in {target.region}"
        yield job.finding(
            ("output",), message, rule="job-vertex-output", severity="warning",
            allowed=f"a bucket in {target.region}: {enumeration(near) or 'the team has none'}",
            nearest=near[0] if near else None,
        )  # fmt: skip
