"""The faults that a server can inject: ``stockout=MACHINE_TYPE``, ``failure=KIND``, ``lost-response=KIND``.

A stock-out lasts until it is cleared. The other two faults affect the next create request of their kind; a failure can
also affect the next training job. Faults are not saved in the server's state file, so a restart clears them. Their
effects remain, since they are stored with each operation (in its ``meta``).

Source of GKE's stock-out messages: akka/akka-core no. 32992, read 2026-11-21. Vertex AI's message is inferred.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from local_google_cloud.services.service_table import SERVICES
from local_google_cloud.state.clock import Clock, stamp
from local_google_cloud.state.interference import JobShortage, StartingOperation, TrainingJob
from local_google_cloud.state.operation import OperationMeta
from local_google_cloud.state.store import Record
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import Json

FaultName = Literal["stockout", "failure", "lost-response"]

_FAILURE_MESSAGE: Final = "Internal error."
_FAILURE_SHARE: Final = 0.5  # of its duration, after which an operation or job fails
_KEPT_EVENTS: Final = 100  # of each fault; ``fired`` counts all of them
_CLUSTER: Final = "container.clusters"
_POOL: Final = "container.nodePools"
_INSTANCE: Final = "file.instances"
_PERSISTENT: Final = "aiplatform.persistentResources"
_KINDS: Final = frozenset(
    f"{service.name}.{kind.collection}" for service in SERVICES.values() for kind in service.kinds if kind.style
)
_TARGETS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "stockout": ("machine type", frozenset(MACHINE_TYPES)),
    "failure": ("kind of resource", _KINDS),
    "lost-response": ("kind of resource", _KINDS),
}


class FaultError(Exception):
    """Raised if the text of a fault is invalid."""


def check_fault(text: str) -> None:
    """Raise FaultError if ``text`` is not a known fault, or names an unknown machine type or kind of resource."""
    name, _, target = text.partition("=")
    if name not in _TARGETS:
        nearest = find_nearest(name, _TARGETS)
        allowed = "stockout=MACHINE_TYPE, failure=KIND, lost-response=KIND"
        raise FaultError(f"{text!r} is not a fault. Allowed: {allowed}.{_hint(nearest)}")
    noun, targets = _TARGETS[name]
    if target not in targets:
        raise FaultError(f"{text!r}: {target!r} is not a {noun}.{_hint(find_nearest(target, targets))}")


def _hint(nearest: str | None) -> str:
    return f" Nearest: {nearest}" if nearest else ""


@dataclass(kw_only=True)
class ActiveFault:
    """An active fault: how many times it took effect, and its latest events."""

    fired: int = 0
    events: deque[Json] = field(default_factory=lambda: deque(maxlen=_KEPT_EVENTS))


class ActiveFaults:
    """The active faults, keyed by their text. It records which operations and training jobs they affect."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._active: dict[str, ActiveFault] = {}

    def add(self, text: str) -> None:
        """Add a fault, or restart it if it is active. Raises FaultError."""
        check_fault(text)
        self._active[text] = ActiveFault()

    def clear(self, text: str) -> None:
        """Remove a fault, if it exists."""
        self._active.pop(text, None)

    def over(self, text: str) -> bool:
        """Return True if a fault is not active (any more)."""
        return text not in self._active

    def shown(self) -> list[Json]:
        """Return every fault in the format of the control API."""
        return [
            {"fault": text, "fired": active.fired, "events": list(active.events)}
            for text, active in self._active.items()
        ]

    def hits(self, name: FaultName, target: str, subject: str) -> bool:
        """Return True if a fault affects an operation, job or request now, and record that it does so."""
        active = self._active.get(f"{name}={target}")
        if active is None or (active.fired and name != "stockout"):
            return False
        active.fired += 1
        active.events.append({"time": stamp(self._clock.now()), "what": subject})
        return True

    def strike(self, starting: StartingOperation, meta: OperationMeta, now: float) -> None:
        """Make an operation fail if a stock-out or failure affects it."""
        subject = str(starting)
        requested = list(_requested(starting))
        for machine_type in dict.fromkeys(vms.machine_type for vms in requested):
            if self.hits("stockout", machine_type, subject):
                _run_out(machine_type, starting, requested, meta, now)
                return
        if starting.work.action == "create" and self.hits("failure", starting.kind, subject):
            meta["due"] = now + (meta["due"] - now) * _FAILURE_SHARE
            meta["error"] = ["INTERNAL", _FAILURE_MESSAGE]
            error = _error_state(starting.kind, _FAILURE_MESSAGE)
            meta["changes"] = [[starting.work.target, error or {}, error is None]]

    def shortage(self, job: TrainingJob) -> JobShortage | None:
        """Return the reason why a job does not get its VMs, or None if it gets them."""
        for machine_type in dict.fromkeys(job.machine_types):
            if self.hits("stockout", machine_type, str(job)):
                return JobShortage(fault=f"stockout={machine_type}", message=_insufficient(job.region))
        return None

    def failure(self, job: TrainingJob) -> tuple[float, str] | None:
        """Return the fraction of its run time after which a job fails, with the message; None if it does not fail."""
        return (_FAILURE_SHARE, _FAILURE_MESSAGE) if self.hits("failure", job.kind, str(job)) else None


