"""A job's container, which Kubernetes and Vertex AI describe alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_platform.jobs.launching import argv, image, launch_variables
from training_platform.jobs.mounts import mount_variables
from training_platform.jobs.outputs import output_uri
from training_platform.jobs.resolve import ResolvedJob

OUTPUT_VARIABLE = "OUTPUT_URI"
PROFILE_VARIABLE = "PROFILE_URI"
LOADERS_VARIABLE = "DATA_LOADERS"


def container(job: ResolvedJob, image_key: str, platform: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return image, command, arguments and variables; ``image_key`` is what the image is called.

    ``platform`` are further variables, over which the job's own win.
    """
    command, args = argv(job)
    every = {**(platform or {}), **variables(job), **launch_variables(job)}
    return {
        image_key: image(job),
        **({"command": command} if command else {}),
        **({"args": args} if args else {}),
        "env": named(every),
    }


def named(variables: Mapping[str, str]) -> list[dict[str, str]]:
    """Return variables as both platforms list them."""
    return [{"name": name, "value": value} for name, value in variables.items()]


def variables(job: ResolvedJob) -> dict[str, str]:
    """Return the variables of the container: its output, mounts and data loaders, and the job's own, which win."""
    uri = output_uri(job)
    output = {OUTPUT_VARIABLE: uri} if uri else {}
    profile = {PROFILE_VARIABLE: f"{uri}/profile/"} if uri and job.spec.profiler else {}
    loaders = {LOADERS_VARIABLE: str(job.spec.data_loaders)} if job.spec.data_loaders else {}
    return {**output, **profile, **loaders, **mount_variables(job), **job.spec.env}
