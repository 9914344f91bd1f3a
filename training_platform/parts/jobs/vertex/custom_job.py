"""A job's body on Vertex AI: a custom job, a tuning job for a sweep, or a training pipeline for either.

Source: Vertex AI docs on hyperparameter tuning and training pipelines, and their protos, read 2026-08-22. The tuning
task of a pipeline is also in the discovery document of 2026-11-06, HyperparameterTuningTask.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from training_platform.config.model.capacity import Capacity
from training_platform.parts.jobs.container import output_uri
from training_platform.parts.jobs.job_model import Pipeline, Range, Sweep, VertexTarget, seconds
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.vertex.worker_pools import (
    pools,
    tensorboard_reference,
    vertex_target,
    vms,
    worker_pools,
)
from training_platform.quota.charges import Usage, VmUsage, vertex_usage
from training_platform.resources.network import attachment
from training_platform.resources.scope import jobs_account_email, persistent_resource_id

Collection = Literal["customJobs", "hyperparameterTuningJobs", "trainingPipelines"]
TASKS: Final = "gs://google-cloud-aiplatform/schema/trainingjob/definition"
CUSTOM_TASK = f"{TASKS}/custom_task_1.0.0.yaml"
TUNING_TASK = f"{TASKS}/hyperparameter_tuning_task_1.0.0.yaml"
ALGORITHMS = {"grid": "GRID_SEARCH", "random": "RANDOM_SEARCH", "bayesian": "ALGORITHM_UNSPECIFIED"}
_SCALES = {"linear": "UNIT_LINEAR_SCALE", "log": "UNIT_LOG_SCALE"}


class VertexBody(NamedTuple):
    """The body of a create request, and the region's collection that it is sent to."""

    collection: Collection
    body: dict[str, Any]


def vertex_body(job: ResolvedJob) -> VertexBody:
    """Return the body for a run of the job. Raises ValueError for a job without a Vertex target."""
    target = vertex_target(job)
    if target.pipeline:
        return VertexBody("trainingPipelines", training_pipeline(job, target.pipeline))
    if job.spec.sweep:
        return VertexBody("hyperparameterTuningJobs", {**envelope(job), **tuning_spec(job, job.spec.sweep)})
    return VertexBody("customJobs", custom_job(job))


def job_spec(body: dict[str, Any]) -> dict[str, Any]:
    """Return the CustomJobSpec inside a custom job, a tuning job or a pipeline."""
    task: dict[str, Any] = body.get("trainingTaskInputs") or body
    spec: dict[str, Any] = task.get("trialJobSpec") or task.get("jobSpec") or body.get("trainingTaskInputs") or {}
    return spec


def tuning_spec(job: ResolvedJob, sweep: Sweep) -> dict[str, Any]:
    """Return the fields of a tuning job or task for a sweep. Each trial writes below ``<output>/<trial>/``."""
    spec: dict[str, Any] = {
        "studySpec": {
            "metrics": [{"metricId": sweep.metric or "", "goal": sweep.goal.upper()}],
            "parameters": [_parameter(name, values) for name, values in sweep.parameters.items()],
            "algorithm": ALGORITHMS[sweep.method],
        },
        "maxTrialCount": sweep.size,
        "parallelTrialCount": min(sweep.parallel, sweep.size),
    }
    if sweep.max_failed_trials:
        spec["maxFailedTrialCount"] = sweep.max_failed_trials
    spec["trialJobSpec"] = custom_job_spec(job)
    return spec


def _parameter(name: str, values: Range) -> dict[str, Any]:
    """Return a parameter: a list of numbers or strings, or a range of integers or floats."""
    low = values.min
    high = values.max
    if low is None or high is None:
        if any(isinstance(value, str) for value in values.values):
            return {"parameterId": name, "categoricalValueSpec": {"values": [*map(str, values.values)]}}
        return {"parameterId": name, "discreteValueSpec": {"values": sorted(values.values)}}
    if isinstance(low, int) and isinstance(high, int):
        bounds: dict[str, Any] = {"integerValueSpec": {"minValue": str(low), "maxValue": str(high)}}
    else:
        bounds = {"doubleValueSpec": {"minValue": low, "maxValue": high}}
    return {"parameterId": name, **bounds, "scaleType": _SCALES[values.scale]}


def training_pipeline(job: ResolvedJob, pipeline: Pipeline) -> dict[str, Any]:
    """Return the TrainingPipeline. Its inputs are the job's CustomJobSpec, or a sweep of such jobs."""
    body = envelope(job)
    if job.spec.sweep:
        body["trainingTaskDefinition"] = TUNING_TASK
        body["trainingTaskInputs"] = tuning_spec(job, job.spec.sweep)
    else:
        body["trainingTaskDefinition"] = CUSTOM_TASK
        body["trainingTaskInputs"] = custom_job_spec(job)
    if pipeline.data_set is not None:
        body["inputDataConfig"] = _input_data(job, pipeline)
    if model := pipeline.model:
        body["modelToUpload"] = {"displayName": model.name, "containerSpec": {"imageUri": model.image}}
    return body


