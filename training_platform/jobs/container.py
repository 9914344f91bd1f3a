"""A job's container, which Kubernetes and Vertex AI describe alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_platform.jobs.resolve import ResolvedJob
from training_platform.resources.cloud_names import bucket_id

OUTPUT_VARIABLE = "OUTPUT_URI"


def container(job: ResolvedJob, image_key: str, platform: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return image, command, arguments and variables; ``image_key`` is what the image is called.

    ``platform`` are further variables, over which the job's own win.
    """
    spec, every = job.spec, {**(platform or {}), **variables(job)}
    return {
        image_key: spec.image,
        **({"command": list(spec.command)} if spec.command else {}),
        **({"args": list(spec.args)} if spec.args else {}),
        "env": [{"name": name, "value": value} for name, value in every.items()],
    }


def variables(job: ResolvedJob) -> dict[str, str]:
    """Return the variables of the container: where its output goes, and its own, which win."""
    uri = output_uri(job)
    return {**({OUTPUT_VARIABLE: uri} if uri else {}), **job.spec.env}


def output_uri(job: ResolvedJob) -> str | None:
    """Return the folder of the output, ``gs://<bucket>/<job>``, or None for a job without; every run writes to it."""
    return f"gs://{bucket_id(job.scope, job.spec.output)}/{job.name}" if job.spec.output else None
