"""Rules for jobs on Vertex AI. Facts: Vertex AI docs and protos, read 2026-08-22."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.config.reading.declaration import Draft, finding, located
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import enumeration
from training_platform.parts.jobs.common_rules import JOB_LOCAL_CHECKPOINTS, JOB_RETRY_ON
from training_platform.parts.jobs.job_model import VertexTarget
from training_platform.parts.jobs.job_rules import vertex_rule
from training_platform.parts.jobs.rendezvous import launcher_findings
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.source_rules import readable
from training_platform.parts.jobs.storage_rules import data_set_findings
from training_platform.parts.jobs.vertex.machine_rules import (
    capacity_findings,
    resource_findings,
    role_findings,
    shared_findings,
    slice_findings,
    wrong_machine,
)
from training_platform.parts.jobs.vertex.place_rules import place_findings
from training_platform.parts.jobs.vertex.study_rules import study_findings
from training_platform.parts.jobs.vertex.worker_pools import program_texts, vertex_target, vms

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
        *slice_findings(job, target, machine),
        *capacity_findings(job, target, machine),
        *_times(job, target),
        *resource_findings(job, target),
        *role_findings(job, target),
        *place_findings(job, target),
        *_requests(job, target),
        *_without_effect(job),
        *study_findings(job, target),
        *shared_findings(job, target, machine),
        *_container(job),
        *launcher_findings(job, where="Vertex AI", nodes=vms(target), chips=machine.chips, tpu=machine.kind == "tpu"),
        *_output(job, target),
        *data_set_findings(job, target.region, vertex=True),
    ]


JOB_VERTEX_TIMEOUT = vertex_rule(
    "job-vertex-timeout",
    "Find a run longer than flex-start allows.",
)
JOB_VERTEX_WAIT = vertex_rule(
    "job-vertex-wait",
    "Find a maximum wait without flex-start: other provisioning models do not wait for VMs.",
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


JOB_VERTEX_SIZE = vertex_rule(
    "job-vertex-size",
    "Find a request for more CPUs or memory than the machine has.",
)
JOB_VERTEX_SHARED_MEMORY = vertex_rule(
    "job-vertex-shared-memory",
    "Find a size of `/dev/shm`, for which Vertex AI has no field.",
    severity="warning",
)


def _requests(job: ResolvedJob, target: VertexTarget) -> Iterator[Draft]:
    """Find a job that requests more CPUs or memory than its machine has, or uses /dev/shm, whose size is fixed there.

    The discovery document of 2026-11-06 has no such field in a CustomJobSpec. The default size was not read.
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
                f"is {requested}, but {machine.name} has {available:g}; a job on Vertex AI uses whole machines",
                rule=JOB_VERTEX_SIZE,
                allowed=f"at most {available:g}",
                nearest=int(available),
            )
    for field, size in (("shared_memory_gib", spec.shared_memory_gib), ("data_loaders", spec.data_loaders)):
        if size:
            yield finding(
                job,
                (field,),
                "sets the size of /dev/shm, but Vertex AI has no field for it",
                rule=JOB_VERTEX_SHARED_MEMORY,
                allowed="GKE only",
            )


def _without_effect(job: ResolvedJob) -> Iterator[Draft]:
    """Find fields that have no effect on Vertex AI."""
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
            "has no effect on Vertex AI, which restarts a failed program whatever its exit code",
            rule=JOB_RETRY_ON,
            severity="warning",
            allowed="GKE only",
        )
    if spec.count_interruptions:
        yield finding(
            job,
            ("count_interruptions",),
            "has no effect on Vertex AI, which uses its own count of restarts",
            rule=JOB_RETRY_ON,
            severity="warning",
            allowed="GKE only",
        )


JOB_VERTEX_ENV = vertex_rule(
    "job-vertex-env",
    "Find more variables than a container on Vertex AI may have.",
)
JOB_VERTEX_ARGS = vertex_rule(
    "job-vertex-args",
    "Find arguments longer than Vertex AI accepts.",
)


def _container(job: ResolvedJob) -> Iterator[Draft]:
    """Find a container with more variables, or with longer arguments, than Vertex AI accepts."""
    if not readable(job):  # the launcher's variables depend on the source
        return
    count, length = program_texts(job)
    if count > MOST_VARIABLES:
        yield finding(
            job,
            ("env",),
            f"the container has {count} variables",
            rule=JOB_VERTEX_ENV,
            allowed=f"at most {MOST_VARIABLES} on Vertex AI, including OUTPUT_URI",
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
    """Find an output bucket in another region, which Vertex AI refuses or accesses slowly."""
    if job.spec.output is None:
        return
    location = job.team.buckets[job.spec.output].location
    if location != target.region:
        near = sorted(name for name, bucket in job.team.buckets.items() if bucket.location == target.region)
        yield finding(
            job,
            ("output",),
            f"{job.spec.output} is in {location}, but the job runs in {target.region}",
            rule=JOB_VERTEX_OUTPUT,
            allowed=f"a bucket in {target.region}: {enumeration(near) or 'the team has none'}",
            nearest=near[0] if near else None,
        )
