"""Sends requests that IAM refuses by google-cloud-storage and google-cloud-aiplatform over REST: prints the errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import storage  # type: ignore[import-untyped]
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceRestTransport
from google.oauth2.credentials import Credentials

PROJECT = "example-lab"
REGION = "us-central1"


def main(url: str, member: str) -> None:
    """Read and write a bucket, and list jobs, as a member of the local cloud."""
    credentials = Credentials(token=f"as:{member}")  # type: ignore[no-untyped-call]
    options = ClientOptions(api_endpoint=f"{url}/storage")
    bucket = storage.Client(PROJECT, credentials=credentials, client_options=options).bucket("data")
    transport = JobServiceRestTransport(host=f"{url}/aiplatform", credentials=credentials, url_scheme="http")
    jobs = JobServiceClient(transport=transport)
    calls: dict[str, Callable[[], Any]] = {
        "get_bucket": bucket.reload,
        "list_blobs": lambda: list(bucket.list_blobs()),
        "upload": lambda: bucket.blob("run.json").upload_from_string("{}", retry=None),
        "list_jobs": lambda: list(jobs.list_custom_jobs(parent=f"projects/{PROJECT}/locations/{REGION}")),
    }
    sys.stdout.write(json.dumps({name: _outcome(call) for name, call in calls.items()}))


def _outcome(call: Callable[[], Any]) -> list[str]:
    try:
        call()
    except GoogleAPICallError as error:
        return [type(error).__name__, str(error)]
    return ["allowed", ""]


if __name__ == "__main__":
    main(*sys.argv[1:])
