"""Vertex AI's training jobs (custom jobs, hyperparameter tuning jobs, training pipelines) and their states over time.

Each kind has a CustomJobSpec, at a different path. Source: Vertex AI's discovery documents and docs on custom jobs and
Dynamic Workload Scheduler; facts read 2026-11-21.

A job is PENDING, then RUNNING. The settings ``aiplatform.jobs.pending`` and ``.running`` define how many seconds it
spends in each state. A job on a persistent resource needs no VMs of its own, and is PENDING for ``.pendingKept``
seconds. A job that exceeds a quota only because of other jobs is QUEUED until they use less.

If a stock-out affects a FLEX_START job, the job is QUEUED until there are VMs, but not longer than its maximum wait. A
stock-out makes any other job fail. A job with VMs uses quota. The messages of these failures are inferred.

A training pipeline creates a custom job or a tuning job, and ends when this job ends. It is RUNNING as soon as the job
exists, even while the job waits for VMs: users of google-cloud-aiplatform saw ``PIPELINE_STATE_RUNNING`` seconds after
the creation. The pipeline names the job in ``trainingTaskMetadata``. Source: discovery document of 2026-11-06,
CustomJobMetadata and HyperparameterTuningJobMetadata. Both facts were read 2026-11-22. Inferred: the name of the job,
that the job gets the labels of the pipeline, and that inputs are refused if they do not define a job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from local_google_cloud.requests.discovery import Api
from local_google_cloud.requests.errors import Refusal, failed_precondition, not_found, required
from local_google_cloud.requests.validation import read_body
from local_google_cloud.resources.resource_kinds import Call, Handler, ResourceKind
from local_google_cloud.state.clock import stamp
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.interference import TrainingJob
from local_google_cloud.state.questions import Quota, TrainingVms
from local_google_cloud.state.quota_use import charges_of
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json
from training_platform.config.reading.source import whole_numbers

PIPELINES: Final = "trainingPipelines"
JOB_KINDS: Final = {
    "customJobs": "CustomJob",
    "hyperparameterTuningJobs": "HyperparameterTuningJob",
    PIPELINES: "TrainingPipeline",
}
"""The name of the schema for each kind of job."""
_JOB: Final = "works"  # key of the job's name in the meta of a pipeline that has not ended
_EXHAUSTED: Final = 8  # codes of google.rpc
_INTERNAL: Final = 13


def name_and_date(cloud: Cloud, record: Record, old: Json) -> None:
    """Set a resource's name and times. As in Vertex AI, the name contains the project number."""
    body = record.body
    now = cloud.time()
    if not old:
        number = cloud.judge.project_number(record.project)
        body["name"] = record.path.replace(f"projects/{record.project}/", f"projects/{number}/", 1)
        body["createTime"] = now
    body["updateTime"] = now


# Creation, cancellation, deletion


def _create(cloud: Cloud, call: Call) -> Json:
    kind = call.path.rpartition("/")[2]
    body = dict(call.body)
    required(body, "displayName", JOB_KINDS[kind])
    spec = _job_spec(kind, body)
    created = Record(name=f"{call.name}/{cloud.number()}", project=call.project, body=body)
    job = _job_of_pipeline(cloud, created, call.api) if kind == PIPELINES else created
    job.meta["job"] = _job_needs(cloud, call, kind, spec)
    trials = int((body.get("trainingTaskInputs") or body).get("parallelTrialCount", 1))
    charges = list(_charges(cloud, call, job.meta["job"], trials))
    try:
        cloud.quota.hold(job, charges)
    except Refusal:
        # A job is queued until there is quota, and refused if it exceeds a limit by itself. Source: Vertex AI docs,
        # understanding the training service; read 2026-11-22.
        for quota, amount in charges:
            limit = cloud.judge.limit(quota)
            if limit is not None and amount > limit:
                raise
        job.meta["job"]["asks"] = [[list(quota), amount] for quota, amount in charges]
    records = {created.name: created, job.name: job}.values()
    for record in records:
        name_and_date(cloud, record, {})
    _queue(cloud, job)
    for record in records:
        cloud.store.put(record)
    _settle_jobs(cloud)
    return cloud.existing(created.name).body


