"""What Vertex AI refuses of a custom job. Facts: Vertex AI docs and protos, read 2026-08-22.

Disks and regions are judged as those of persistent resources are, whose machines a job's are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from training_platform.catalog import ACCELERATORS, BOOT_DISK_LIMITS, MACHINE_TYPES
from training_platform.catalog.attachments import vertex_counts
from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.topologies import legal_for, nearest_topology, topologies_text
from training_platform.catalog.types import Capacity, MachineType
from training_platform.config.model.node_pool import VmSpec
from training_platform.config.model.team import OWN_ATTACHMENT, PersistentResourceSpec
from training_platform.config.reading.finding import Finding, Path, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.references import missing_attachment
from training_platform.parts.jobs.container import fixed_path, mount_path
from training_platform.parts.jobs.model import Pipeline, Reducers, Sweep, VertexTarget
from training_platform.parts.jobs.rendezvous import launcher_findings
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.rules import data_set_findings, readable
from training_platform.parts.jobs.vertex.pools import Pool, pools, program_texts, vertex_target, vms
from training_platform.resources.network import attachment
from training_platform.resources.vertex import refused_disk_size, refused_disk_type, unlisted_region, vertex_disk_types

FLEX_HOURS = 7 * 24
MOST_VARIABLES = 100
MOST_ARGS = 100_000  # characters, all arguments together


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
        *launcher_findings(job, where="Vertex AI", nodes=vms(target), chips=machine.chips),
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
        message, nearest = "is missing: a TPU slice needs one", machine.single_host
        if topology is not None:
            message, nearest = f"{topology!r} is not a valid topology for it", nearest_topology(machine, topology)
        yield job.finding(path, message, rule=rule, allowed=topologies_text(machine), nearest=nearest)


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


_NO_PEERING = ("h100-mega", "h200", "b200")


def place_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Yield what is wrong with where a job on Vertex AI is, and what it reaches from there."""
    yield from _network(job, target)
    # A network attachment or key of another region.
    for field, text in (("network_attachment", target.network_attachment), ("kms_key", target.kms_key)):
        region = text.split("/")[3] if text and text != OWN_ATTACHMENT else target.region
        if region != target.region:
            message = f"is in {region}, and the job runs in {target.region}"
            yield job.finding(("vertex", field), message, rule="job-vertex-place", allowed=f"one in {target.region}")
    own = target.network_attachment == OWN_ATTACHMENT
    for message, allowed in missing_attachment(job.team, job.environment, target.region) if own else ():
        yield job.finding(("vertex", "network_attachment"), message, rule="job-vertex-network", allowed=allowed)
    yield from _reservation(job, target)
    yield from _mounts(job, target)
    yield from _place_machine(job, target)


