"""Runs on Vertex AI, read from the bodies of its training jobs, and why one waits or failed. Pure.

Source: Vertex AI v1, CustomJob and JobState of the discovery document that google-api-python-client ships, read
2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.jobs.runs.naming import job_of
from training_platform.jobs.runs.state import Run, State
from training_platform.jobs.vertex.body import job_spec

Json = Mapping[str, Any]
TEAM_LABEL = "team"
ENVIRONMENT_LABEL = "environment"
_STATES: Mapping[str, State] = {
    "QUEUED": "waiting",
    "PENDING": "waiting",
    "PAUSED": "waiting",
    "RUNNING": "running",
    "UPDATING": "running",
    "SUCCEEDED": "succeeded",
    "PARTIALLY_SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "EXPIRED": "failed",
    "CANCELLING": "cancelling",
    "CANCELLED": "cancelled",
}
_EXHAUSTED, _UNAVAILABLE = 8, 14  # google.rpc.Code


def vertex_run(body: Json) -> Run:
    """Return the run that a custom job, a tuning job or a training pipeline is."""
    _, _, _, region, _, _ = str(body["name"]).split("/")
    state = _STATES.get(_phase(body), "unknown")
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
    scheduling = job_spec(dict(body)).get("scheduling") or {}
    if run.reason:
        yield f'Vertex AI says: "{" ".join(run.reason.split()).rstrip(".")}".'
    if run.state == "waiting":
        yield from _waiting(run, body, scheduling)
    elif run.state == "failed":
        yield from _failed(run, body, scheduling)
    elif run.state == "succeeded":
        yield f"{run.name} has ended well."
    elif run.state == "cancelled":
        yield f"{run.name} was cancelled{f' at {run.ended}' if run.ended else ''}; what it wrote until then stays."
    else:
        yield f"{run.name} is {run.state}{f' since {run.started}' if run.started else ''}."


def _waiting(run: Run, body: Json, scheduling: Json) -> Iterator[str]:
    machine, kept = _machine(body), job_spec(dict(body)).get("persistentResourceId")
    if run.started:
        yield f"{run.name} ran since {run.started}, lost its VMs, and waits for others: it starts from its beginning."
    else:
        yield f"{run.name} is {_phase(body)} in {run.place} since {run.created}: Vertex AI has not started it."
    if _phase(body) == "QUEUED":
        yield (
            "Vertex AI queues a job while the project has too little quota of custom training left, and by flex-start "
            "while there are no VMs."
        )
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


def _failed(run: Run, body: Json, scheduling: Json) -> Iterator[str]:
    """Say what ended a job, and what would go on instead."""
    machine, code = _machine(body), (body.get("error") or {}).get("code")
    strategy = scheduling.get("strategy")
    if _phase(body) == "EXPIRED":
        yield f"{run.name} has ended since it ran for longer than {scheduling.get('timeout', 'its time-out')}."
    elif code == _EXHAUSTED and strategy == "FLEX_START":
        yield (
            f"{run.name} waited {scheduling.get('maxWaitDuration', 'its longest wait')} for {machine}, and {run.place} "
            f"did not have it. A longer max_wait_hours waits on{_elsewhere(machine, run.place)}."
        )
    elif code == _EXHAUSTED:
        yield (f"{run.place} has no {machine} left. capacity: flex-start waits for it{_elsewhere(machine, run.place)}.")
    elif code == _UNAVAILABLE and strategy == "SPOT":
        yield (
            f"{run.name} lost its spot VMs and may not start again: with retries above 0 it starts again by itself; "
            "flex-start and on-demand VMs are not taken away."
        )
    else:
        yield f"{run.name} has failed. The lines before its end: training-platform job logs {run.name}."


def _elsewhere(machine: str, region: str) -> str:
    """Return the other regions in which Vertex AI trains on a machine, as the end of a sentence."""
    accelerator = MACHINE_TYPES[machine].accelerator if machine in MACHINE_TYPES else None
    support = accelerator.vertex if accelerator else None
    others = [each for each in (support.regions if support else ()) if each != region]
    return f"; the machine is in {', '.join(others)} too" if others else ""


def _machine(body: Json) -> str:
    pools = job_spec(dict(body)).get("workerPoolSpecs") or [{}]
    return str((pools[0].get("machineSpec") or {}).get("machineType", "its machines"))


def _phase(body: Json) -> str:
    """Return a state without what it begins with, which differs between jobs and pipelines."""
    return str(body.get("state") or "unknown").partition("_STATE_")[2] or "unknown"