def _job_spec(kind: str, body: Json) -> Json:
    """Return the CustomJobSpec that a job or pipeline contains. Raises Refusal if there is none."""
    if kind == "customJobs":
        return dict(required(body, "jobSpec", "custom_job"))
    if kind == "hyperparameterTuningJobs":
        return dict(required(body, "trialJobSpec", "hyperparameter_tuning_job"))
    inputs = required(body, "trainingTaskInputs", "training_pipeline")
    if not isinstance(inputs, dict):
        raise Refusal(400, "training_pipeline.training_task_inputs must be a message")
    return dict(inputs.get("trialJobSpec") or inputs)


def _job_of_pipeline(cloud: Cloud, pipeline: Record, api: Api) -> Record:
    """Return the job that a new pipeline creates. The VMs that it needs are not computed here.

    Raises Refusal if the pipeline's inputs do not define a job. The discovery document has no type for these inputs.
    """
    body = pipeline.body
    inputs = whole_numbers(body["trainingTaskInputs"])  # numbers are doubles in a field without a type
    kind = "customJobs"
    job: Json = {field: body[field] for field in ("labels", "encryptionSpec") if field in body}
    if "trialJobSpec" in inputs:
        kind = "hyperparameterTuningJobs"
        job |= {"displayName": f"{body['displayName']}-hyperparameter-tuning-job", **inputs}
    else:
        job |= {"displayName": f"{body['displayName']}-custom-job", "jobSpec": inputs}
    try:
        job = read_body(api, api.methods[f"aiplatform.projects.locations.{kind}.create"], job)
    except Refusal as error:
        problem = "Unable to parse `training_pipeline.training_task_inputs` into the `inputs` defined in the file:"
        raise Refusal(400, f"{problem} {body['trainingTaskDefinition']}: {error}") from error
    parent = pipeline.name.rpartition(f"/{PIPELINES}/")[0]
    record = Record(name=f"{parent}/{kind}/{cloud.number()}", project=pipeline.project, body=job)
    pipeline.meta[_JOB] = record.name
    body["state"] = "PIPELINE_STATE_PENDING"
    return record


def _job_needs(cloud: Cloud, call: Call, kind: str, spec: Json) -> Json:
    """Return what a job needs, as data for its ``meta``. Raises Refusal for anything that Vertex AI refuses."""
    pools = [pool for pool in spec.get("workerPoolSpecs", ()) if pool]
    if not pools:
        raise Refusal(400, "worker_pool_specs must have at least one worker pool")
    scheduling = spec.get("scheduling", {})
    strategy = scheduling.get("strategy", "STANDARD")
    machines = [_machine(pool) for pool in pools]
    if strategy == "FLEX_START" and len({(pool["machine"], pool["accelerator"]) for pool in machines}) > 1:
        raise Refusal(400, "FLEX_START requires the same machine configuration for all worker pools.")
    resource = spec.get("persistentResourceId", "")
    if resource:
        path = f"{call.path.rpartition('/')[0]}/persistentResources/{resource}"
        if f"{call.service}/{path}" not in cloud.store:
            raise not_found(path)
    wait = scheduling.get("maxWaitDuration", "86400s" if strategy == "FLEX_START" else "0s")
    return {
        "kind": kind,
        "pools": machines,
        "strategy": strategy,
        "wait": float(wait.removesuffix("s")),
        "resource": resource,
    }


def _machine(pool: Json) -> Json:
    machine = required(pool, "machineSpec", "worker_pool_specs[]")
    name = required(machine, "machineType", "worker_pool_specs[].machine_spec")
    if not (pool.get("containerSpec") or pool.get("pythonPackageSpec")):
        raise Refusal(400, "worker_pool_specs[] requires container_spec or python_package_spec")
    disk = pool.get("diskSpec", {})
    return {
        "machine": name,
        "accelerator": machine.get("acceleratorType", ""),
        "accelerators": machine.get("acceleratorCount"),
        "replicas": int(pool.get("replicaCount", 1)),
        "disk": disk.get("bootDiskType", ""),
        "disk_gb": int(disk.get("bootDiskSizeGb", 100)),
    }