def _input_data(job: ResolvedJob, pipeline: Pipeline) -> dict[str, Any]:
    """Return the managed data set, with its split and the location to which Vertex AI writes it for the job."""
    split = pipeline.split
    fractions = {"training": split.training, "validation": split.validation, "test": split.test}
    schema = {"annotationSchemaUri": pipeline.annotation_schema} if pipeline.annotation_schema else {}
    destination = (
        {"gcsDestination": {"outputUriPrefix": f"{output_uri(job)}/data"}}
        if pipeline.read_as == "files"
        else {"bigqueryDestination": {"outputUri": f"bq://{job.scope.project}"}}
    )
    return {
        "datasetId": pipeline.data_set,
        **destination,
        **schema,
        "fractionSplit": {f"{name}Fraction": percent / 100 for name, percent in fractions.items()},
    }


DEFAULT_WAIT = "1d"  # the API's default for flex-start
_STRATEGIES: dict[Capacity, str] = {"on-demand": "STANDARD", "spot": "SPOT", "flex-start": "FLEX_START"}
_HOUR = 3600


def custom_job(job: ResolvedJob) -> dict[str, Any]:
    """Return the CustomJob, which runs as the service account of the team's jobs. Raises ValueError.

    The error is raised for a job without a Vertex target.
    """
    return {**envelope(job), "jobSpec": custom_job_spec(job)}


def envelope(job: ResolvedJob) -> dict[str, Any]:
    """Return the fields that all three kinds of bodies share: name, labels, and the encryption key."""
    body: dict[str, Any] = {"displayName": job.name, "labels": job.scope.labels}
    if key := vertex_target(job).kms_key:
        body["encryptionSpec"] = {"kmsKeyName": key}
    return body


def custom_job_spec(job: ResolvedJob) -> dict[str, Any]:
    """Return the CustomJobSpec."""
    target = vertex_target(job)
    uri = output_uri(job)
    network = attachment(target.network_attachment, target.region, job.scope)
    resource = target.persistent_resource
    # The experiment and the run's context in it, which Vertex AI creates.
    contexts = f"projects/{job.scope.project}/locations/{target.region}/metadataStores/default/contexts"
    experiment = f"{contexts}/{job.spec.experiment}" if job.spec.experiment else ""
    optional = {
        "baseOutputDirectory": {"outputUriPrefix": uri} if uri else None,
        "persistentResourceId": persistent_resource_id(job.scope, resource) if resource else None,
        "network": target.network,
        "pscInterfaceConfig": {"networkAttachment": network} if network else None,
        "tensorboard": tensorboard_reference(job, target.region) if job.spec.tensorboard else None,
        "experiment": experiment,
        "experimentRun": f"{experiment}-{job.name}" if experiment else "",
        "enableWebAccess": target.web_access,
        "enableDashboardAccess": job.spec.profiler,
    }
    return {
        "workerPoolSpecs": worker_pools(job, target),
        "scheduling": _scheduling(job, target),
        "serviceAccount": jobs_account_email(job.scope),
        **{key: value for key, value in optional.items() if value},
    }


def charges(job: ResolvedJob) -> list[Usage]:
    """Return the job's charges to Vertex AI's quotas. Spot and flex-start charge the preemptible quotas.

    All parallel trials of a sweep are counted. A job on a persistent resource charges nothing, since the resource is
    already charged for its machines.
    """
    target = vertex_target(job)
    sweep = job.spec.sweep
    if target.persistent_resource:
        return []
    slice_vms = vms(target) if target.topology else None
    parallel = min(sweep.parallel, sweep.size) if sweep else 1
    usages = [
        VmUsage(
            project=job.scope.project,
            machine_type=pool.machine.name,
            nodes=(slice_vms or pool.replicas) * parallel,
            capacity=target.capacity,
            location=target.region,
            disk_type=target.boot_disk.type,
            disk_gb=target.boot_disk.size_gb,
            accelerator_type=pool.machine.vertex_gpus,
            accelerator_count=pool.machine.chips,
        )
        for pool in pools(target)
    ]
    by_keys: dict[Any, Usage] = {}
    for usage in (usage for pool in usages for usage in vertex_usage(pool)):
        before = by_keys.get(usage.keys)
        by_keys[usage.keys] = usage._replace(amount=usage.amount + (before.amount if before else 0))
    return list(by_keys.values())


def _scheduling(job: ResolvedJob, target: VertexTarget) -> dict[str, Any]:
    """Return strategy, time-outs and retries. The maximum wait is set only for flex-start.

    If one of several VMs fails, all restart from the last checkpoint, as on GKE.
    """
    scheduling: dict[str, Any] = {
        "strategy": _STRATEGIES[target.capacity],
        "timeout": f"{target.timeout_hours * _HOUR}s",
    }
    if target.capacity == "flex-start":
        scheduling["maxWaitDuration"] = f"{seconds(target.max_wait or DEFAULT_WAIT)}s"
    if job.spec.retries == 0:
        scheduling["disableRetries"] = True
    elif vms(target) > 1:
        scheduling["restartJobOnWorkerRestart"] = True
    return scheduling
