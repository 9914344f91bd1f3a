"""Drives Vertex AI's jobs by google-cloud-aiplatform over REST: run by the examples' Python, prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceRestTransport
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob


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


if __name__ == "__main__":
    rendered(sys.argv[1], sys.argv[2], sys.argv[3:])
