"""Names of runs. A job file can be submitted several times, and each run has a unique name."""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections.abc import Iterable, Iterator
from itertools import product

from training_platform.parts.jobs.job_model import Sweep
from training_platform.parts.jobs.resolve import ResolvedJob

SUFFIX_LENGTH = 5
PLACEHOLDER = "{run}"
# Kubernetes' alphabet for generated names: without vowels, to avoid words, and without similar characters.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_RUN = re.compile(rf"(?P<job>[a-z]([a-z0-9-]*[a-z0-9])?)-[{_LETTERS}]{{{SUFFIX_LENGTH}}}(-[0-9]+)?")


def new_run(job: str) -> str:
    """Return the name of a new run, ``{job}-{5 letters or digits}``. Two names collide once in 14 million."""
    return f"{job}-{''.join(secrets.choice(_LETTERS) for _ in range(SUFFIX_LENGTH))}"


def job_of(run: str) -> str:
    """Return the job in the name of a run. If the name is not that of a run, return it unchanged."""
    match = _RUN.fullmatch(run)
    return match["job"] if match else run


def job_among(run: str, jobs: Iterable[str]) -> str:
    """Return the job of a run: of the names in ``jobs`` with which its name starts, the longest; else ``job_of``."""
    return max((job for job in jobs if run == job or run.startswith(f"{job}-")), key=len, default=job_of(run))


def as_run(job: ResolvedJob, run: str) -> ResolvedJob:
    """Return the job with a run's name, which also replaces ``{run}`` in command, arguments, variables and paths.

    Everything that is named after the job, such as pods and the folder below ``output``, is then specific to the run.
    """
    spec = job.spec
    mounts = ((mount, mount.path and mount.path.replace(PLACEHOLDER, run)) for mount in spec.mounts)
    filled = {
        "command": tuple(part.replace(PLACEHOLDER, run) for part in spec.command),
        "args": tuple(part.replace(PLACEHOLDER, run) for part in spec.args),
        "env": {name: value.replace(PLACEHOLDER, run) for name, value in spec.env.items()},
        "mounts": tuple(mount.model_copy(update={"path": path}) for mount, path in mounts),
    }
    return dataclasses.replace(job, name=run, spec=spec.model_copy(update=filled), is_run=True)


def point_runs(job: ResolvedJob, run: str) -> tuple[ResolvedJob, ...]:
    """Return a job's runs on GKE: one for each point of its grid, named ``{run}-{number}``, or one without a grid."""
    if job.spec.sweep is None:
        return (as_run(job, run),)
    args = ((*job.spec.args, *values) for values in points(job.spec.sweep))
    specs = (job.spec.model_copy(update={"args": point, "sweep": None}) for point in args)
    return tuple(as_run(dataclasses.replace(job, spec=spec), f"{run}-{n}") for n, spec in enumerate(specs))


def points(sweep: Sweep) -> Iterator[tuple[str, ...]]:
    """Yield the arguments ``--NAME=VALUE`` for every combination of a grid. The last parameter varies fastest.

    Vertex AI passes a trial's parameters in the same form. Source: Vertex AI docs, hyperparameter tuning, read
    2026-08-22.
    """
    names = list(sweep.parameters)
    for values in product(*(sweep.parameters[name].values for name in names)):
        yield tuple(f"--{name}={value}" for name, value in zip(names, values, strict=True))


def longest_name(job: ResolvedJob) -> str:
    """Return the longest name of the job's runs on GKE, with the suffix and the number in a grid."""
    run = job.name if job.is_run else f"{job.name}-{'x' * SUFFIX_LENGTH}"
    return f"{run}-{job.spec.sweep.size - 1}" if job.spec.sweep else run