def _error_state(kind: str, message: str) -> Json | None:
    """Return the fields that mark a resource as failed, or None for a kind without an error state."""
    if kind == _PERSISTENT:
        return {"state": "ERROR", "error": {"code": 13, "message": message}}
    if kind in (_CLUSTER, _POOL, _INSTANCE):
        return {"state" if kind == _INSTANCE else "status": "ERROR", "statusMessage": message}
    return None


# Stock-outs


@dataclass(frozen=True, kw_only=True)
class _RequestedVms:
    """The requested VMs of one machine type, spread evenly over ``places``."""

    machine_type: str
    nodes: int
    places: list[str]  # zones, or a region in which Vertex AI chooses the zone


def _run_out(
    machine_type: str, starting: StartingOperation, requested: list[_RequestedVms], meta: OperationMeta, now: float
) -> None:
    """Make an operation fail for lack of VMs. A node pool or cluster gets them once the stock-out is cleared."""
    message = _stockout_message(machine_type, starting, requested, meta["due"] - now)
    state = _error_state(starting.kind, message)
    if state and starting.kind == _POOL and starting.work.action == "update":
        state["status"] = "RUNNING_WITH_ERROR"
    if starting.kind in (_CLUSTER, _POOL):
        meta["recovers"] = {"after": f"stockout={machine_type}", "changes": meta["changes"]}
    meta["error"] = ["RESOURCE_EXHAUSTED", message]
    meta["changes"] = [[starting.work.target, state, False]]


def _stockout_message(
    machine_type: str, starting: StartingOperation, requested: list[_RequestedVms], seconds: float
) -> str:
    missing = [vms for vms in requested if vms.machine_type == machine_type]
    places = [place for vms in missing for place in vms.places]
    if starting.kind == _PERSISTENT:
        return _insufficient(places[0])
    expected = sum(vms.nodes for vms in requested)
    absent = sum(vms.nodes for vms in missing)
    errors = " ".join(
        f"[GCE_STOCKOUT]: Instance 'gke-{starting.work.target.rpartition('/')[2]}' creation failed: The zone "
        f"'projects/{starting.work.project}/zones/{place}' does not have enough resources available to fulfill the "
        "request. '(resource type:compute)'."
        for place in places
    )
    return (
        f"Google Compute Engine: Not all instances running in IGM after {seconds:g}s. Expected {expected}, "
        f"running {expected - absent}, transitioning {absent}. Current errors: {errors}"
    )


def _insufficient(region: str) -> str:
    """Return Vertex AI's message for a region without VMs."""
    return f"Resources are insufficient in region: {region}. Please try a different region or try again later."


def _requested(starting: StartingOperation) -> Iterator[_RequestedVms]:
    """Yield the VMs that an operation requests, except those from a reservation, which cannot be sold out."""
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