def _charges(cloud: Cloud, call: Call, job: Json, trials: int) -> Iterator[tuple[Quota, float]]:
    """Yield the quota charges for the VMs of all trials of a job that run in parallel.

    A job on a persistent resource has no charges, since the resource is already charged for its VMs.
    """
    if job["resource"]:
        return
    for pool in job["pools"]:
        vms = TrainingVms(
            project=call.project,
            location=call.location,
            strategy=job["strategy"],
            machine_type=pool["machine"],
            nodes=pool["replicas"] * trials,
            accelerator_type=pool["accelerator"],
            accelerator_count=pool["accelerators"],
            disk_type=pool["disk"],
            disk_gb=pool["disk_gb"],
        )
        yield from cloud.judge.training_charges(vms)


def _cancel(cloud: Cloud, call: Call) -> Json:
    """Cancel a job, or the job of a pipeline. A job that has ended is not changed."""
    record = cloud.existing(call.name)
    job = cloud.existing(record.meta[_JOB]) if _JOB in record.meta else record
    if "job" in job.meta:
        cancel(cloud, job)
    return {}


def cancel(cloud: Cloud, job: Record) -> None:
    """Cancel a job that has not ended."""
    _end(job, "CANCELLED", cloud.clock.now())
    cloud.store.put(job)


def jobs_on(cloud: Cloud, resource: Record) -> list[Record]:
    """Return the jobs on a persistent resource that have not ended."""
    location = resource.name.rpartition("/persistentResources/")[0]
    records = [record for record in cloud.store.all() if record.name.startswith(f"{location}/")]
    return [record for record in records if "job" in record.meta and record.meta["job"]["resource"] == resource.id]


def _check_ended(_cloud: Cloud, call: Call, record: Record) -> None:
    if "job" in record.meta or _JOB in record.meta:
        raise failed_precondition(f"The job {call.path} is not in a final state: cancel it first.")


KINDS: Final = tuple(
    ResourceKind(collection=collection, schema=schema, style="longrunning", id_in="", check_delete=_check_ended)
    for collection, schema in JOB_KINDS.items()
)
HANDLERS: Final[Mapping[str, Handler]] = {
    **{f"{kind}.create": _create for kind in JOB_KINDS},
    **{f"{kind}.cancel": _cancel for kind in JOB_KINDS},
}

# States over time


def settle(cloud: Cloud) -> None:
    """Bring every job, then every pipeline, to its state at the clock's current time."""
    _settle_jobs(cloud)
    for name in [record.name for record in cloud.store.all() if _JOB in record.meta]:
        pipeline = cloud.existing(name)
        _follow(pipeline, cloud.existing(pipeline.meta[_JOB]))
        cloud.store.put(pipeline)


def _follow(pipeline: Record, job: Record) -> None:
    """Copy a job's state into its pipeline."""
    body = pipeline.body
    field = "backingCustomJob" if "/customJobs/" in job.name else "backingHyperparameterTuningJob"
    body["trainingTaskMetadata"] = {field: job.body["name"]}
    body.setdefault("startTime", job.body["createTime"])
    phase = str(job.body["state"]).removeprefix("JOB_STATE_")
    ended = phase in ("SUCCEEDED", "FAILED", "CANCELLED")
    body["state"] = f"PIPELINE_STATE_{phase if ended else 'RUNNING'}"
    body |= {key: job.body[key] for key in ("updateTime", "endTime", "error") if key in job.body}
    if ended:
        del pipeline.meta[_JOB]
        if phase == "SUCCEEDED" and "modelToUpload" in body:
            location = str(job.body["name"]).rpartition("/")[0].rpartition("/")[0]
            body["modelToUpload"] = {**body["modelToUpload"], "name": f"{location}/models/{job.id}"}


def _settle_jobs(cloud: Cloud) -> None:
    for name in [record.name for record in cloud.store.all() if "job" in record.meta]:
        record = cloud.existing(name)
        changed = False
        while "job" in record.meta and _PHASES[record.meta["job"]["phase"]](cloud, record):
            changed = True
        if changed:
            cloud.store.put(record)


