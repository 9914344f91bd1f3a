"""Long-running operations, and the clock by which they end.

An operation is a resource too, so it survives a restart: its ``meta`` has the time at which it is due, and the changes
that it then makes. Each request first ends the operations that are due. A fault may make an operation fail; once a
stock-out is over, its failures are undone.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, Protocol
from uuid import UUID

from local_google_cloud.state.store import Record, Store
from training_platform.catalog.types import Json

COMPUTE_LINK: Final = "https://www.googleapis.com/compute/v1/"
CONTAINER_LINK: Final = "https://container.googleapis.com/v1/"
# Finished operations that are kept for each project, and the seconds for which each is kept at least. Google keeps
# them for days; clients poll an operation until they see its end, the gcp provider at most every 10 s.
KEPT_OPERATIONS: Final = 500
KEPT_SECONDS: Final = 60.0
MOST_OPERATIONS: Final = 5_000  # however young they are
_MOST_SECONDS: Final = 10 * 365 * 86_400.0

Style = Literal["compute", "container", "longrunning"]

# An operation to start


@dataclass(frozen=True, kw_only=True)
class StateChange:
    """A change at the end of an operation: ``fields`` are merged into ``target``, or ``target`` is deleted."""

    target: str
    fields: Json = field(default_factory=dict)
    delete: bool = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """An operation to start: its target, type (``insert``, ``CREATE_CLUSTER``) and duration.

    ``response``, with its ``schema``, is the result of a google.longrunning operation; None means the target's body at
    the end. ``metadata`` describes it until then. ``where`` is the path below which the operation is named; None means
    the target's location. ``grows`` marks an update that requests VMs; a create is always assumed to.
    """

    style: Style
    service: str
    project: str
    target: str
    type: str
    seconds: float
    changes: Sequence[StateChange] = ()
    response: Json | None = None
    schema: str = ""
    metadata: Json = field(default_factory=dict)
    where: str | None = None
    grows: bool = False

    @property
    def action(self) -> str:
        """Its effect on its target: create, update or delete."""
        verb = self.type.lower().partition("_")[0]
        return {"insert": "create", "create": "create", "delete": "delete"}.get(verb, "update")


# Faults of operations


@dataclass(frozen=True, kw_only=True)
class StartingOperation:
    """An operation that is about to start; ``children`` are the node pools of a cluster."""

    kind: str  # service and collection, container.nodePools
    work: Work
    record: Record | None  # its target
    children: Sequence[Record]

    def __str__(self) -> str:
        """Return it as the events of a fault show it."""
        return f"{self.work.action} {self.work.target}"


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A training job that requests or has VMs; ``machine_types`` is empty on a persistent resource."""

    kind: str  # service and collection, aiplatform.customJobs
    name: str  # the display name
    region: str
    machine_types: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as the events of a fault show it."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class JobShortage:
    """Why a job gets no VMs: the fault, and Google's message."""

    fault: str
    message: str


class Interference(Protocol):
    """The faults that can hit operations and jobs."""

    def strike(self, starting: StartingOperation, meta: Json, now: float) -> None:
        """Change the time and result of an operation: ``due``, ``changes``, ``error`` and the like."""

    def shortage(self, job: TrainingJob) -> JobShortage | None:
        """Return why a job gets no VMs, if it gets none."""

    def failure(self, job: TrainingJob) -> tuple[float, str] | None:
        """Return the share of its time after which a running job fails, and the message; None if it succeeds."""

    def over(self, text: str) -> bool:
        """Whether a fault was cleared."""


# Time


class Clock:
    """The machine's time in seconds since 1970, plus what ``advance`` added."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self.ahead = 0.0

    def now(self) -> float:
        """Return the time in seconds."""
        return self._source() + self.ahead

    def advance(self, seconds: float) -> None:
        """Advance the time. Raises ValueError for a move back, which would restart finished operations."""
        if not 0 <= seconds <= _MOST_SECONDS - self.ahead:
            raise ValueError("the clock moves forward only, by at most ten years in all")
        self.ahead += seconds


def stamp(seconds: float) -> str:
    """Return a time in the format of Google's APIs."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Operations in progress


