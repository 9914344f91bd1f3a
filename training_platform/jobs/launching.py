"""How a job's program is started: by its image, or by a launcher that first fetches secrets and source.

The launcher is one file of Python without dependencies, given to the container's own Python; so its image needs
``python3`` and the job a command of its own, since nobody here knows the image's.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from training_platform.catalog import IMAGES
from training_platform.jobs.outputs import output_uri
from training_platform.jobs.resolve import ResolvedJob
from training_platform.jobs.sdist import package_uri
from training_platform.resources.cloud_names import secret_id

PLAN_VARIABLE = "TRAINING_LAUNCH"


@cache
def launcher() -> str:
    """Return the launcher's text."""
    return (Path(__file__).parent / "programs" / "launch.py").read_text(encoding="utf-8")


def image(job: ResolvedJob) -> str:
    """Return the image: the job's, that of its source, or Vertex AI's prebuilt one for its accelerator."""
    source = job.spec.source
    if source is None:
        return job.spec.image or ""
    return source.image or IMAGES[f"vertex-training-{_kind(job)}"]


def launched(job: ResolvedJob) -> bool:
    """Whether something has to be done in the container before its program starts, or when it has ended."""
    return bool(job.spec.secrets or job.spec.notify or job.spec.source)


def argv(job: ResolvedJob) -> tuple[list[str], list[str]]:
    """Return command and arguments of the container."""
    spec = job.spec
    if not launched(job):
        return list(spec.command), list(spec.args)
    program = ["python3", "-m", module(job)] if spec.source else list(spec.command)
    return ["python3", "-c", launcher()], [*program, *spec.args]


def module(job: ResolvedJob) -> str:
    """Return the module that a job with source runs."""
    source = job.spec.source
    if source is None:
        return ""
    return source.module or Path(source.file or "").stem


def launch_variables(job: ResolvedJob) -> dict[str, str]:
    """Return the launcher's orders as a variable; empty for a job that needs no launcher."""
    if not launched(job):
        return {}
    plan: dict[str, Any] = {
        "secrets": {name: secret_version(job, text) for name, text in job.spec.secrets.items()},
        "package": package_uri(job),
        "topic": job.spec.notify,
        "message": {"run": job.name, "team": job.team.name, "output": output_uri(job)} if job.spec.notify else None,
    }
    return {PLAN_VARIABLE: json.dumps({key: value for key, value in plan.items() if value})}


def secret_version(job: ResolvedJob, text: str) -> str:
    """Return the full name of a version of one of the team's secrets, from ``NAME`` or ``NAME:VERSION``."""
    key, _, version = text.partition(":")
    return f"projects/{job.scope.project}/secrets/{secret_id(job.scope, key)}/versions/{version or 'latest'}"


def _kind(job: ResolvedJob) -> str:
    """Return the kind of machine that a job runs on, gpu, tpu or cpu; of its two targets GKE's comes first."""
    if job.flavor:
        return job.flavor.accelerator.kind
    machine = job.spec.vertex.machine if job.spec.vertex else None
    return machine.accelerator.kind if machine and machine.accelerator else "cpu"
