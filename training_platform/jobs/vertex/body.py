"""What a job is on Vertex AI: a custom job, a tuning job for a sweep, or a training pipeline around either.

Source: Vertex AI docs on hyperparameter tuning and training pipelines, and their protos, read 2026-08-22; a pipeline's
tuning task also in the discovery document of 2026-11-06, HyperparameterTuningTask.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from training_platform.jobs.outputs import output_uri
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.spec.sweep import Range, Sweep
from training_platform.jobs.spec.vertex import Pipeline
from training_platform.jobs.vertex.custom_job import custom_job, custom_job_spec, envelope
from training_platform.jobs.vertex.pools import vertex_target

Collection = Literal["customJobs", "hyperparameterTuningJobs", "trainingPipelines"]
TASKS: Final = "gs://google-cloud-aiplatform/schema/trainingjob/definition"
CUSTOM_TASK, TUNING_TASK = f"{TASKS}/custom_task_1.0.0.yaml", f"{TASKS}/hyperparameter_tuning_task_1.0.0.yaml"
ALGORITHMS = {"grid": "GRID_SEARCH", "random": "RANDOM_SEARCH", "bayesian": "ALGORITHM_UNSPECIFIED"}
_SCALES = {"linear": "UNIT_LINEAR_SCALE", "log": "UNIT_LOG_SCALE"}


class VertexBody(NamedTuple):
    """The body of a create, and below which collection of a region it is created."""

    collection: Collection
    body: dict[str, Any]


def vertex_body(job: ResolvedJob) -> VertexBody:
    """Return what a run of the job creates; ValueError for a job without a Vertex target."""
    target = vertex_target(job)
    if target.pipeline:
        return VertexBody("trainingPipelines", training_pipeline(job, target.pipeline))
    if job.spec.sweep:
        return VertexBody("hyperparameterTuningJobs", {**envelope(job), **tuning_spec(job, job.spec.sweep)})
    return VertexBody("customJobs", custom_job(job))


def job_spec(body: dict[str, Any]) -> dict[str, Any]:
    """Return the CustomJobSpec of any of them."""
    task: dict[str, Any] = body.get("trainingTaskInputs") or body
    found: dict[str, Any] = task.get("trialJobSpec") or task.get("jobSpec") or body.get("trainingTaskInputs") or {}
    return found


def tuning_spec(job: ResolvedJob, sweep: Sweep) -> dict[str, Any]:
    """Return what a tuning job or task says of a sweep; each trial writes below ``<output>/<trial>/``."""
    return {
        "studySpec": {
            "metrics": [{"metricId": sweep.metric or "", "goal": sweep.goal.upper()}],
            "parameters": [_parameter(name, values) for name, values in sweep.parameters.items()],
            "algorithm": ALGORITHMS[sweep.method],
        },
        "maxTrialCount": sweep.size,
        "parallelTrialCount": min(sweep.parallel, sweep.size),
        **({"maxFailedTrialCount": sweep.max_failed_trials} if sweep.max_failed_trials else {}),
        "trialJobSpec": custom_job_spec(job),
    }


def _parameter(name: str, values: Range) -> dict[str, Any]:
    """Return a parameter: a list of numbers or texts, or a range of whole or any numbers."""
    low, high = values.min, values.max
    if low is None or high is None:
        if any(isinstance(value, str) for value in values.values):
            return {"parameterId": name, "categoricalValueSpec": {"values": [str(each) for each in values.values]}}
        return {"parameterId": name, "discreteValueSpec": {"values": sorted(values.values)}}
    if isinstance(low, int) and isinstance(high, int):
        bounds: dict[str, Any] = {"integerValueSpec": {"minValue": str(low), "maxValue": str(high)}}
    else:
        bounds = {"doubleValueSpec": {"minValue": low, "maxValue": high}}
    return {"parameterId": name, **bounds, "scaleType": _SCALES[values.scale]}


def training_pipeline(job: ResolvedJob, pipeline: Pipeline) -> dict[str, Any]:
    """Return the TrainingPipeline, whose inputs are the job's CustomJobSpec, or the sweep of such jobs."""
    sweep = job.spec.sweep
    data, model = _input_data(job, pipeline), pipeline.model
    return {
        **envelope(job),
        "trainingTaskDefinition": TUNING_TASK if sweep else CUSTOM_TASK,
        "trainingTaskInputs": tuning_spec(job, sweep) if sweep else custom_job_spec(job),
        **({"inputDataConfig": data} if data else {}),
        **({"modelToUpload": {"displayName": model.name, "containerSpec": {"imageUri": model.image}}} if model else {}),
    }


def _input_data(job: ResolvedJob, pipeline: Pipeline) -> dict[str, Any]:
    """Return the managed data set: where Vertex AI writes what the job reads, and how it is divided."""
    if pipeline.data_set is None:
        return {}
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
