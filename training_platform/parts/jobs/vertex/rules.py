"""Rules for jobs on Vertex AI. Facts: Vertex AI docs and protos, read 2026-08-22.

Disks and regions follow the rules of persistent resources, since both get their VMs from the same API.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from training_platform.catalog import ACCELERATORS, BOOT_DISK_LIMITS, MACHINE_TYPES
from training_platform.catalog.attachments import vertex_counts
from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.refused_values import (
    refused_disk_size,
    refused_disk_type,
    unlisted_region,
    vertex_disk_types,
)
from training_platform.catalog.topologies import legal_for, nearest_topology, topologies_text
from training_platform.catalog.types import Capacity, MachineType
from training_platform.config.model.node_pool import VmSpec
from training_platform.config.model.team import OWN_ATTACHMENT, PersistentResourceSpec
from training_platform.config.reading.finding import Finding, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.references import missing_attachment
from training_platform.parts.jobs.common_rules import data_set_findings, readable
from training_platform.parts.jobs.container import fixed_path, mount_path
from training_platform.parts.jobs.job_model import Pipeline, Reducers, Sweep, VertexTarget
from training_platform.parts.jobs.rendezvous import launcher_findings
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.vertex.worker_pools import Pool, pools, program_texts, vertex_target, vms
from training_platform.resources.network import attachment

FLEX_HOURS = 7 * 24
MOST_VARIABLES = 100
MOST_ARGS = 100_000  # characters, all arguments together


def vertex_findings(job: ResolvedJob) -> list[Finding]:
    """Return the findings about the Vertex AI target of a valid job file."""
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
        *launcher_findings(job, where="Vertex AI", nodes=vms(target), chips=machine.chips),
        *_output(job, target),
        *data_set_findings(job, target.region, vertex=True),
    ]


def _slice(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Finding]:
    """Find a TPU without a valid topology or with several replicas, and a topology on any other machine type."""
    topology = target.topology
    if machine.kind != "tpu":
        if topology is not None:
            yield job.finding(
                ("vertex", "topology"),
                f"{machine.name} is not a TPU and has no topology",
                rule="job-vertex-topology",
                allowed="none",
            )
        return
    if target.replicas != 1:
        yield job.finding(
            ("vertex", "replicas"),
            f"is {target.replicas}: Vertex AI derives a TPU's VMs from the topology",
            rule="job-vertex-replicas",
            allowed="1",
            nearest=1,
        )
    if topology is None:
        yield job.finding(
            ("vertex", "topology"),
            "is missing: a TPU slice needs one",
            rule="job-vertex-topology",
            allowed=topologies_text(machine),
            nearest=machine.single_host,
        )
    elif not legal_for(machine, topology):
        yield job.finding(
            ("vertex", "topology"),
            f"{topology!r} is not a valid topology for it",
            rule="job-vertex-topology",
            allowed=topologies_text(machine),
            nearest=nearest_topology(machine, topology),
        )


def _capacity(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Finding]:
    """Find a provisioning model that Vertex AI does not support for the machine type."""
    supported = offered(machine)
    if target.capacity not in supported:
        yield job.finding(
            ("vertex", "capacity"),
            f"{target.capacity} is not offered for {machine.name}",
            rule="job-vertex-capacity",
            allowed=", ".join(supported),
            nearest=supported[-1] if supported else None,
        )
    elif machine.kind == "tpu" and target.capacity == "spot" and vms(target) > 1:
        yield job.finding(
            ("vertex", "capacity"),
            f"spot is not offered for slices of several VMs, and {target.topology} has {vms(target)}",
            rule="job-vertex-capacity",
            allowed="on-demand",
            nearest="on-demand",
        )


def _times(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    flex = target.capacity == "flex-start"
    if flex and target.timeout_hours > FLEX_HOURS:
        yield job.finding(
            ("vertex", "timeout_hours"),
            f"is {target.timeout_hours}",
            rule="job-vertex-timeout",
            allowed=f"at most {FLEX_HOURS} with flex-start",
            nearest=FLEX_HOURS,
        )
    if target.max_wait_hours is not None and not flex:
        yield job.finding(
            ("vertex", "max_wait_hours"),
            f"is only for flex-start; {target.capacity} does not wait",
            rule="job-vertex-wait",
            allowed="no max_wait_hours",
        )


def _attachment(job: ResolvedJob, spec: VertexTarget | PersistentResourceSpec) -> str | None:
    return attachment(spec.network_attachment, spec.region, job.scope)


def _resource(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find differences from the persistent resource: other machines, disks or networks, or more VMs than it has."""
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
            yield job.finding(
                ("vertex", *path),
                f"is {of_job or 'not written'}, and {title} has {of_resource or 'none'}",
                rule="job-vertex-resource",
                allowed=str(of_resource or "none"),
                nearest=of_resource,
            )
    replicas = Counter[str]()
    machines: dict[str, VmSpec] = {}
    for worker_pool in pools(target):
        replicas[worker_pool.vm.title] += worker_pool.replicas
        machines[worker_pool.vm.title] = worker_pool.vm
    for machine_title, vm in machines.items():
        most = resource.pool_for(vm, target.boot_disk).most
        if replicas[machine_title] > most:
            yield job.finding(
                ("vertex", "replicas"),
                f"is {replicas[machine_title]}, and {title} has at most {most} VMs",
                rule="job-vertex-resource",
                allowed=f"at most {most}",
                nearest=most,
            )


