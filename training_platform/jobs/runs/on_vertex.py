"""Runs on Vertex AI, read from the bodies of its custom jobs, and why one waits or failed. Pure.

Source: Vertex AI v1, CustomJob and JobState of the discovery document that google-api-python-client ships, read
2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from training_platform.jobs.runs.naming import job_of
from training_platform.jobs.runs.state import Run, State

Json = Mapping[str, Any]
TEAM_LABEL = "team"
ENVIRONMENT_LABEL = "environment"
_STATES: Mapping[str, State] = {
    "JOB_STATE_QUEUED": "waiting",
    "JOB_STATE_PENDING": "waiting",
    "JOB_STATE_PAUSED": "waiting",
    "JOB_STATE_RUNNING": "running",
    "JOB_STATE_UPDATING": "running",
    "JOB_STATE_SUCCEEDED": "succeeded",
    "JOB_STATE_PARTIALLY_SUCCEEDED": "succeeded",
    "JOB_STATE_FAILED": "failed",
    "JOB_STATE_EXPIRED": "failed",
    "JOB_STATE_CANCELLING": "cancelling",
    "JOB_STATE_CANCELLED": "cancelled",
}


def vertex_run(body: Json) -> Run:
    """Return the run that a custom job is."""
    _, _, _, region, _, _ = str(body["name"]).split("/")
    state = _STATES.get(str(body.get("state")), "unknown")
    name = str(body.get("displayName") or "")
    return Run(
        name=name,
        job=job_of(name),
        team=str((body.get("labels") or {}).get(TEAM_LABEL) or ""),
        target="vertex",
        place=region,
        identity=str(body["name"]),
        state=state,
        created=str(body.get("createTime") or ""),
        reason=str((body.get("error") or {}).get("message") or ""),
        started=str(body.get("startTime") or ""),
        ended=str(body.get("endTime") or ""),
    )


def why_on_vertex(run: Run, body: Json) -> Iterator[str]:
    """Yield sentences, the cause first."""
    state = str(body.get("state") or "unknown").removeprefix("JOB_STATE_")
    scheduling = (body.get("jobSpec") or {}).get("scheduling") or {}
    if run.reason:
        yield f'Vertex AI says: "{" ".join(run.reason.split()).rstrip(".")}".'
    if run.state == "waiting":
        yield from _waiting(run, state, body, scheduling)
    elif run.state == "failed" and state == "EXPIRED":
        yield f"{run.name} has ended since it ran for longer than {scheduling.get('timeout', 'its time-out')}."
    elif run.state == "failed":
        yield f"{run.name} has failed. The lines before its end: training-platform job logs {run.name}."
    elif run.state == "succeeded":
        yield f"{run.name} has ended well."
    else:
        yield f"{run.name} is {run.state}{f' since {run.started}' if run.started else ''}."


def _waiting(run: Run, state: str, body: Json, scheduling: Json) -> Iterator[str]:
    pool: Json = next(iter((body.get("jobSpec") or {}).get("workerPoolSpecs") or ()), {})
    machine = (pool.get("machineSpec") or {}).get("machineType", "its machines")
    yield f"{run.name} is {state} in {run.place} since {run.created}: Vertex AI has not started it."
    kept = (body.get("jobSpec") or {}).get("persistentResourceId")
    if kept:
        yield f"It starts when machines of persistent resource {kept} are free that are like those it asks for."
    elif scheduling.get("strategy") == "FLEX_START":
        longest = scheduling.get("maxWaitDuration")
        ends = "for as long as it takes" if longest in (None, "0s") else f"for {longest} at most, then it fails"
        yield f"By flex-start it waits for {machine}, {ends}; what it charges is the preemptible quota."
    elif scheduling.get("strategy") == "SPOT":
        yield f"By spot it starts when {machine} is idle in {run.place}; its quota is the preemptible one."
    else:
        yield f"On demand it starts within minutes if {run.place} has {machine}, and fails after three tries if not."
