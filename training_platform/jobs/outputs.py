"""Where a run writes: one folder of its own below a bucket of the team."""

from __future__ import annotations

from training_platform.jobs.resolve import ResolvedJob
from training_platform.resources.cloud_names import bucket_id

_FOLDERS = {"AIP_MODEL_DIR": "model", "AIP_CHECKPOINT_DIR": "checkpoints", "AIP_TENSORBOARD_LOG_DIR": "logs"}


def output_uri(job: ResolvedJob) -> str | None:
    """Return the folder of the output, ``gs://<bucket>/<run>``, or None for a job without."""
    return f"gs://{bucket_id(job.scope, job.spec.output)}/{job.name}" if job.spec.output else None


def output_variables(job: ResolvedJob) -> dict[str, str]:
    """Return the variables that Vertex AI sets by itself from the folder of the output, for GKE to set them too.

    Source: Vertex AI docs, environment variables of custom training, read 2026-08-22.
    """
    uri = output_uri(job)
    return {name: f"{uri}/{folder}/" for name, folder in _FOLDERS.items()} if uri else {}