def _network(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    rule, path = "job-vertex-network", ("vertex", "network")
    if target.network is None:
        return
    if target.network_attachment:
        message = "stands beside network_attachment, and a job has one of the two"
        yield job.finding(path, message, rule=rule, allowed="network or network_attachment")
    accelerator = target.machine.accelerator
    if accelerator and accelerator.name in _NO_PEERING:
        message = f"{target.machine_type} does not support peered networks"
        yield job.finding(path, message, rule=rule, allowed="network_attachment")


def _reservation(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    if target.reservation is None:
        return
    rule, path = "job-vertex-reservation", ("vertex", "reservation")
    if target.capacity != "on-demand":
        message = f"is for on-demand VMs, and the job's are {target.capacity}"
        yield job.finding(path, message, rule=rule, allowed="no reservation, or capacity: on-demand")
    zone = target.reservation.split("/")[3]
    if region_of(zone) != target.region:
        message = f"is in {zone}, and the job runs in {target.region}"
        yield job.finding(path, message, rule=rule, allowed=f"a reservation in a zone of {target.region}")
    if target.persistent_resource:
        message = f"is for new VMs, and the job runs on those of {target.persistent_resource}"
        yield job.finding(path, message, rule=rule, allowed="none")


def _mounts(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find paths that Vertex AI does not offer, shares that it cannot reach, and protection that it does not give."""
    for index, mount in enumerate(job.spec.mounts):
        where, data = fixed_path(job, mount), job.environment.data_sets.get(mount.source.data_set or "")
        nfs = mount.source.directory or (data.filestore if data else None)
        if mount_path(job, mount) != where:
            message = f"is {mount.path}, and Vertex AI mounts it at {where}"
            path = ("mounts", index, "path")
            yield job.finding(path, message, rule="job-vertex-mount", allowed=f"none, or {where}", nearest=where)
        if mount.read_only:
            message = "is not kept on Vertex AI, which mounts everything for writing"
            path = ("mounts", index, "read_only")
            yield job.finding(path, message, rule="job-vertex-mount", severity="warning", allowed="false")
        if (nfs or (data and data.lustre)) and not (target.network or target.network_attachment):
            place = (
                f"{mount.source.directory or mount.source.data_set} is on {'Filestore' if nfs else 'Managed Lustre'}"
            )
            message, path = f"{place}, which a job without network does not reach", ("mounts", index, "source")
            allowed = "vertex.network or vertex.network_attachment"
            yield job.finding(path, message, rule="job-vertex-mount", allowed=allowed)


def _place_machine(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Find more CPUs or memory than the machine has, and what wants /dev/shm, whose size Vertex AI has no field for.

    A CustomJobSpec says nothing of it in the discovery document of 2026-11-06; how large it is there was not read.
    """
    machine, spec = target.machine, job.spec
    for field, asked, has in (("cpu", spec.cpu, machine.vcpus), ("memory_gib", spec.memory_gib, machine.memory_gb)):
        if asked and asked > has:
            message = f"is {asked}, and {machine.name} has {has:g}; a job on Vertex AI has the whole machine"
            allowed, nearest = f"at most {has:g}", int(has)
            yield job.finding((field,), message, rule="job-vertex-size", allowed=allowed, nearest=nearest)
    for field, size in (("shared_memory_gib", spec.shared_memory_gib), ("data_loaders", spec.data_loaders)):
        if size:
            message = "wants memory as /dev/shm, and Vertex AI has no field for its size"
            rule, allowed = "job-vertex-shared-memory", "GKE alone"
            yield job.finding((field,), message, rule=rule, severity="warning", allowed=allowed)
    if spec.local_checkpoints:
        message = "has no effect on Vertex AI: LOCAL_CHECKPOINT_DIR is not set there"
        rule = "job-local-checkpoints"
        yield job.finding(("local_checkpoints",), message, rule=rule, severity="warning", allowed="GKE alone")
    if spec.retry_on:
        message = "has no effect on Vertex AI, which starts a failed program again whatever its exit code"
        yield job.finding(("retry_on",), message, rule="job-retry-on", severity="warning", allowed="GKE alone")
    if spec.count_interruptions:
        message = "has no effect on Vertex AI, which counts restarts by itself"
        yield job.finding(
            ("count_interruptions",), message, rule="job-retry-on", severity="warning", allowed="GKE alone"
        )


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
    return [capacity for capacity in _CHOICES if capacity in quotas and (flex or capacity != "flex-start")]


def wrong_machine(job: ResolvedJob, field: tuple[str, ...], vm: VmSpec) -> Finding | None:
    """Return the finding of a machine type that is not for training on Vertex AI, or of GPUs that do not go with it."""
    own = MACHINE_TYPES[vm.machine_type]
    if not own.vertex:
        names = [name for name, row in MACHINE_TYPES.items() if row.vertex]
        return job.finding(
            ("vertex", *field), f"{own.name} is not for training on Vertex AI", rule="job-vertex-machine",
            allowed=enumeration(names), nearest=find_nearest(own.name, names),
        )  # fmt: skip
    counts = vertex_counts(own, ACCELERATORS[vm.accelerator]) if vm.accelerator else (vm.accelerator_count,)
    if vm.accelerator_count in counts:
        return None
    message = f"{own.name} does not go with {vm.accelerator_count} {vm.accelerator} on Vertex AI"
    allowed = ", ".join(map(str, counts)) or "an N1 machine type that takes it, or no accelerator"
    near = min(counts, key=lambda fitting: abs(fitting - vm.accelerator_count), default=None)
    where = ("vertex", *field[:-1], "accelerator_count" if counts else "accelerator")
    return job.finding(where, message, rule="job-vertex-accelerator", allowed=allowed, nearest=near)


def _machine(job: ResolvedJob, target: VertexTarget, pool: Pool) -> Iterator[Finding]:
    machine, path = pool.machine, ("vertex", *pool.field)
    if refused := wrong_machine(job, pool.field, pool.vm):
        yield refused
    elif target.capacity == "flex-start" and pool.vm.title != target.title:
        message = f"is {pool.vm.title}, and flex-start has one machine type for all pools"
        allowed = target.title
        yield job.finding(path, message, rule="job-vertex-flex-pools", allowed=allowed, nearest=allowed)
    elif target.capacity not in offered(machine):
        allowed = enumeration([name for name, row in MACHINE_TYPES.items() if target.capacity in offered(row)])
        message = f"{target.capacity} is not offered for {pool.vm.title}"
        yield job.finding(path, message, rule="job-vertex-capacity", allowed=allowed)
    elif target.persistent_resource:
        resource = job.team.vertex.persistent_resources[target.persistent_resource]
        has = dict.fromkeys(pool.title for pool in resource.pools.values())
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


_TRIALS_PER_PARAMETER = 10


def study_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Finding]:
    """Yield what is wrong with the sweep and the pipeline around a job."""
    if job.spec.sweep:
        yield from _sweep(job, job.spec.sweep)
        if target.machine.kind == "tpu":
            message = f"is not offered for TPUs on Vertex AI, and {target.machine_type} is one"
            yield job.finding(("sweep",), message, rule="job-vertex-tpu-sweep", allowed="GPUs, or a job for each point")
    if target.pipeline:
        yield from _pipeline(job, target.pipeline)


def _sweep(job: ResolvedJob, sweep: Sweep) -> Iterator[Finding]:
    if sweep.metric is None:
        message = "has no metric, which every trial on Vertex AI reports"
        yield job.finding(("sweep",), message, rule="job-vertex-metric", allowed="metric, such as accuracy")
    elif any(letter.isspace() for letter in sweep.metric):
        message, nearest = f"{sweep.metric!r} has blanks", "_".join(sweep.metric.split())
        yield job.finding(
            ("sweep", "metric"), message, rule="job-vertex-metric", allowed="a name without blanks", nearest=nearest
        )
    if sweep.parallel > sweep.size:
        message = f"is {sweep.parallel}, and there are {sweep.size} trials"
        allowed = f"at most {sweep.size}"
        yield job.finding(
            ("sweep", "parallel"), message, rule="job-vertex-parallel", allowed=allowed, nearest=sweep.size
        )
    if sweep.max_failed_trials and sweep.max_failed_trials > sweep.size:
        message = f"is {sweep.max_failed_trials}, and there are {sweep.size} trials"
        yield job.finding(
            ("sweep", "max_failed_trials"), message, rule="job-vertex-failed-trials",
            allowed=f"at most {sweep.size}", nearest=sweep.size,
        )  # fmt: skip
    wanted = _TRIALS_PER_PARAMETER * len(sweep.parameters)
    if sweep.method == "bayesian" and sweep.size < wanted:
        message = f"is {sweep.size}, few for a search over {len(sweep.parameters)} parameters"
        yield job.finding(
            ("sweep", "trials"), message, rule="job-vertex-trials", severity="warning",
            allowed=f"at least {wanted}, as Vertex AI advises", nearest=wanted,
        )  # fmt: skip


def _pipeline(job: ResolvedJob, pipeline: Pipeline) -> Iterator[Finding]:
    rule, path = "job-vertex-pipeline", ("vertex", "pipeline")
    if pipeline.data_set is None and pipeline.model is None:
        yield job.finding(path, "has neither a data set nor a model", rule=rule, allowed="data_set, model or both")
    if pipeline.model and not job.spec.output:
        message = "is uploaded from below output, and the job has none"
        yield job.finding((*path, "model"), message, rule=rule, allowed="output, one of the team's buckets")
    if pipeline.data_set is None:
        return
    if pipeline.read_as == "files" and not job.spec.output:
        message = "is read as files below output, and the job has none"
        yield job.finding((*path, "data_set"), message, rule=rule, allowed="output, or read_as: bigquery")
    if pipeline.read_as == "bigquery" and pipeline.annotation_schema:
        message = "is for files, and the data set is read from BigQuery"
        yield job.finding((*path, "annotation_schema"), message, rule=rule, allowed="none")
    split = pipeline.split
    if (total := split.training + split.validation + split.test) != 100:
        message = f"adds up to {total} percent"
        yield job.finding((*path, "split"), message, rule=rule, allowed="100 percent in all")