def _shared(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Finding]:
    """Find disks and regions that the rules of persistent resources refuse too, under the same rule ids."""
    disk = target.boot_disk
    types = vertex_disk_types(machine)
    for rule, field, problem in (
        ("vertex-boot-disk-size", "boot_disk.size_gb", refused_disk_size(disk.size_gb, BOOT_DISK_LIMITS["vertex"])),
        ("vertex-boot-disk-type", "boot_disk.type", refused_disk_type(machine.name, disk.type, types)),
        ("vertex-region", "region", unlisted_region(machine, target.region)),
    ):
        if problem:
            severity: Severity = "warning" if rule == "vertex-region" else "error"
            yield job.finding(("vertex", *field.split(".")), rule=rule, severity=severity, **problem._asdict())


def _container(job: ResolvedJob) -> Iterator[Finding]:
    """Find more variables or longer arguments than Vertex AI takes."""
    if not readable(job):  # the launcher's variables depend on the source
        return
    count, length = program_texts(job)
    if count > MOST_VARIABLES:
        yield job.finding(
            ("env",),
            f"the container has {count} variables",
            rule="job-vertex-env",
            allowed=f"at most {MOST_VARIABLES} on Vertex AI, OUTPUT_URI among them",
        )
    if length > MOST_ARGS:
        yield job.finding(
            ("args",),
            f"has {length:,} characters",
            rule="job-vertex-args",
            allowed=f"at most {MOST_ARGS:,} characters on Vertex AI",
        )


