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
from training_platform.config.reading.declaration import RULES, Draft, finding, located
from training_platform.config.reading.finding import Finding, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.references import missing_attachment
from training_platform.parts.jobs.common_rules import JOB_LOCAL_CHECKPOINTS, JOB_RETRY_ON, data_set_findings, readable
from training_platform.parts.jobs.container import fixed_path, mount_path
from training_platform.parts.jobs.job_model import Pipeline, Reducers, Sweep, VertexTarget
from training_platform.parts.jobs.job_rules import vertex_rule
from training_platform.parts.jobs.rendezvous import launcher_findings
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.vertex.worker_pools import Pool, pools, program_texts, vertex_target, vms
from training_platform.resources.network import attachment

FLEX_HOURS = 7 * 24
MOST_VARIABLES = 100
MOST_ARGS = 100_000  # characters, all arguments together


def vertex_findings(job: ResolvedJob) -> list[Finding]:
    """Return the findings about the Vertex AI target of a valid job file."""
    return located(_drafts(job))


def _drafts(job: ResolvedJob) -> list[Draft]:
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
        *launcher_findings(job, where="Vertex AI", nodes=vms(target), chips=machine.chips, tpu=machine.kind == "tpu"),
        *_output(job, target),
        *data_set_findings(job, target.region, vertex=True),
    ]


JOB_VERTEX_TOPOLOGY = vertex_rule(
    "job-vertex-topology",
    "Find a TPU without a valid topology, or a topology of another machine.",
)


JOB_VERTEX_REPLICAS = vertex_rule(
    "job-vertex-replicas",
    "Find several replicas of a TPU, whose VMs follow from its topology.",
)


def _slice(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Draft]:
    """Find a TPU without a valid topology or with several replicas, and a topology on any other machine type."""
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


def _capacity(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Draft]:
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


JOB_VERTEX_TIMEOUT = vertex_rule(
    "job-vertex-timeout",
    "Find a run longer than flex-start allows.",
)


JOB_VERTEX_WAIT = vertex_rule(
    "job-vertex-wait",
    "Find a maximum wait without flex-start, the only provisioning model that waits.",
)


