"""The states of a training job over time: pending, perhaps queued, running, and an end.

A job that exceeds a quota by what others hold is QUEUED until they hold less.
A job is PENDING and RUNNING for as many seconds as the settings ``aiplatform.jobs.pending`` and ``.running`` say, on a
persistent resource ``.pendingKept``. Where
a stock-out hits it, a FLEX_START job is QUEUED until there are VMs, at most for its longest wait; any other one fails.
A spot job that is preempted begins again where it may restart its workers, else it fails. While a job holds VMs it
holds quota. What Vertex AI says of these failures is inferred.
"""

from __future__ import annotations

from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.model import Json
from training_platform.sandbox.cloud.state.clock import stamp
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.quota import charges_of
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import JobAsk

JOB_KINDS: Final = ("customJobs", "hyperparameterTuningJobs", "trainingPipelines")
_WAITS: Final = "aiplatform.jobs.pending"
_WAITS_KEPT: Final = "aiplatform.jobs.pendingKept"
_RUNS: Final = "aiplatform.jobs.running"
_EXHAUSTED: Final = 8
_UNAVAILABLE: Final = 14
_STEPS: Final = 1_000  # more than a job has between two requests, were it preempted every second


def queued(cloud: Cloud, record: Record) -> None:
    """Let a new job wait for its VMs, which a fault may withhold."""
    now = cloud.clock.now()
    job = record.meta["job"]
    if "asks" in job:
        _enter(record, "QUEUED", now)
        return
    short = cloud.interference.shortage(_ask(record))
    if short is None:
        _enter(record, "PENDING", now)
    elif job["strategy"] == "FLEX_START":
        _enter(record, "QUEUED", now)
        job |= {"held_by": short.fault, "message": short.message}
    else:
        _enter(record, "PENDING", now)
        job |= {"fails_at": now + short.after_seconds, "message": short.message}


def cancelled(cloud: Cloud, record: Record) -> None:
    """Cancel a job; one that has ended stays as it is."""
    if "job" in record.meta:
        _end(record, "CANCELLED", cloud.clock.now())
        cloud.store.put(record)


def settle_jobs(cloud: Cloud) -> None:
    """Bring every job to the state that it has reached by now."""
    for name in [each.name for each in cloud.store.all() if "job" in each.meta]:
        record = cloud.existing(name)
        steps = 0
        while steps < _STEPS and _step(cloud, record):
            steps += 1
        if steps:
            cloud.store.put(record)


def _step(cloud: Cloud, record: Record) -> bool:
    """Move a job to its next state if it is time, and return whether it moved."""
    job, now = record.meta.get("job"), cloud.clock.now()
    if job is None:
        return False
    return {"QUEUED": _queued, "PENDING": _pending, "RUNNING": _running}[job["phase"]](cloud, record, job, now)


def _queued(cloud: Cloud, record: Record, job: Json, now: float) -> bool:
    if "asks" in job:
        return _has_quota(cloud, record, job)
    ends = job["since"] + job["wait"] if job["wait"] else None
    if cloud.interference.over(job["held_by"], now if ends is None else min(now, ends)):
        _enter(record, "PENDING", now)
        return True
    if ends is not None and now >= ends:
        _end(record, "FAILED", ends, _EXHAUSTED, f"{job['message']} The longest wait is over.")
        return True
    return False


def _has_quota(cloud: Cloud, record: Record, job: Json) -> bool:
    """Let a job that waits for quota go on once others hold less."""
    try:
        cloud.quota.hold("aiplatform", record, charges_of(job["asks"]))
    except ApiError:
        return False
    del job["asks"]
    queued(cloud, record)
    return True


def _pending(cloud: Cloud, record: Record, job: Json, now: float) -> bool:
    if "fails_at" in job:
        if now >= job["fails_at"]:
            _end(record, "FAILED", job["fails_at"], _EXHAUSTED, job["message"])
            return True
        return False
    begins = job["since"] + cloud.settings.seconds(_WAITS_KEPT if job["resource"] else _WAITS)
    if now < begins:
        return False
    _enter(record, "RUNNING", begins)
    record.body.setdefault("startTime", stamp(begins))
    failure = cloud.interference.failure(_ask(record))
    if failure is not None:
        share, job["message"] = failure
        job["fails_at"] = begins + share * cloud.settings.seconds(_RUNS)
    return True


def _running(cloud: Cloud, record: Record, job: Json, now: float) -> bool:
    ends = job.get("fails_at", job["since"] + cloud.settings.seconds(_RUNS))
    if now >= ends:
        if "fails_at" in job:
            _end(record, "FAILED", ends, 13, job["message"])
        else:
            _end(record, "SUCCEEDED", ends)
        return True
    if job["strategy"] != "SPOT" or not cloud.interference.preempts(_ask(record)):
        return False
    if job["restarts"]:
        _enter(record, "PENDING", now)
    else:
        _end(record, "FAILED", now, _UNAVAILABLE, "The job's spot VMs were preempted.")
    return True


def _enter(record: Record, phase: str, at: float) -> None:
    record.meta["job"] |= {"phase": phase, "since": at}
    record.body |= {"state": f"JOB_STATE_{phase}", "updateTime": stamp(at)}


def _end(record: Record, phase: str, at: float, code: int = 0, message: str = "") -> None:
    record.body |= {"state": f"JOB_STATE_{phase}", "updateTime": stamp(at), "endTime": stamp(at)}
    if code:
        record.body["error"] = {"code": code, "message": message}
    del record.meta["job"]
    record.meta.pop("charges", None)


def _ask(record: Record) -> JobAsk:
    job = record.meta["job"]
    return JobAsk(
        kind=f"aiplatform.{job['kind']}",
        project=record.project,
        name=record.body.get("displayName", ""),
        region=record.name.split("/")[4],
        machine_types=() if job["resource"] else tuple(pool["machine"] for pool in job["pools"]),
    )