def _queue(cloud: Cloud, record: Record) -> None:
    """Queue a job until it gets its quota and VMs. A fault may withhold the VMs."""
    now = cloud.clock.now()
    job = record.meta["job"]
    shortage = None if "asks" in job else cloud.interference.shortage(_as_job(record))
    queued = "asks" in job or (shortage is not None and job["strategy"] == "FLEX_START")
    _enter(record, "QUEUED" if queued else "PENDING", now)
    if shortage is not None:
        job["message"] = shortage.message
        if queued:
            job["held_by"] = shortage.fault
        else:
            job["fails_at"] = now


def _leave_queue(cloud: Cloud, record: Record) -> bool:
    """Continue a queued job that gets its quota or VMs, or end its waiting. Return True if its state changed."""
    job = record.meta["job"]
    now = cloud.clock.now()
    if "asks" in job:
        try:
            cloud.quota.hold(record, charges_of(job["asks"]))
        except Refusal:
            return False
        del job["asks"]
        _queue(cloud, record)
        return True
    ends = job["since"] + job["wait"] if job["wait"] else None
    if cloud.interference.over(job["held_by"]):
        _enter(record, "PENDING", now)
        return True
    if ends is not None and now >= ends:
        _end(record, "FAILED", ends, _EXHAUSTED, f"{job['message']} The maximum wait is over.")
        return True
    return False


def _leave_pending(cloud: Cloud, record: Record) -> bool:
    """Start a job that has its VMs, or make it fail if it does not get any. Return True if its state changed."""
    job = record.meta["job"]
    now = cloud.clock.now()
    if "fails_at" in job:
        if now < job["fails_at"]:
            return False
        _end(record, "FAILED", job["fails_at"], _EXHAUSTED, job["message"])
        return True
    waits = cloud.settings.seconds("aiplatform.jobs.pendingKept" if job["resource"] else "aiplatform.jobs.pending")
    begins = job["since"] + waits
    if now < begins:
        return False
    _enter(record, "RUNNING", begins)
    record.body.setdefault("startTime", stamp(begins))
    failure = cloud.interference.failure(_as_job(record))
    if failure is not None:
        share, message = failure
        job["message"] = message
        job["fails_at"] = begins + share * cloud.settings.seconds("aiplatform.jobs.running")
    return True


def _leave_running(cloud: Cloud, record: Record) -> bool:
    """End a job that has finished or that fails now. Return True if its state changed."""
    job = record.meta["job"]
    now = cloud.clock.now()
    ends = job.get("fails_at", job["since"] + cloud.settings.seconds("aiplatform.jobs.running"))
    if now < ends:
        return False
    if "fails_at" in job:
        _end(record, "FAILED", ends, _INTERNAL, job["message"])
    else:
        _end(record, "SUCCEEDED", ends)
    return True


_PHASES: Final = {"QUEUED": _leave_queue, "PENDING": _leave_pending, "RUNNING": _leave_running}


def _enter(record: Record, phase: str, seconds: float) -> None:
    record.meta["job"] |= {"phase": phase, "since": seconds}
    record.body |= {"state": f"JOB_STATE_{phase}", "updateTime": stamp(seconds)}


def _end(record: Record, phase: str, seconds: float, code: int = 0, message: str = "") -> None:
    ended = stamp(seconds)
    record.body |= {"state": f"JOB_STATE_{phase}", "updateTime": ended, "endTime": ended}
    if code:
        record.body["error"] = {"code": code, "message": message}
    del record.meta["job"]
    record.meta.pop("charges", None)


def _as_job(record: Record) -> TrainingJob:
    """Return a job as the ``TrainingJob`` that faults take."""
    job = record.meta["job"]
    return TrainingJob(
        kind=f"aiplatform.{job['kind']}",
        name=record.body.get("displayName", ""),
        region=record.name.split("/")[4],
        machine_types=() if job["resource"] else tuple(pool["machine"] for pool in job["pools"]),
    )