def _output(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find an output bucket in another region, which Vertex AI refuses, or reads and writes slowly."""
    if job.spec.output is None:
        return
    location = job.team.buckets[job.spec.output].location
    if location != target.region:
        near = sorted(name for name, bucket in job.team.buckets.items() if bucket.location == target.region)
        yield job.finding(
            ("output",),
            f"{job.spec.output} is in {location}, and the job runs in {target.region}",
            rule="job-vertex-output",
            severity="warning",
            allowed=f"a bucket in {target.region}: {enumeration(near) or 'the team has none'}",
            nearest=near[0] if near else None,
        )


_NO_PEERING = ("h100-mega", "h200", "b200")


def place_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Yield the findings about a job's region on Vertex AI, and about what its VMs reach from there."""
    yield from _network(job, target)
    for field, resource_name in (("network_attachment", target.network_attachment), ("kms_key", target.kms_key)):
        if resource_name is None or resource_name == OWN_ATTACHMENT:
            continue
        region = resource_name.split("/")[3]
        if region != target.region:
            yield job.finding(
                ("vertex", field),
                f"is in {region}, and the job runs in {target.region}",
                rule="job-vertex-place",
                allowed=f"one in {target.region}",
            )
    if target.network_attachment == OWN_ATTACHMENT:
        for message, allowed in missing_attachment(job.team, job.environment, target.region):
            yield job.finding(
                ("vertex", "network_attachment"),
                message,
                rule="job-vertex-network",
                allowed=allowed,
            )
    yield from _reservation(job, target)
    yield from _mounts(job, target)
    yield from _requests(job, target)
    yield from _without_effect(job)


def _network(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    if target.network is None:
        return
    if target.network_attachment:
        yield job.finding(
            ("vertex", "network"),
            "is set beside network_attachment, and a job has one of the two",
            rule="job-vertex-network",
            allowed="network or network_attachment",
        )
    accelerator = target.machine.accelerator
    if accelerator and accelerator.name in _NO_PEERING:
        yield job.finding(
            ("vertex", "network"),
            f"{target.machine_type} does not support peered networks",
            rule="job-vertex-network",
            allowed="network_attachment",
        )


def _reservation(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    if target.reservation is None:
        return
    if target.capacity != "on-demand":
        yield job.finding(
            ("vertex", "reservation"),
            f"is for on-demand VMs, and the job's are {target.capacity}",
            rule="job-vertex-reservation",
            allowed="no reservation, or capacity: on-demand",
        )
    zone = target.reservation.split("/")[3]
    if region_of(zone) != target.region:
        yield job.finding(
            ("vertex", "reservation"),
            f"is in {zone}, and the job runs in {target.region}",
            rule="job-vertex-reservation",
            allowed=f"a reservation in a zone of {target.region}",
        )
    if target.persistent_resource:
        yield job.finding(
            ("vertex", "reservation"),
            f"is for new VMs, and the job runs on those of {target.persistent_resource}",
            rule="job-vertex-reservation",
            allowed="none",
        )


def _mounts(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find mount paths that Vertex AI does not offer, shares out of its reach, and read_only, which it ignores."""
    for index, mount in enumerate(job.spec.mounts):
        data = job.environment.data_sets.get(mount.source.data_set or "")
        vertex_path = fixed_path(job, mount)
        if mount_path(job, mount) != vertex_path:
            yield job.finding(
                ("mounts", index, "path"),
                f"is {mount.path}, and Vertex AI mounts it at {vertex_path}",
                rule="job-vertex-mount",
                allowed=f"none, or {vertex_path}",
                nearest=vertex_path,
            )
        if mount.read_only:
            yield job.finding(
                ("mounts", index, "read_only"),
                "is not kept on Vertex AI, which mounts everything for writing",
                rule="job-vertex-mount",
                severity="warning",
                allowed="false",
            )
        if mount.source.directory or (data and data.filestore):
            service = "Filestore"
        elif data and data.lustre:
            service = "Managed Lustre"
        else:
            continue
        if not (target.network or target.network_attachment):
            name = mount.source.directory or mount.source.data_set
            yield job.finding(
                ("mounts", index, "source"),
                f"{name} is on {service}, which a job without network does not reach",
                rule="job-vertex-mount",
                allowed="vertex.network or vertex.network_attachment",
            )


def _requests(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find more CPUs or memory than the machine has, and uses of /dev/shm, whose size Vertex AI has no field for.

    The discovery document of 2026-11-06 has no such field in a CustomJobSpec; the default size was not read.
    """
    machine = target.machine
    spec = job.spec
    for field, requested, available in (
        ("cpu", spec.cpu, machine.vcpus),
        ("memory_gib", spec.memory_gib, machine.memory_gb),
    ):
        if requested and requested > available:
            yield job.finding(
                (field,),
                f"is {requested}, and {machine.name} has {available:g}; a job on Vertex AI has the whole machine",
                rule="job-vertex-size",
                allowed=f"at most {available:g}",
                nearest=int(available),
            )
    for field, size in (("shared_memory_gib", spec.shared_memory_gib), ("data_loaders", spec.data_loaders)):
        if size:
            yield job.finding(
                (field,),
                "wants memory as /dev/shm, and Vertex AI has no field for its size",
                rule="job-vertex-shared-memory",
                severity="warning",
                allowed="GKE only",
            )


def _without_effect(job: ResolvedJob) -> Iterator[Finding]:
    """Find fields without a counterpart on Vertex AI."""
    spec = job.spec
    if spec.local_checkpoints:
        yield job.finding(
            ("local_checkpoints",),
            "has no effect on Vertex AI: LOCAL_CHECKPOINT_DIR is not set there",
            rule="job-local-checkpoints",
            severity="warning",
            allowed="GKE only",
        )
    if spec.retry_on:
        yield job.finding(
            ("retry_on",),
            "has no effect on Vertex AI, which starts a failed program again whatever its exit code",
            rule="job-retry-on",
            severity="warning",
            allowed="GKE only",
        )
    if spec.count_interruptions:
        yield job.finding(
            ("count_interruptions",),
            "has no effect on Vertex AI, which counts restarts by itself",
            rule="job-retry-on",
            severity="warning",
            allowed="GKE only",
        )


_CHOICES: tuple[Capacity, ...] = ("on-demand", "flex-start", "spot")


def role_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Yield the findings about roles beside the workers, each at its own machine type."""
    tpu = target.machine.kind == "tpu"
    for pool in pools(target):
        if len(pool.field) == 1:  # the workers'
            continue
        if tpu:
            yield job.finding(
                ("vertex", pool.field[0]),
                f"{target.machine_type} is a TPU, whose slice is one pool of one replica",
                rule="job-vertex-tpu-pool",
                allowed="none",
            )
        else:
            yield from _machine(job, target, pool)
    if target.reducers and not tpu:
        yield from _reducers(job, target, target.reducers)


def offered(machine: MachineType) -> list[Capacity]:
    """Return the provisioning models that Vertex AI has for a machine type."""
    support = machine.accelerator.vertex if machine.accelerator else None
    quotas = support.quotas if support else machine.vertex_cpu_quota
    flex = support is not None and support.flex_start
    return [capacity for capacity in _CHOICES if capacity in quotas and (flex or capacity != "flex-start")]


def wrong_machine(job: ResolvedJob, field: tuple[str, ...], vm: VmSpec) -> Finding | None:
    """Return the finding about a machine type that Vertex AI does not train on, or does not combine with its GPUs."""
    machine = MACHINE_TYPES[vm.machine_type]
    if not machine.vertex:
        names = [name for name, row in MACHINE_TYPES.items() if row.vertex]
        return job.finding(
            ("vertex", *field),
            f"{machine.name} is not for training on Vertex AI",
            rule="job-vertex-machine",
            allowed=enumeration(names),
            nearest=find_nearest(machine.name, names),
        )
    counts = vertex_counts(machine, ACCELERATORS[vm.accelerator]) if vm.accelerator else (vm.accelerator_count,)
    if vm.accelerator_count in counts:
        return None
    return job.finding(
        ("vertex", *field[:-1], "accelerator_count" if counts else "accelerator"),
        f"{machine.name} does not go with {vm.accelerator_count} {vm.accelerator} on Vertex AI",
        rule="job-vertex-accelerator",
        allowed=", ".join(map(str, counts)) or "an N1 machine type that takes it, or no accelerator",
        nearest=min(counts, key=lambda count: abs(count - vm.accelerator_count), default=None),
    )


def _machine(job: ResolvedJob, target: VertexTarget, pool: Pool) -> Iterator[Finding]:
    path = ("vertex", *pool.field)
    if refused := wrong_machine(job, pool.field, pool.vm):
        yield refused
    elif target.capacity == "flex-start" and pool.vm.title != target.title:
        yield job.finding(
            path,
            f"is {pool.vm.title}, and flex-start has one machine type for all pools",
            rule="job-vertex-flex-pools",
            allowed=target.title,
            nearest=target.title,
        )
    elif target.capacity not in offered(pool.machine):
        yield job.finding(
            path,
            f"{target.capacity} is not offered for {pool.vm.title}",
            rule="job-vertex-capacity",
            allowed=enumeration([name for name, row in MACHINE_TYPES.items() if target.capacity in offered(row)]),
        )
    elif target.persistent_resource:
        resource = job.team.vertex.persistent_resources[target.persistent_resource]
        titles = list(dict.fromkeys(resource_pool.title for resource_pool in resource.pools.values()))
        if pool.vm.title not in titles:
            allowed = ", ".join(titles)
            yield job.finding(
                path,
                f"is {pool.vm.title}, and persistent resource {target.persistent_resource} has {allowed}",
                rule="job-vertex-resource",
                allowed=allowed,
                nearest=titles[0],
            )


def _reducers(job: ResolvedJob, target: VertexTarget, reducers: Reducers) -> Iterator[Finding]:
    """Find a Reduction Server without GPUs to serve, with GPUs of its own, or for a single worker."""
    if MACHINE_TYPES[reducers.machine_type].accelerator:
        yield job.finding(
            ("vertex", "reducers", "machine_type"),
            f"{reducers.machine_type} has accelerators, which Reduction Server does not use",
            rule="job-vertex-reducers",
            allowed="a machine without",
            nearest="n1-highcpu-16",
        )
    if target.machine.kind != "gpu":
        yield job.finding(
            ("vertex", "reducers"),
            f"adds up the gradients of GPUs, and {target.machine.name} has none",
            rule="job-vertex-reducers",
            allowed="none",
        )
    elif target.replicas == 1:
        yield job.finding(
            ("vertex", "reducers"),
            "adds up the gradients of several VMs, and the job has one",
            rule="job-vertex-reducers",
            allowed="none, or replicas of at least 2",
        )


_TRIALS_PER_PARAMETER = 10


def study_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Yield the findings about the sweep and the pipeline around a job."""
    if job.spec.sweep:
        yield from _sweep(job, job.spec.sweep)
        if target.machine.kind == "tpu":
            yield job.finding(
                ("sweep",),
                f"is not offered for TPUs on Vertex AI, and {target.machine_type} is one",
                rule="job-vertex-tpu-sweep",
                allowed="GPUs, or a job for each point",
            )
    if target.pipeline:
        yield from _pipeline(job, target.pipeline)


def _sweep(job: ResolvedJob, sweep: Sweep) -> Iterator[Finding]:
    if sweep.metric is None:
        yield job.finding(
            ("sweep",),
            "has no metric, which every trial on Vertex AI reports",
            rule="job-vertex-metric",
            allowed="metric, such as accuracy",
        )
    elif any(letter.isspace() for letter in sweep.metric):
        yield job.finding(
            ("sweep", "metric"),
            f"{sweep.metric!r} has blanks",
            rule="job-vertex-metric",
            allowed="a name without blanks",
            nearest="_".join(sweep.metric.split()),
        )
    if sweep.parallel > sweep.size:
        yield job.finding(
            ("sweep", "parallel"),
            f"is {sweep.parallel}, and there are {sweep.size} trials",
            rule="job-vertex-parallel",
            allowed=f"at most {sweep.size}",
            nearest=sweep.size,
        )
    if sweep.max_failed_trials and sweep.max_failed_trials > sweep.size:
        yield job.finding(
            ("sweep", "max_failed_trials"),
            f"is {sweep.max_failed_trials}, and there are {sweep.size} trials",
            rule="job-vertex-failed-trials",
            allowed=f"at most {sweep.size}",
            nearest=sweep.size,
        )
    advised = _TRIALS_PER_PARAMETER * len(sweep.parameters)
    if sweep.method == "bayesian" and sweep.size < advised:
        yield job.finding(
            ("sweep", "trials"),
            f"is {sweep.size}, which is too few for a search over {len(sweep.parameters)} parameters",
            rule="job-vertex-trials",
            severity="warning",
            allowed=f"at least {advised}, as Vertex AI advises",
            nearest=advised,
        )


def _pipeline(job: ResolvedJob, pipeline: Pipeline) -> Iterator[Finding]:
    path = ("vertex", "pipeline")
    if pipeline.data_set is None and pipeline.model is None:
        yield job.finding(
            path,
            "has neither a data set nor a model",
            rule="job-vertex-pipeline",
            allowed="data_set, model or both",
        )
    if pipeline.model and not job.spec.output:
        yield job.finding(
            (*path, "model"),
            "is uploaded from below output, and the job has none",
            rule="job-vertex-pipeline",
            allowed="output, one of the team's buckets",
        )
    if pipeline.data_set is None:
        return
    if pipeline.read_as == "files" and not job.spec.output:
        yield job.finding(
            (*path, "data_set"),
            "is read as files below output, and the job has none",
            rule="job-vertex-pipeline",
            allowed="output, or read_as: bigquery",
        )
    if pipeline.read_as == "bigquery" and pipeline.annotation_schema:
        yield job.finding(
            (*path, "annotation_schema"),
            "is for files, and the data set is read from BigQuery",
            rule="job-vertex-pipeline",
            allowed="none",
        )
    percent = pipeline.split.training + pipeline.split.validation + pipeline.split.test
    if percent != 100:
        yield job.finding(
            (*path, "split"),
            f"adds up to {percent} percent",
            rule="job-vertex-pipeline",
            allowed="100 percent in all",
        )