class Operations:
    """Starts operations, and ends them when they are due."""

    def __init__(self, store: Store, clock: Clock, faults: Interference) -> None:
        self._store = store
        self._clock = clock
        self._faults = faults
        self.reload()

    def reload(self) -> None:
        """Read the operations from the store, as after a restart."""
        records = [record for record in self._store.all() if "/operations/" in record.name]
        self._pending = {record.name for record in records if "due" in record.meta}
        self._recovering = {record.name for record in records if "recovers" in record.meta} - self._pending
        self._done: dict[str, deque[str]] = defaultdict(deque)  # by project, the oldest at the left
        for record in records:
            if record.name not in self._pending | self._recovering:
                self._done[record.project].append(record.name)

    def pending(self, target: str) -> Record | None:
        """Return the operation in progress on a resource, if any."""
        return next((record for record in self._in_progress() if record.meta["target"] == target), None)

    def start(self, work: Work) -> Json:
        """Start an operation and return its body; one of 0 seconds ends at once."""
        serial = self._store.serial()
        now = self._clock.now()
        path = _path_of(work, serial, now)
        meta: Json = {
            "due": now + work.seconds,
            "serial": serial,
            "style": work.style,
            "target": work.target,
            "changes": [[change.target, change.fields, change.delete] for change in work.changes],
            "response": work.response,
            "schema": work.schema,
        }
        service, _, resource_path = work.target.partition("/")
        starting = StartingOperation(
            kind=f"{service}.{resource_path.split('/')[-2]}",
            work=work,
            record=self._store.get(work.target),
            children=self._store.children(f"{work.target}/nodePools"),
        )
        self._faults.strike(starting, meta, now)
        body = _body_at_start(work, path, serial, stamp(now))
        record = Record(name=f"{work.service}/{path}", project=work.project, body=body, meta=meta)
        self._store.put(record)
        self._pending.add(record.name)
        self.settle()
        return (self._store.get(record.name) or record).body

    def settle(self) -> None:
        """End the operations that are due, in order, and undo the failures of stock-outs that are over."""
        now = self._clock.now()
        self._pending = {name for name in self._pending if name in self._store}
        due = [record for record in self._in_progress() if record.meta["due"] <= now]
        for record in sorted(due, key=lambda record: (record.meta["due"], record.meta["serial"])):
            self._end(record)
        for name in [*self._recovering]:
            self._recover(name)

    def _in_progress(self) -> list[Record]:
        records = [self._store.get(name) for name in self._pending]
        return [record for record in records if record is not None]

    def _end(self, record: Record) -> None:
        self._pending.discard(record.name)
        meta = record.meta
        for target, fields, delete in meta["changes"]:
            self._change(target, fields, delete=delete)
        target = self._store.get(meta["target"])
        _write_end(record.body, meta, target.body if target else {})
        meta["ended"] = meta["due"]
        for key in ("due", "changes", "response"):
            meta.pop(key, None)
        self._store.put(record)
        if "recovers" in meta and target is not None:
            target.meta["recovers_by"] = record.name
            self._store.put(target)
            self._recovering.add(record.name)
        else:
            self._forget_old(record)

    def _recover(self, name: str) -> None:
        """Change a resource as if its operation had not failed, if the fault is over."""
        record = self._store.get(name)
        if record is not None and not self._faults.over(record.meta["recovers"]["after"]):
            return
        self._recovering.discard(name)
        if record is None:
            return
        for target, fields, _ in record.meta.pop("recovers")["changes"]:
            resource = self._store.get(target)
            if resource is not None and resource.meta.get("recovers_by") == name:
                self._change(target, fields, delete=False)
        self._store.put(record)
        self._forget_old(record)

    def _change(self, target: str, fields: Json, *, delete: bool) -> None:
        record = self._store.get(target)
        if delete:
            self._store.delete(target)
        elif record is not None:
            record.body.pop("statusMessage", None)  # of an earlier failure
            record.meta.pop("recovers_by", None)
            record.body.update(fields)
            self._store.put(record)

    def _forget_old(self, record: Record) -> None:
        """Add a finished operation to those kept of its project, and delete the oldest if there are too many."""
        done = self._done[record.project]
        done.append(record.name)
        while len(done) > KEPT_OPERATIONS:
            oldest = self._store.get(done[0])
            young = oldest is not None and oldest.meta["ended"] > self._clock.now() - KEPT_SECONDS
            if young and len(done) <= MOST_OPERATIONS:
                return
            self._store.delete(done.popleft())