def _times(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    flex = target.capacity == "flex-start"
    if flex and target.timeout_hours > FLEX_HOURS:
        yield finding(
            job,
            ("vertex", "timeout_hours"),
            f"is {target.timeout_hours}",
            rule=JOB_VERTEX_TIMEOUT,
            allowed=f"at most {FLEX_HOURS} with flex-start",
            nearest=FLEX_HOURS,
        )
    if target.max_wait is not None and not flex:
        yield finding(
            job,
            ("vertex", "max_wait"),
            f"is only for flex-start; {target.capacity} does not wait",
            rule=JOB_VERTEX_WAIT,
            allowed="no max_wait",
        )


def _attachment(job: ResolvedJob, spec: VertexTarget | PersistentResourceSpec) -> str | None:
    return attachment(spec.network_attachment, spec.region, job.scope)


JOB_VERTEX_RESOURCE = vertex_rule(
    "job-vertex-resource",
    "Find a job that differs from the persistent resource that it runs on, or needs more VMs than it has.",
)


def _resource(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
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
            yield finding(
                job,
                ("vertex", *path),
                f"is {of_job or 'not written'}, and {title} has {of_resource or 'none'}",
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
                f"is {replicas[machine_title]}, and {title} has at most {max_vms} VMs",
                rule=JOB_VERTEX_RESOURCE,
                allowed=f"at most {max_vms}",
                nearest=max_vms,
            )


def _shared(job: ResolvedJob, target: VertexTarget, machine: MachineType) -> Iterator[Draft]:
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
            yield finding(job, ("vertex", *field.split(".")), rule=RULES[rule], severity=severity, **problem._asdict())


JOB_VERTEX_ENV = vertex_rule(
    "job-vertex-env",
    "Find more variables than a container on Vertex AI may have.",
)


JOB_VERTEX_ARGS = vertex_rule(
    "job-vertex-args",
    "Find arguments longer than Vertex AI accepts.",
)


def _container(job: ResolvedJob) -> Iterator[Draft]:
    """Find more variables or longer arguments than Vertex AI takes."""
    if not readable(job):  # the launcher's variables depend on the source
        return
    count, length = program_texts(job)
    if count > MOST_VARIABLES:
        yield finding(
            job,
            ("env",),
            f"the container has {count} variables",
            rule=JOB_VERTEX_ENV,
            allowed=f"at most {MOST_VARIABLES} on Vertex AI, OUTPUT_URI among them",
        )
    if length > MOST_ARGS:
        yield finding(
            job,
            ("args",),
            f"has {length:,} characters",
            rule=JOB_VERTEX_ARGS,
            allowed=f"at most {MOST_ARGS:,} characters on Vertex AI",
        )


JOB_VERTEX_OUTPUT = vertex_rule(
    "job-vertex-output",
    "Find an output bucket in another region.",
    severity="warning",
)


def _output(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Find an output bucket in another region, which Vertex AI refuses, or reads and writes slowly."""
    if job.spec.output is None:
        return
    location = job.team.buckets[job.spec.output].location
    if location != target.region:
        near = sorted(name for name, bucket in job.team.buckets.items() if bucket.location == target.region)
        yield finding(
            job,
            ("output",),
            f"{job.spec.output} is in {location}, and the job runs in {target.region}",
            rule=JOB_VERTEX_OUTPUT,
            allowed=f"a bucket in {target.region}: {enumeration(near) or 'the team has none'}",
            nearest=near[0] if near else None,
        )


_NO_PEERING = ("h100-mega", "h200", "b200")


JOB_VERTEX_NETWORK = vertex_rule(
    "job-vertex-network",
    "Find a network or network attachment that the job's VMs cannot use.",
)


JOB_VERTEX_PLACE = vertex_rule(
    "job-vertex-place",
    "Find a network attachment or key of another region.",
)


def place_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Yield the findings about a job's region on Vertex AI, and about what its VMs reach from there."""
    yield from _network(job, target)
    for field, resource_name in (("network_attachment", target.network_attachment), ("kms_key", target.kms_key)):
        if resource_name is None or resource_name == OWN_ATTACHMENT:
            continue
        region = resource_name.split("/")[3]
        if region != target.region:
            yield finding(
                job,
                ("vertex", field),
                f"is in {region}, and the job runs in {target.region}",
                rule=JOB_VERTEX_PLACE,
                allowed=f"one in {target.region}",
            )
    if target.network_attachment == OWN_ATTACHMENT:
        for message, allowed in missing_attachment(job.team, job.environment, target.region):
            yield finding(job, ("vertex", "network_attachment"), message, rule=JOB_VERTEX_NETWORK, allowed=allowed)
    yield from _reservation(job, target)
    yield from _mounts(job, target)
    yield from _requests(job, target)
    yield from _without_effect(job)


def _network(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    if target.network is None:
        return
    if target.network_attachment:
        yield finding(
            job,
            ("vertex", "network"),
            "is set together with network_attachment, and a job has one of the two",
            rule=JOB_VERTEX_NETWORK,
            allowed="network or network_attachment",
        )
    accelerator = target.machine.accelerator
    if accelerator and accelerator.name in _NO_PEERING:
        yield finding(
            job,
            ("vertex", "network"),
            f"{target.machine_type} does not support peered networks",
            rule=JOB_VERTEX_NETWORK,
            allowed="network_attachment",
        )


JOB_VERTEX_RESERVATION = vertex_rule(
    "job-vertex-reservation",
    "Find a reservation of another zone, or for VMs that are not on demand.",
)


def _reservation(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    if target.reservation is None:
        return
    if target.capacity != "on-demand":
        yield finding(
            job,
            ("vertex", "reservation"),
            f"is for on-demand VMs, and the job's are {target.capacity}",
            rule=JOB_VERTEX_RESERVATION,
            allowed="no reservation, or capacity: on-demand",
        )
    zone = target.reservation.split("/")[3]
    if region_of(zone) != target.region:
        yield finding(
            job,
            ("vertex", "reservation"),
            f"is in {zone}, and the job runs in {target.region}",
            rule=JOB_VERTEX_RESERVATION,
            allowed=f"a reservation in a zone of {target.region}",
        )
    if target.persistent_resource:
        yield finding(
            job,
            ("vertex", "reservation"),
            f"is for new VMs, and the job runs on those of {target.persistent_resource}",
            rule=JOB_VERTEX_RESERVATION,
            allowed="none",
        )


JOB_VERTEX_MOUNT = vertex_rule(
    "job-vertex-mount",
    "Find a mount at a path, or with a protection, that Vertex AI does not offer, or that the job cannot reach.",
)


def _mounts(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Find mount paths that Vertex AI does not offer, shares out of its reach, and read_only, which it ignores."""
    for index, mount in enumerate(job.spec.mounts):
        data = job.environment.data_sets.get(mount.source.data_set or "")
        vertex_path = fixed_path(job, mount)
        if mount_path(job, mount) != vertex_path:
            yield finding(
                job,
                ("mounts", index, "path"),
                f"is {mount.path}, and Vertex AI mounts it at {vertex_path}",
                rule=JOB_VERTEX_MOUNT,
                allowed=f"none, or {vertex_path}",
                nearest=vertex_path,
            )
        if mount.read_only:
            yield finding(
                job,
                ("mounts", index, "read_only"),
                "is not kept on Vertex AI, which mounts everything for writing",
                rule=JOB_VERTEX_MOUNT,
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
            yield finding(
                job,
                ("mounts", index, "source"),
                f"{name} is on {service}, which a job without network does not reach",
                rule=JOB_VERTEX_MOUNT,
                allowed="vertex.network or vertex.network_attachment",
            )


JOB_VERTEX_SIZE = vertex_rule(
    "job-vertex-size",
    "Find more CPUs or memory than the machine has.",
)


JOB_VERTEX_SHARED_MEMORY = vertex_rule(
    "job-vertex-shared-memory",
    "Find a size of `/dev/shm`, for which Vertex AI has no field.",
    severity="warning",
)


def _requests(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
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
            yield finding(
                job,
                (field,),
                f"is {requested}, and {machine.name} has {available:g}; a job on Vertex AI has the whole machine",
                rule=JOB_VERTEX_SIZE,
                allowed=f"at most {available:g}",
                nearest=int(available),
            )
    for field, size in (("shared_memory_gib", spec.shared_memory_gib), ("data_loaders", spec.data_loaders)):
        if size:
            yield finding(
                job,
                (field,),
                "wants memory as /dev/shm, and Vertex AI has no field for its size",
                rule=JOB_VERTEX_SHARED_MEMORY,
                allowed="GKE only",
            )


def _without_effect(job: ResolvedJob) -> Iterator[Draft]:
    """Find fields without a counterpart on Vertex AI."""
    spec = job.spec
    if spec.local_checkpoints:
        yield finding(
            job,
            ("local_checkpoints",),
            "has no effect on Vertex AI: LOCAL_CHECKPOINT_DIR is not set there",
            rule=JOB_LOCAL_CHECKPOINTS,
            severity="warning",
            allowed="GKE only",
        )
    if spec.retry_on:
        yield finding(
            job,
            ("retry_on",),
            "has no effect on Vertex AI, which starts a failed program again whatever its exit code",
            rule=JOB_RETRY_ON,
            severity="warning",
            allowed="GKE only",
        )
    if spec.count_interruptions:
        yield finding(
            job,
            ("count_interruptions",),
            "has no effect on Vertex AI, which counts restarts by itself",
            rule=JOB_RETRY_ON,
            severity="warning",
            allowed="GKE only",
        )


_CHOICES: tuple[Capacity, ...] = ("on-demand", "flex-start", "spot")


JOB_VERTEX_TPU_POOL = vertex_rule(
    "job-vertex-tpu-pool",
    "Find reducers, a chief or an evaluator beside a TPU, which is one pool.",
)


def role_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Yield the findings about roles beside the workers, each at its own machine type."""
    tpu = target.machine.kind == "tpu"
    for pool in pools(target):
        if len(pool.field) == 1:  # the workers'
            continue
        if tpu:
            yield finding(
                job,
                ("vertex", pool.field[0]),
                f"{target.machine_type} is a TPU, whose slice is one pool of one replica",
                rule=JOB_VERTEX_TPU_POOL,
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


JOB_VERTEX_MACHINE = vertex_rule(
    "job-vertex-machine",
    "Find a machine type that is not for training on Vertex AI.",
)


JOB_VERTEX_ACCELERATOR = vertex_rule(
    "job-vertex-accelerator",
    "Find GPUs of a kind or number that Vertex AI does not attach to the machine type.",
)


def wrong_machine(job: ResolvedJob, field: tuple[str, ...], vm: VmSpec) -> Draft | None:
    """Return the finding about a machine type that Vertex AI does not train on, or does not combine with its GPUs."""
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
        f"{machine.name} does not go with {vm.accelerator_count} {vm.accelerator} on Vertex AI",
        rule=JOB_VERTEX_ACCELERATOR,
        allowed=", ".join(map(str, counts)) or "an N1 machine type that takes it, or no accelerator",
        nearest=min(counts, key=lambda count: abs(count - vm.accelerator_count), default=None),
    )


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
            f"is {pool.vm.title}, and flex-start has one machine type for all pools",
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
                f"is {pool.vm.title}, and persistent resource {target.persistent_resource} has {allowed}",
                rule=JOB_VERTEX_RESOURCE,
                allowed=allowed,
                nearest=titles[0],
            )


JOB_VERTEX_REDUCERS = vertex_rule(
    "job-vertex-reducers",
    "Find a Reduction Server without several GPU machines to serve, or with GPUs of its own.",
)


def _reducers(job: ResolvedJob, target: VertexTarget, reducers: Reducers) -> Iterator[Draft]:
    """Find a Reduction Server without GPUs to serve, with GPUs of its own, or for a single worker."""
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
            f"adds up the gradients of GPUs, and {target.machine.name} has none",
            rule=JOB_VERTEX_REDUCERS,
            allowed="none",
        )
    elif target.replicas == 1:
        yield finding(
            job,
            ("vertex", "reducers"),
            "adds up the gradients of several VMs, and the job has one",
            rule=JOB_VERTEX_REDUCERS,
            allowed="none, or replicas of at least 2",
        )


_TRIALS_PER_PARAMETER = 10


JOB_VERTEX_TPU_SWEEP = vertex_rule(
    "job-vertex-tpu-sweep",
    "Find a sweep on TPUs, which Vertex AI does not offer.",
)


def study_findings(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Yield the findings about the sweep and the pipeline around a job."""
    if job.spec.sweep:
        yield from _sweep(job, job.spec.sweep)
        if target.machine.kind == "tpu":
            yield finding(
                job,
                ("sweep",),
                f"is not offered for TPUs on Vertex AI, and {target.machine_type} is one",
                rule=JOB_VERTEX_TPU_SWEEP,
                allowed="GPUs, or a job for each point",
            )
    if target.pipeline:
        yield from _pipeline(job, target.pipeline)


JOB_VERTEX_METRIC = vertex_rule(
    "job-vertex-metric",
    "Find a sweep without a metric, or one whose name has blanks.",
)


JOB_VERTEX_PARALLEL = vertex_rule(
    "job-vertex-parallel",
    "Find more parallel trials than trials.",
)


JOB_VERTEX_FAILED_TRIALS = vertex_rule(
    "job-vertex-failed-trials",
    "Find more failed trials allowed than there are trials.",
)


JOB_VERTEX_TRIALS = vertex_rule(
    "job-vertex-trials",
    "Find too few trials for the number of parameters.",
    severity="warning",
)


def _sweep(job: ResolvedJob, sweep: Sweep) -> Iterator[Draft]:
    if sweep.metric is None:
        yield finding(
            job,
            ("sweep",),
            "has no metric, which every trial on Vertex AI reports",
            rule=JOB_VERTEX_METRIC,
            allowed="metric, such as accuracy",
        )
    elif any(letter.isspace() for letter in sweep.metric):
        yield finding(
            job,
            ("sweep", "metric"),
            f"{sweep.metric!r} has blanks",
            rule=JOB_VERTEX_METRIC,
            allowed="a name without blanks",
            nearest="_".join(sweep.metric.split()),
        )
    if sweep.parallel > sweep.size:
        yield finding(
            job,
            ("sweep", "parallel"),
            f"is {sweep.parallel}, and there are {sweep.size} trials",
            rule=JOB_VERTEX_PARALLEL,
            allowed=f"at most {sweep.size}",
            nearest=sweep.size,
        )
    if sweep.max_failed_trials and sweep.max_failed_trials > sweep.size:
        yield finding(
            job,
            ("sweep", "max_failed_trials"),
            f"is {sweep.max_failed_trials}, and there are {sweep.size} trials",
            rule=JOB_VERTEX_FAILED_TRIALS,
            allowed=f"at most {sweep.size}",
            nearest=sweep.size,
        )
    advised = _TRIALS_PER_PARAMETER * len(sweep.parameters)
    if sweep.method == "bayesian" and sweep.size < advised:
        yield finding(
            job,
            ("sweep", "trials"),
            f"is {sweep.size}, which is too few for a search over {len(sweep.parameters)} parameters",
            rule=JOB_VERTEX_TRIALS,
            allowed=f"at least {advised}, as Vertex AI advises",
            nearest=advised,
        )


JOB_VERTEX_PIPELINE = vertex_rule(
    "job-vertex-pipeline",
    "Find a pipeline without data set and model, or with parts that do not fit together.",
)


def _pipeline(job: ResolvedJob, pipeline: Pipeline) -> Iterator[Draft]:
    path = ("vertex", "pipeline")
    if pipeline.data_set is None and pipeline.model is None:
        yield finding(
            job, path, "has neither a data set nor a model", rule=JOB_VERTEX_PIPELINE, allowed="data_set, model or both"
        )
    if pipeline.model and not job.spec.output:
        yield finding(
            job,
            (*path, "model"),
            "is uploaded from below output, and the job has none",
            rule=JOB_VERTEX_PIPELINE,
            allowed="output, one of the team's buckets",
        )
    if pipeline.data_set is None:
        return
    if pipeline.read_as == "files" and not job.spec.output:
        yield finding(
            job,
            (*path, "data_set"),
            "is read as files below output, and the job has none",
            rule=JOB_VERTEX_PIPELINE,
            allowed="output, or read_as: bigquery",
        )
    if pipeline.read_as == "bigquery" and pipeline.annotation_schema:
        yield finding(
            job,
            (*path, "annotation_schema"),
            "is for files, and the data set is read from BigQuery",
            rule=JOB_VERTEX_PIPELINE,
            allowed="none",
        )
    percent = pipeline.split.training + pipeline.split.validation + pipeline.split.test
    if percent != 100:
        yield finding(
            job,
            (*path, "split"),
            f"adds up to {percent} percent",
            rule=JOB_VERTEX_PIPELINE,
            allowed="100 percent in all",
        )
