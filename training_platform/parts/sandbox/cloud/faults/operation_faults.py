"""Faults of operations, decided at the start: the end of the operation, and the state that it leaves its resource in.

Both are written into the operation's ``meta``, so that they survive a restart of the server, unlike faults. Messages
of stock-outs: akka/akka-core no. 32992 (GKE), read 2026-11-21; that of Vertex AI is inferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from training_platform.catalog.locations import region_of
from training_platform.catalog.types import Json
from training_platform.parts.sandbox.cloud.faults.active import ActiveFaults
from training_platform.parts.sandbox.cloud.faults.scenario import (
    FailedOperation,
    OperationFault,
    SpotPreemption,
    Stockout,
)
from training_platform.parts.sandbox.cloud.state.long_running import JobShortage, StartingOperation, TrainingJob
from training_platform.parts.sandbox.cloud.state.store import Record

_CLUSTER: Final = "container.clusters"
_POOL: Final = "container.nodePools"
_INSTANCE: Final = "file.instances"
_PERSISTENT: Final = "aiplatform.persistentResources"


class OperationFaults:
    """The faults of a server that hit operations and training jobs."""

    def __init__(self, faults: ActiveFaults) -> None:
        self._faults = faults
        self.over = faults.over

    def strike(self, starting: StartingOperation, meta: Json, now: float) -> None:
        """Apply the first matching fault to an operation."""
        project = starting.work.project
        subject = str(starting)
        stockout = self._faults.first(
            Stockout, project, subject, lambda fault: any(vms.missing(fault) for vms in _requested(starting))
        )
        if stockout is not None:
            _run_out(*stockout, starting, meta, now)
            return
        failed = self._faults.first(FailedOperation, project, subject, lambda fault: _matches(fault, starting))
        if failed is not None:
            _, fault = failed
            meta["due"] = now + (meta["due"] - now) * fault.at
            meta["error"] = ["INTERNAL", fault.message]
            meta["changes"] = _changes_of_failure(starting, fault.message, meta["changes"])

    def shortage(self, job: TrainingJob) -> JobShortage | None:
        """Return why a job gets no VMs, if it gets none."""

        def matches(fault: Stockout) -> bool:
            return fault.machine_type in job.machine_types and region_of(fault.location) == job.region

        hit = self._faults.first(Stockout, job.project, str(job), matches)
        if hit is None:
            return None
        name, fault = hit
        return JobShortage(fault=name, message=_insufficient(job.region), after_seconds=fault.after_seconds)

    def failure(self, job: TrainingJob) -> tuple[float, str] | None:
        """Return the share of its time after which a running job fails, and the message; None if it succeeds."""

        def matches(fault: FailedOperation) -> bool:
            return fault.kind == job.kind and fault.action != "delete" and fnmatchcase(job.name, fault.name)

        hit = self._faults.first(FailedOperation, job.project, str(job), matches)
        if hit is None:
            return None
        _, fault = hit
        return fault.at, fault.message

    def preempts(self, job: TrainingJob) -> bool:
        """Whether a running job loses its spot VMs now."""

        def matches(fault: SpotPreemption) -> bool:
            return (
                fault.machine_type in (None, *job.machine_types)
                and (fault.location is None or region_of(fault.location) == job.region)
                and fnmatchcase(job.name, fault.name)
            )

        return self._faults.first(SpotPreemption, job.project, str(job), matches) is not None


def _matches(fault: OperationFault, starting: StartingOperation) -> bool:
    return (
        fault.kind == starting.kind
        and fault.action in (None, starting.work.action)
        and fnmatchcase(starting.work.target.rpartition("/")[2], fault.name)
    )


def _changes_of_failure(starting: StartingOperation, message: str, changes: list[Any]) -> list[Any]:
    """Return the changes at the end of an operation that fails."""
    kind = starting.kind
    target = starting.work.target
    action = starting.work.action
    if action == "update":
        if kind == _POOL:
            return [[target, {"status": "RUNNING_WITH_ERROR", "statusMessage": message}, False]]
        return changes  # the new fields stay, and the resource is ready again
    error = _error_state(kind, message)
    if error is not None:
        return [[target, error, False]]
    return [[target, {}, True]] if action == "create" else []


def _error_state(kind: str, message: str) -> Json | None:
    """Return the fields of a resource in error, None for a kind without such a state."""
    if kind == _PERSISTENT:
        return {"state": "ERROR", "error": {"code": 13, "message": message}}
    if kind in (_CLUSTER, _POOL, _INSTANCE):
        return {"state" if kind == _INSTANCE else "status": "ERROR", "statusMessage": message}
    return None


# Stock-outs


@dataclass(frozen=True, kw_only=True)
class _RequestedVms:
    """VMs of one machine type, spread evenly over ``places``."""

    machine_type: str
    nodes: int
    places: list[str]  # zones, or a region in which Vertex AI chooses the zone

    def missing(self, fault: Stockout) -> list[str]:
        """Return the places that have no VMs left."""
        if self.machine_type != fault.machine_type:
            return []
        return [place for place in self.places if fault.location in (place, region_of(place))]


def _run_out(name: str, fault: Stockout, starting: StartingOperation, meta: Json, now: float) -> None:
    """Let an operation fail for lack of VMs; a pool or cluster keeps waiting for them."""
    requested = list(_requested(starting))
    missing = [(vms, place) for vms in requested for place in vms.missing(fault)]
    message = _stockout_message(fault, starting, requested, missing)
    state = _error_state(starting.kind, message)
    everywhere = len(missing) == sum(len(vms.places) for vms in requested)
    if state and starting.kind == _POOL and (starting.work.action == "update" or not everywhere):
        state["status"] = "RUNNING_WITH_ERROR"
    if starting.kind in (_CLUSTER, _POOL):
        meta["recovers"] = {"after": name, "due": meta["due"], "changes": meta["changes"]}
    meta["due"] = now + fault.after_seconds
    meta["error"] = ["RESOURCE_EXHAUSTED", message]
    meta["changes"] = [[starting.work.target, state, False]]


def _stockout_message(
    fault: Stockout,
    starting: StartingOperation,
    requested: list[_RequestedVms],
    missing: list[tuple[_RequestedVms, str]],
) -> str:
    if starting.kind == _PERSISTENT:
        return _insufficient(missing[0][1])
    expected = sum(vms.nodes for vms in requested)
    absent = sum(vms.nodes // len(vms.places) for vms, _ in missing)
    errors = " ".join(
        f"[GCE_STOCKOUT]: Instance 'gke-{starting.work.target.rpartition('/')[2]}' creation failed: The zone "
        f"'projects/{starting.work.project}/zones/{place}' does not have enough resources available to fulfill the "
        "request. '(resource type:compute)'."
        for _, place in missing
    )
    return (
        f"Google Compute Engine: Not all instances running in IGM after {fault.after_seconds:g}s. Expected {expected}, "
        f"running {expected - absent}, transitioning {absent}. Current errors: {errors}"
    )


def _insufficient(region: str) -> str:
    """Return Vertex AI's message for a region without VMs."""
    return f"Resources are insufficient in region: {region}. Please try a different region or try again later."


def _requested(starting: StartingOperation) -> Iterator[_RequestedVms]:
    """Yield the VMs that an operation requests, without those of a reservation, which cannot be sold out."""
    if starting.record is None or not (starting.work.grows or starting.work.action == "create"):
        return
    if starting.kind == _PERSISTENT:
        region = starting.record.name.split("/")[4]
        for pool in starting.record.body["resourcePools"]:
            machine = pool.get("machineSpec", {})
            yield _RequestedVms(
                machine_type=machine.get("machineType", ""),
                nodes=int(pool.get("replicaCount", 1)),
                places=[region],
            )
    pools: dict[str, list[Record]] = {_POOL: [starting.record], _CLUSTER: [*starting.children]}
    for record in pools.get(starting.kind, ()):
        config = record.body["config"]
        affinity = config.get("reservationAffinity", {}).get("consumeReservationType")
        if record.meta.get("nodes") and affinity != "SPECIFIC_RESERVATION":
            yield _RequestedVms(
                machine_type=config["machineType"],
                nodes=record.meta["nodes"],
                places=list(record.body["locations"]),
            )
