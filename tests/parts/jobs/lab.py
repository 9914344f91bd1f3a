"""Types of fixtures that read jobs in the organisation of tests/support/lab.py, and parts of what is rendered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from training_platform.config.reading.finding import Finding
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.job_checks import Judgement
from training_platform.parts.jobs.job_model import Target
from training_platform.parts.jobs.resolve import ResolvedJob

Lab = Callable[..., Path]
Read = Callable[..., tuple[ResolvedJob | None, list[Finding]]]
Take = Callable[..., ResolvedJob]
Judge = Callable[[str, Target], Judgement]
# By which the VMs of a run find each other.
NODES = frozenset(
    {
        "NUM_NODES",
        "NODE_RANK",
        "NODE_NAMES",
        "MASTER_ADDR",
        "MASTER_PORT",
        "ACCELERATORS_PER_NODE",
        "RANK",
        "WORLD_SIZE",
    }
    | {f"PET_{name}" for name in ("NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT")}
    | {"JAX_COORDINATOR_ADDRESS"}
)


def without_nodes(container: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the variables of a container except for those that name its nodes."""
    return [variable for variable in container["env"] if variable["name"] not in NODES]


def replicated(job: ResolvedJob) -> dict[str, Any]:
    """Return the only replicated job of a JobSet."""
    (replicated_job,) = jobset(job)["spec"]["replicatedJobs"]
    return dict(replicated_job)


def template(job: ResolvedJob) -> dict[str, Any]:
    """Return the template of the pods that train."""
    return dict(replicated(job)["template"]["spec"]["template"])


def pod(job: ResolvedJob) -> dict[str, Any]:
    """Return the specification of the pods that train."""
    return dict(template(job)["spec"])


def container(job: ResolvedJob) -> dict[str, Any]:
    """Return the container that trains."""
    (training,) = pod(job)["containers"]
    return dict(training)


def with_flavor(job: ResolvedJob, **changes: Any) -> ResolvedJob:
    """Return a job whose flavor has other fields."""
    assert job.flavor is not None
    return dataclasses.replace(job, flavor=dataclasses.replace(job.flavor, **changes))


def with_pool(job: ResolvedJob, **changes: Any) -> ResolvedJob:
    """Return a job whose flavor has one pool, the last of its own with other fields."""
    assert job.flavor is not None
    return with_flavor(job, pools=(dataclasses.replace(job.flavor.pools[-1], **changes),))


def with_team(job: ResolvedJob, **changes: Any) -> ResolvedJob:
    """Return a job whose team has other fields."""
    return dataclasses.replace(job, team=job.team.model_copy(update=changes))


def insert(path: Path, before: str, lines: str) -> None:
    """Insert lines into a file, before its only line that begins so."""
    text = path.read_text(encoding="utf-8")
    assert text.count(f"\n{before}") == 1
    path.write_text(text.replace(f"\n{before}", f"\n{lines}{before}"), encoding="utf-8")
