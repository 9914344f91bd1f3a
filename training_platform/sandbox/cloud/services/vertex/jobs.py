"""Vertex AI's training jobs: created, listed, cancelled and deleted; their states over time are in ``job_states``.

A custom job, a hyperparameter tuning job and a training pipeline hold the same thing at different places: a
CustomJobSpec. A job on a persistent resource asks for no VMs of its own. Source: Vertex AI's discovery documents and
docs on custom jobs and Dynamic Workload Scheduler; facts read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.quota.charges import VERTEX_DEFAULT_DISK, VertexUsage, vertex_usage
from training_platform.quota.keys import QuotaKey
from training_platform.sandbox.cloud.requests.errors import ApiError, failed_precondition, not_found, required
from training_platform.sandbox.cloud.resources.model import Call, Handler, Json, Kind
from training_platform.sandbox.cloud.services.vertex.job_states import JOB_KINDS, queued, settle_jobs
from training_platform.sandbox.cloud.services.vertex.names import name_and_date
from training_platform.sandbox.cloud.services.vertex.pipelines import PIPELINES, cancel, job_of, working
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

_SCHEMAS: Final = {
    "customJobs": "CustomJob",
    "hyperparameterTuningJobs": "HyperparameterTuningJob",
    "trainingPipelines": "TrainingPipeline",
}
_CAPACITY: Final[Mapping[str, str]] = {"SPOT": "spot", "FLEX_START": "flex-start"}


def job_spec(kind: str, body: Json) -> Json:
    """Return the CustomJobSpec of a job. Raises ApiError for a job without one."""
    if kind == "customJobs":
        return dict(required(body, "jobSpec", "custom_job"))
    if kind == "hyperparameterTuningJobs":
        return dict(required(body, "trialJobSpec", "hyperparameter_tuning_job"))
    inputs = required(body, "trainingTaskInputs", "training_pipeline")
    if not isinstance(inputs, dict):
        raise ApiError(400, "training_pipeline.training_task_inputs must be a message")
    return dict(inputs.get("trialJobSpec") or inputs)


def _at_a_time(body: Json) -> int:
    """Return how many trials run side by side, of a tuning job or of a pipeline's tuning task; 1 of any other."""
    return int((body.get("trainingTaskInputs") or body).get("parallelTrialCount", 1))


def _create(cloud: Cloud, call: Call) -> Json:
    kind = call.path.rpartition("/")[2]
    body = dict(call.body)
    required(body, "displayName", _SCHEMAS[kind])
    spec = job_spec(kind, body)
    made = Record(name=f"{call.name}/{cloud.number()}", project=call.project, body=body)
    record = job_of(cloud, made, call.api) if kind == PIPELINES else made
    record.meta["job"] = _asked(cloud, call, kind, spec)
    _hold(cloud, record, list(_charges(cloud, call, record.meta["job"], _at_a_time(body))))
    both = {made.name: made, record.name: record}.values()
    for each in both:
        name_and_date(cloud, each, {})
    queued(cloud, record)
    for each in both:
        cloud.store.put(each)
    settle_jobs(cloud)
    return cloud.existing(made.name).body


def _asked(cloud: Cloud, call: Call, kind: str, spec: Json) -> Json:
    """Return what a job asks for, as data that outlives the server. Raises ApiError for what Vertex AI refuses."""
    pools = [pool for pool in spec.get("workerPoolSpecs", ()) if pool]
    if not pools:
        raise ApiError(400, "worker_pool_specs must have at least one worker pool")
    scheduling = spec.get("scheduling", {})
    strategy = scheduling.get("strategy", "STANDARD")
    machines = [_machine(pool) for pool in pools]
    if strategy == "FLEX_START" and len({(each["machine"], each["accelerator"]) for each in machines}) > 1:
        raise ApiError(400, "FLEX_START requires the same machine configuration for all worker pools.")
    resource = spec.get("persistentResourceId", "")
    if resource and f"{call.name.rpartition('/')[0]}/persistentResources/{resource}" not in cloud.store:
        raise not_found(f"{call.path.rpartition('/')[0]}/persistentResources/{resource}")
    wait = scheduling.get("maxWaitDuration", "86400s" if strategy == "FLEX_START" else "0s")
    return {
        "kind": kind, "pools": machines, "strategy": strategy, "wait": float(wait.removesuffix("s")),
        "restarts": bool(scheduling.get("restartJobOnWorkerRestart")), "resource": resource,
    }  # fmt: skip


def _machine(pool: Json) -> Json:
    machine = required(pool, "machineSpec", "worker_pool_specs[]")
    name = required(machine, "machineType", "worker_pool_specs[].machine_spec")
    if name not in MACHINE_TYPES:
        nearest = find_nearest(name, MACHINE_TYPES)
        raise ApiError(400, f'Machine type "{name}" is not supported.' + (f" Nearest: {nearest}." if nearest else ""))
    if not (pool.get("containerSpec") or pool.get("pythonPackageSpec")):
        raise ApiError(400, "worker_pool_specs[] requires container_spec or python_package_spec")
    disk = pool.get("diskSpec", {})
    return {
        "machine": name,
        "accelerator": machine.get("acceleratorType", ""),
        "accelerators": machine.get("acceleratorCount"),
        "replicas": int(pool.get("replicaCount", 1)),
        "disk": disk.get("bootDiskType", VERTEX_DEFAULT_DISK),
        "disk_gb": int(disk.get("bootDiskSizeGb", 100)),
    }


def _charges(cloud: Cloud, call: Call, job: Json, copies: int) -> Iterator[tuple[QuotaKey, float]]:
    """Yield what a job's VMs charge; those of a persistent resource are charged already."""
    for pool in () if job["resource"] else job["pools"]:
        usage = VertexUsage(
            project=call.project,
            machine_type=pool["machine"],
            replicas=pool["replicas"] * copies,
            capacity=_CAPACITY.get(job["strategy"], "on-demand"),  # type: ignore[arg-type] # two of its choices
            region=call.location,
            disk_type=pool["disk"],
            disk_gb=pool["disk_gb"],
            accelerator_type=pool["accelerator"] or None,
            accelerator_count=pool["accelerators"],
        )
        for each in vertex_usage(usage):
            yield cloud.quota.charged_key(each.keys), each.amount


def _hold(cloud: Cloud, record: Record, charges: list[tuple[QuotaKey, float]]) -> None:
    """Charge a job, or let it wait for what others hold. Raises ApiError for one that exceeds a quota alone.

    Source: Vertex AI docs, understanding the training service: a job is queued until there is quota; read 2026-11-22.
    """
    try:
        cloud.quota.hold("aiplatform", record, charges)
    except ApiError:
        if any((limit := cloud.quota.limit(key)) is not None and amount > limit for key, amount in charges):
            raise
        record.meta["job"]["asks"] = [[list(key), amount] for key, amount in charges]


def _cancel(cloud: Cloud, call: Call) -> Json:
    cancel(cloud, cloud.existing(call.name))
    return {}


def _removable(_cloud: Cloud, call: Call, record: Record) -> None:
    if working(record):
        raise failed_precondition(f"The job {call.path} is not in a final state: cancel it first.")


KINDS: Final = tuple(
    Kind(collection=collection, schema=schema, style="longrunning", id_in="", removable=_removable)
    for collection, schema in _SCHEMAS.items()
)
HANDLERS: Final[dict[str, Handler]] = {
    **{f"{kind}.create": _create for kind in JOB_KINDS},
    **{f"{kind}.cancel": _cancel for kind in JOB_KINDS},
}