# Bodies in each API's own shape


def _path_of(work: Work, serial: int, now: float) -> str:
    """Return an operation's path, by default in its target's location."""
    unique = UUID(int=(serial * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)
    name = str(unique) if work.style == "longrunning" else f"operation-{int(now * 1000)}-{unique}"
    if work.where is not None:
        return f"{work.where}operations/{name}"
    parts = work.target.split("/")[1:]
    location = parts[: 3 if parts[2] == "global" else 4]
    return "/".join([*location, "operations", name])


def _body_at_start(work: Work, path: str, serial: int, now: str) -> Json:
    parts = path.split("/")
    target = work.target.partition("/")[2]
    if work.style == "longrunning":
        body: Json = {"name": path, "done": False}
        if work.metadata:
            body["metadata"] = work.metadata
        return body
    if work.style == "container":
        return {
            "name": parts[-1],
            "zone": parts[3],
            "location": parts[3],
            "operationType": work.type,
            "status": "RUNNING",
            "startTime": now,
            "selfLink": CONTAINER_LINK + path,
            "targetLink": CONTAINER_LINK + target,
        }
    body = {
        "kind": "compute#operation",
        "id": str(10**18 + serial),
        "name": parts[-1],
        "operationType": work.type,
        "targetLink": COMPUTE_LINK + target,
        "status": "RUNNING",
        "progress": 0,
        "insertTime": now,
        "startTime": now,
        "selfLink": COMPUTE_LINK + path,
    }
    if parts[2] in ("zones", "regions"):
        body[parts[2].removesuffix("s")] = COMPUTE_LINK + "/".join(parts[:4])
    return body


def _write_end(body: Json, meta: Json, target: Json) -> None:
    """Write the end of an operation into its body; ``target`` is its target's body at the end."""
    style = meta["style"]
    ended = stamp(meta["due"])
    if style == "longrunning":
        body["done"] = True
        metadata = body.get("metadata", {})
        if "createTime" in metadata:
            metadata["endTime"] = ended
        if "genericMetadata" in metadata:
            metadata["genericMetadata"]["updateTime"] = ended
        if "error" not in meta:
            response = target if meta["response"] is None else meta["response"]
            schema = meta["schema"] or "google.protobuf.Empty"
            body["response"] = {"@type": f"type.googleapis.com/{schema}", **response}
    else:
        body |= {"status": "DONE", "endTime": ended}
        if style == "compute":
            body["progress"] = 100
    if "error" in meta:
        code, message = meta["error"]
        if style == "compute":
            body["error"] = {"errors": [{"code": code, "message": message}]}
            body["httpErrorStatusCode"] = 400
            body["httpErrorMessage"] = "BAD REQUEST"
            return
        if style == "container":
            body["statusMessage"] = message
        body["error"] = {"code": _CODES.get(code, 13), "message": message}


_CODES: Final = {  # of google.rpc
    "INVALID_ARGUMENT": 3,
    "NOT_FOUND": 5,
    "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
}
