"""Drives Vertex AI's jobs by google-cloud-aiplatform over REST: run by the examples' Python, prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform  # type: ignore[import-untyped]
from google.cloud.aiplatform import hyperparameter_tuning as hpt
from google.cloud.aiplatform_v1 import JobState
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceRestTransport
from google.cloud.aiplatform_v1.services.pipeline_service import PipelineServiceClient
from google.cloud.aiplatform_v1.services.pipeline_service.transports import PipelineServiceRestTransport
from google.cloud.aiplatform_v1.types import CustomJob, CustomJobSpec, HyperparameterTuningJob
from google.cloud.aiplatform_v1.types import custom_job as custom_job_types

PROJECT = "example-lab"
REGION = "us-central1"
PARENT = f"projects/{PROJECT}/locations/{REGION}"
POOL: dict[str, Any] = {
    "machine_spec": {"machine_type": "a3-highgpu-8g", "accelerator_type": "NVIDIA_H100_80GB", "accelerator_count": 8},
    "replica_count": 1,
    "container_spec": {"image_uri": "registry.example.com/train:1"},
}


def jobs_client(url: str) -> JobServiceClient:
    """Return a client over REST by http, which only a local cloud accepts."""
    transport = JobServiceRestTransport(host=f"{url}/aiplatform", credentials=AnonymousCredentials(), url_scheme="http")
    return JobServiceClient(transport=transport)


def rendered(url: str, parent: str, files: list[str]) -> None:
    """Create jobs from files of rendered bodies, and print what each is called and does; unknown fields are errors."""
    client = jobs_client(url)
    jobs = {}
    for path in map(Path, files):
        text = path.read_text(encoding="utf-8")
        job: Any
        if "trialJobSpec" in text:
            body = HyperparameterTuningJob.from_json(text)
            job = client.create_hyperparameter_tuning_job(parent=parent, hyperparameter_tuning_job=body)
        else:
            job = client.create_custom_job(parent=parent, custom_job=CustomJob.from_json(text))
        jobs[path.stem] = [job.display_name, job.state.name]
    sys.stdout.write(json.dumps(jobs))


def main(url: str) -> None:
    """Create, list, cancel and delete a job of each kind."""
    client = jobs_client(url)
    spec = {"worker_pool_specs": [POOL], "scheduling": {"strategy": custom_job_types.Scheduling.Strategy.FLEX_START}}
    created = client.create_custom_job(parent=PARENT, custom_job={"display_name": "train", "job_spec": spec})
    read = client.get_custom_job(name=created.name)
    listed = [job.display_name for job in client.list_custom_jobs(parent=PARENT)]
    client.cancel_custom_job(name=created.name)
    cancelled = client.get_custom_job(name=created.name).state
    client.delete_custom_job(name=created.name)
    sys.stdout.write(
        json.dumps(
            {
                "strategy": read.job_spec.scheduling.strategy.name,
                "accelerator": read.job_spec.worker_pool_specs[0].machine_spec.accelerator_type.name,
                "replicas": read.job_spec.worker_pool_specs[0].replica_count,
                "state": read.state.name,
                "listed": listed,
                "cancelled": JobState(cancelled).name,
                "left": len(list(client.list_custom_jobs(parent=PARENT))),
                "tuned": tuned(client, spec),
                "refused": refused(client),
                "sdk": by_the_sdk(client),
                "pipeline": pipeline(client, url, spec),
            }
        )
    )


def tuned(client: JobServiceClient, spec: dict[str, Any]) -> dict[str, Any]:
    """Create, read and cancel a hyperparameter tuning job."""
    study = {
        "metrics": [{"metric_id": "accuracy", "goal": "MAXIMIZE"}],
        "parameters": [
            {
                "parameter_id": "lr",
                "double_value_spec": {"min_value": 0.001, "max_value": 0.1},
                "scale_type": "UNIT_LOG_SCALE",
            }
        ],
    }
    body = {
        "display_name": "tune", "study_spec": study, "max_trial_count": 4, "parallel_trial_count": 2,
        "trial_job_spec": spec,
    }  # fmt: skip
    created = client.create_hyperparameter_tuning_job(parent=PARENT, hyperparameter_tuning_job=body)
    read = client.get_hyperparameter_tuning_job(name=created.name)
    client.cancel_hyperparameter_tuning_job(name=created.name)
    parameter = read.study_spec.parameters[0]
    return {
        "scale": parameter.scale_type.name,
        "goal": read.study_spec.metrics[0].goal.name,
        "most": parameter.double_value_spec.max_value,
        "trials": read.max_trial_count,
        "cancelled": client.get_hyperparameter_tuning_job(name=created.name).state.name,
    }


def pipeline(client: JobServiceClient, url: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Create a training pipeline, and read the job that it names, where the SDK's own classes look for it."""
    transport = PipelineServiceRestTransport(
        host=f"{url}/aiplatform", credentials=AnonymousCredentials(), url_scheme="http"
    )
    pipelines = PipelineServiceClient(transport=transport)
    definition = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
    inputs = CustomJobSpec.to_dict(CustomJobSpec(spec), preserving_proto_field_name=False)
    body = {"display_name": "vit", "training_task_definition": definition, "training_task_inputs": inputs}
    created = pipelines.create_training_pipeline(parent=PARENT, training_pipeline=body)
    read = pipelines.get_training_pipeline(name=created.name)
    job = client.get_custom_job(name=read.training_task_metadata["backingCustomJob"])
    pipelines.cancel_training_pipeline(name=created.name)
    return {
        "state": read.state.name,
        "job": job.state.name,
        "strategy": job.job_spec.scheduling.strategy.name,
        "cancelled": pipelines.get_training_pipeline(name=created.name).state.name,
        "with it": client.get_custom_job(name=job.name).state.name,
    }


def refused(client: JobServiceClient) -> str:
    """Ask for a machine that is not there; return the error's class and words."""
    pool = {**POOL, "machine_spec": {"machine_type": "a3-higpu-8g"}}
    try:
        client.create_custom_job(
            parent=PARENT, custom_job={"display_name": "train", "job_spec": {"worker_pool_specs": [pool]}}
        )
    except Exception as error:  # noqa: BLE001 # whatever it is, it is printed
        return f"{type(error).__name__}: {error}"
    return "taken"


def by_the_sdk(client: JobServiceClient) -> str:
    """Let the SDK's own classes write the bodies that people write with them, and create what they say."""
    aiplatform.init(project=PROJECT, location=REGION, credentials=AnonymousCredentials(), staging_bucket="gs://staging")
    job = aiplatform.CustomJob(
        display_name="sdk", worker_pool_specs=[{**POOL, "machine_spec": dict(POOL["machine_spec"])}]
    )
    tuning = aiplatform.HyperparameterTuningJob(
        display_name="sdk-tune",
        custom_job=job,
        metric_spec={"accuracy": "maximize"},
        parameter_spec={"lr": hpt.DoubleParameterSpec(min=0.001, max=0.1, scale="log")},
        max_trial_count=2,
        parallel_trial_count=1,
    )
    body = tuning._gca_resource  # the SDK's class sends it by gRPC, which the local cloud does not speak
    created = client.create_hyperparameter_tuning_job(parent=PARENT, hyperparameter_tuning_job=body)
    return f"{created.display_name} {created.max_trial_count}"


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else rendered(sys.argv[1], sys.argv[2], sys.argv[3:])
