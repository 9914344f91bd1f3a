"""Training pipelines: a pipeline makes a custom job, or a tuning job, which does its work, and ends as that ends.

It runs as soon as that job is there, also while the job waits for its VMs: so read in what google-cloud-aiplatform
printed for others, ``PIPELINE_STATE_RUNNING`` seconds after the creation. It names the job in ``trainingTaskMetadata``:
discovery document of 2026-11-06, CustomJobMetadata and HyperparameterTuningJobMetadata. Both read 2026-11-22. What the
job is called, that it has the pipeline's labels, and how inputs are refused that are none of it, is inferred.
"""

from __future__ import annotations

from typing import Final

from training_platform.config.reading.source import whole_numbers
from training_platform.sandbox.cloud.requests.discovery import Api
from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.requests.validation import read_body
from training_platform.sandbox.cloud.resources.model import Json
from training_platform.sandbox.cloud.services.vertex.job_states import cancelled, settle_jobs
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

PIPELINES: Final = "trainingPipelines"
_WORKS: Final = "works"  # of a pipeline that has not ended: the job that works for it
_UNPARSED: Final = "Unable to parse `training_pipeline.training_task_inputs` into the `inputs` defined in the file:"
_COPIED: Final = ("labels", "encryptionSpec")
_ENDED: Final = ("SUCCEEDED", "FAILED", "CANCELLED")


def job_of(cloud: Cloud, pipeline: Record, api: Api) -> Record:
    """Return the job that works for a new pipeline, without what it asks for.

    Raises ApiError where the inputs, which the document types as anything, are not those of such a job.
    """
    about = pipeline.body
    inputs = whole_numbers(about["trainingTaskInputs"])  # what is typed as anything has doubles alone
    kind = "hyperparameterTuningJobs" if "trialJobSpec" in inputs else "customJobs"
    title = {"customJobs": "custom-job", "hyperparameterTuningJobs": "hyperparameter-tuning-job"}[kind]
    body: Json = {
        "displayName": f"{about['displayName']}-{title}",
        **{key: about[key] for key in _COPIED if key in about},
        **(inputs if kind == "hyperparameterTuningJobs" else {"jobSpec": inputs}),
    }
    try:
        body = read_body(api, api.methods[f"aiplatform.projects.locations.{kind}.create"], body)
    except ApiError as error:
        raise ApiError(400, f"{_UNPARSED} {about['trainingTaskDefinition']}: {error}") from error
    parent = pipeline.name.rpartition(f"/{PIPELINES}/")[0]
    job = Record(name=f"{parent}/{kind}/{cloud.number()}", project=pipeline.project, body=body)
    pipeline.meta[_WORKS] = job.name
    pipeline.body["state"] = "PIPELINE_STATE_PENDING"
    return job


def working(record: Record) -> bool:
    """Whether a job or a pipeline has not ended."""
    return "job" in record.meta or _WORKS in record.meta


def cancel(cloud: Cloud, record: Record) -> None:
    """Cancel a job, or the one that works for a pipeline."""
    cancelled(cloud, cloud.existing(record.meta[_WORKS]) if _WORKS in record.meta else record)


def settle(cloud: Cloud) -> None:
    """Bring every job, and then every pipeline, to the state that it has reached by now."""
    settle_jobs(cloud)
    for name in [each.name for each in cloud.store.all() if _WORKS in each.meta]:
        pipeline = cloud.existing(name)
        _follow(pipeline, cloud.existing(pipeline.meta[_WORKS]))
        cloud.store.put(pipeline)


def _follow(pipeline: Record, job: Record) -> None:
    """Write into a pipeline what its job has come to."""
    field = "backingCustomJob" if "/customJobs/" in job.name else "backingHyperparameterTuningJob"
    pipeline.body["trainingTaskMetadata"] = {field: job.body["name"]}
    pipeline.body.setdefault("startTime", job.body["createTime"])
    phase = str(job.body["state"]).removeprefix("JOB_STATE_")
    pipeline.body["state"] = f"PIPELINE_STATE_{phase if phase in _ENDED else 'RUNNING'}"
    pipeline.body |= {key: job.body[key] for key in ("updateTime", "endTime", "error") if key in job.body}
    if phase not in _ENDED:
        return
    del pipeline.meta[_WORKS]
    if phase == "SUCCEEDED" and "modelToUpload" in pipeline.body:
        place = str(job.body["name"]).rpartition("/")[0].rpartition("/")[0]
        pipeline.body["modelToUpload"] = {**pipeline.body["modelToUpload"], "name": f"{place}/models/{job.id}"}
