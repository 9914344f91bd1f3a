"""Faults of operations: what an operation becomes that is hit when it starts, and what its resource is left as.

All of it is written into the operation's ``meta`` as data, so that it survives a restart of the server, though the
faults do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from training_platform.catalog.locations import region_of
from training_platform.sandbox.cloud.faults.active import Faults
from training_platform.sandbox.cloud.faults.spec import (
    FailedOperation,
    OperationFault,
    Preemption,
    SlowOperation,
    Stockout,
    StuckPool,
)
from training_platform.sandbox.cloud.faults.stockouts import insufficient, is_short, shortage
from training_platform.sandbox.cloud.state.work import JobAsk, JobShortage, Started

Json = dict[str, Any]
_CLUSTER: Final = "container.clusters"
_POOL: Final = "container.nodePools"
# The fields that say a resource is in error, by kind. Every other kind has no such state: what was begun is gone.
_IN_ERROR: Final[Mapping[str, Callable[[str], Json]]] = {
    _CLUSTER: lambda message: {"status": "ERROR", "statusMessage": message},
    _POOL: lambda message: {"status": "ERROR", "statusMessage": message},
    "file.instances": lambda message: {"state": "ERROR", "statusMessage": message},
    "aiplatform.persistentResources": lambda message: {"state": "ERROR", "error": {"code": 13, "message": message}},
}


class OperationFaults:
    """The faults of a server, as its operations meet them."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.over = faults.over

    def strike(self, started: Started, meta: Json, now: float) -> None:
        """Apply the faults that fit to an operation; of those that end it, only the first."""
        project, what = started.work.project, str(started)
        slow = self._faults.first(SlowOperation, project, what, lambda each: _fits(each, started))
        if slow is not None:
            meta["due"] = now + (meta["due"] - now) * (slow[1].factor or 1) + (slow[1].seconds or 0)
        stuck = self._faults.first(StuckPool, project, what, lambda each: _is_stuck(each, started))
        if stuck is not None:
            meta["held_by"] = stuck[0]
        short = self._faults.first(Stockout, project, what, lambda each: is_short(each, started))
        if short is not None:
            _run_out(short[0], short[1], started, meta, now)
            return
        failed = self._faults.first(FailedOperation, project, what, lambda each: _fits(each, started))
        if failed is not None:
            meta["due"] = now + (meta["due"] - now) * failed[1].at
            meta["error"] = [failed[1].code, failed[1].message]
            meta["changes"] = _left(started, failed[1].message, meta["changes"])

    def shortage(self, job: JobAsk) -> JobShortage | None:
        """Return why a job gets no VMs, if it gets none."""
        found = self._faults.first(Stockout, job.project, str(job), lambda each: _asks_for(each, job))
        if found is None:
            return None
        return JobShortage(fault=found[0], message=insufficient(job.region), after_seconds=found[1].after_seconds)

    def failure(self, job: JobAsk) -> tuple[float, str] | None:
        """Return after which share of its time a job that runs will fail, and with which words, if it will."""
        found = self._faults.first(
            FailedOperation,
            job.project,
            str(job),
            lambda each: each.kind == job.kind and each.action != "delete" and fnmatchcase(job.name, each.name),
        )
        return None if found is None else (found[1].at, found[1].message)

    def preempts(self, job: JobAsk) -> bool:
        """Whether a job that runs on spot VMs loses them now."""
        return self._faults.first(Preemption, job.project, str(job), lambda each: _preempts(each, job)) is not None


def _asks_for(fault: Stockout, job: JobAsk) -> bool:
    return fault.machine_type in job.machine_types and region_of(fault.location) == job.region


def _preempts(fault: Preemption, job: JobAsk) -> bool:
    return (
        fault.machine_type in (None, *job.machine_types)
        and (fault.location is None or region_of(fault.location) == job.region)
        and fnmatchcase(job.name, fault.name)
    )


def _fits(fault: OperationFault, started: Started) -> bool:
    return (
        fault.kind == started.kind
        and fault.action in (None, started.work.action)
        and fnmatchcase(started.work.target.rpartition("/")[2], fault.name)
    )


def _is_stuck(fault: StuckPool, started: Started) -> bool:
    parts = started.work.target.split("/")
    return (
        (started.kind, started.work.action) == (_POOL, "create")
        and fnmatchcase(parts[-1], fault.name)
        and fnmatchcase(parts[-3], fault.cluster)
    )


def _run_out(name: str, fault: Stockout, started: Started, meta: Json, now: float) -> None:
    """Let an operation end without its VMs; a pool or cluster goes on waiting for them."""
    found = shortage(fault, started)
    left = _IN_ERROR[started.kind](found.message)
    if started.kind == _POOL and (started.work.action == "update" or not found.everywhere):
        left["status"] = "RUNNING_WITH_ERROR"
    if started.kind in (_CLUSTER, _POOL):
        meta["recovers"] = {"after": name, "due": meta["due"], "changes": meta["changes"]}
    meta["due"] = now + fault.after_seconds
    meta["error"] = ["RESOURCE_EXHAUSTED", found.message]
    meta["changes"] = [[started.work.target, left, False]]


def _left(started: Started, message: str, changes: list[Any]) -> list[Any]:
    """Return what happens to the resource of an operation that fails."""
    target, action = started.work.target, started.work.action
    if started.kind == _POOL and action == "update":
        return [[target, {"status": "RUNNING_WITH_ERROR", "statusMessage": message}, False]]
    if action == "update":
        return changes  # what was written stays, and the resource is as ready as before
    if started.kind in _IN_ERROR:
        return [[target, _IN_ERROR[started.kind](message), False]]
    return [[target, {}, True]] if action == "create" else []
