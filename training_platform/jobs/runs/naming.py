"""Names of runs: a job file can be submitted any number of times, and no two of its runs have one name."""

from __future__ import annotations

import dataclasses
import re
import secrets

from training_platform.jobs.resolve import ResolvedJob

SUFFIX_LENGTH = 5
PLACEHOLDER = "{run}"
RUN_LABEL = "training-platform/run"
JOB_LABEL = "training-platform/job"
# As Kubernetes makes names up: no vowels, so that no words come of it, and nothing that looks like another letter.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_RUN = re.compile(rf"(?P<job>[a-z]([a-z0-9-]*[a-z0-9])?)-[{_LETTERS}]{{{SUFFIX_LENGTH}}}")


def new_run(job: str) -> str:
    """Return the name of a new run, ``{job}-{5 letters or digits}``; one run in 14 million is like another."""
    return f"{job}-{''.join(secrets.choice(_LETTERS) for _ in range(SUFFIX_LENGTH))}"


def job_of(run: str) -> str:
    """Return the job that a run's name begins with; the name itself where it is no run's."""
    match = _RUN.fullmatch(run)
    return match["job"] if match else run


def as_run(job: ResolvedJob, run: str) -> ResolvedJob:
    """Return the job under the name of one run, with ``{run}`` in command, arguments and variables replaced by it.

    Everything that is named after the job (pods, the folder below ``output``) is then the run's own.
    """
    spec = job.spec.model_copy(
        update={
            "command": tuple(_filled(part, run) for part in job.spec.command),
            "args": tuple(_filled(part, run) for part in job.spec.args),
            "env": {name: _filled(value, run) for name, value in job.spec.env.items()},
        }
    )
    return dataclasses.replace(job, name=run, spec=spec)


def _filled(text: str, run: str) -> str:
    return text.replace(PLACEHOLDER, run)
