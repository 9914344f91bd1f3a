"""Operations: a change while it is under way; and the clock by which it ends.

An operation is a resource too, and so survives a restart: its ``meta`` holds when it is due and the changes that then
happen, as data. Every request first ends the operations that are due. A fault may let an operation fail; that is undone
once the fault is over, be it before the operation's end or after.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, Protocol
from uuid import UUID

from training_platform.catalog.types import Json
from training_platform.parts.sandbox.cloud.state.store import Record, Store

COMPUTE_LINK: Final = "https://www.googleapis.com/compute/v1/"
CONTAINER_LINK: Final = "https://container.googleapis.com/v1/"
# How many operations of a project that are done are kept, and for how long each is kept at least, in seconds. Google
# keeps its own for days; a client asks for one until it has seen it done, and the gcp provider every 10 s at most.
KEPT_OPERATIONS: Final = 500
KEPT_SECONDS: Final = 60.0
MOST_OPERATIONS: Final = 5_000  # beyond which none is kept for its age
_MOST_SECONDS: Final = 10 * 365 * 86_400.0

Style = Literal["compute", "container", "longrunning"]

# An operation to start


@dataclass(frozen=True, kw_only=True)
class StateChange:
    """A change at the end of an operation: ``fields`` are merged into ``target``, or it is deleted."""

    target: str
    fields: Json = field(default_factory=dict)
    delete: bool = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """An operation to start: on which resource, of which type (``insert``, ``CREATE_CLUSTER``), for how long.

    ``response`` and its ``schema`` are the answer of a google.longrunning operation in the end; None is the target's
    body as it then is. ``metadata`` describes it meanwhile. ``where`` is the path below which the operation is named;
    empty: the target's location. ``grows`` says of a change that it asks for VMs; a create always may.
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
    """An operation that is about to start; ``children`` are the node pools of its target, where that is a cluster."""

    kind: str  # service and collection, container.nodePools
    work: Work
    record: Record | None  # its target
    children: Sequence[Record]

    def __str__(self) -> str:
        """Return it as the record of a fault has it."""
        return f"{self.work.action} {self.work.target}"


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A training job that asks for VMs, or has them; none of its own where ``machine_types`` is empty."""

    kind: str  # service and collection, aiplatform.customJobs
    project: str
    name: str  # the one that people see
    region: str
    machine_types: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as the record of a fault has it."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class JobShortage:
    """Why a job gets no VMs: the fault, Google's words, and after how long a job that does not wait is told so."""

    fault: str
    message: str
    after_seconds: float


class Interference(Protocol):
    """The faults that operations and jobs meet."""

    def strike(self, starting: StartingOperation, meta: Json, now: float) -> None:
        """Change when an operation ends, and how: ``due``, ``changes``, ``error`` and the like."""

    def shortage(self, job: TrainingJob) -> JobShortage | None:
        """Return why a job gets no VMs, if it gets none."""

    def failure(self, job: TrainingJob) -> tuple[float, str] | None:
        """Return after which share of its time a job that runs will fail, and with which words, if it will."""

    def preempts(self, job: TrainingJob) -> bool:
        """Whether a job that runs on spot VMs loses them now."""

    def over(self, name: str, at: float) -> bool:
        """Whether a fault is cleared, or its time is over at a time."""


# Time


class Clock:
    """The machine's time in seconds since 1970, moved on by ``advance``."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self.ahead = 0.0

    def now(self) -> float:
        """Return the time in seconds."""
        return self._source() + self.ahead

    def advance(self, seconds: float) -> None:
        """Move the time on. Raises ValueError for a move back, after which finished work would be under way again."""
        if not 0 <= seconds <= _MOST_SECONDS - self.ahead:
            raise ValueError("the clock moves on, not back, and no more than ten years in all")
        self.ahead += seconds


def stamp(seconds: float) -> str:
    """Return a time as Google's APIs write it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Operations under way


class Operations:
    """Starts operations and ends them when they are due."""

    def __init__(self, store: Store, clock: Clock, faults: Interference) -> None:
        self._store = store
        self._clock = clock
        self._faults = faults
        self.reload()

    def reload(self) -> None:
        """Read from the store which operations there are, as after a start."""
        records = [record for record in self._store.all() if "/operations/" in record.name]
        self._pending = {record.name for record in records if "due" in record.meta}
        self._recovering = {record.name for record in records if "recovers" in record.meta} - self._pending
        self._done: dict[str, deque[str]] = defaultdict(deque)  # by project, those that ended first at the left
        for record in records:
            if record.name not in self._pending | self._recovering:
                self._done[record.project].append(record.name)

    def pending(self, target: str) -> Record | None:
        """Return an operation that is under way on a resource."""
        return next((record for record in self._under_way() if record.meta["target"] == target), None)

    def start(self, work: Work) -> Json:
        """Start an operation and return its body; an operation of no length is done at once."""
        serial, now = self._store.serial(), self._clock.now()
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
        service, _, rest = work.target.partition("/")
        starting = StartingOperation(
            kind=f"{service}.{rest.split('/')[-2]}",
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
        """End every operation that is due, in order, and recover those whose fault is over."""
        now = self._clock.now()
        self._pending = {name for name in self._pending if name in self._store}
        for record in self._under_way():
            self._relieve(record, now)
        due = [record for record in self._under_way() if record.meta["due"] <= now]
        for record in sorted(due, key=lambda record: (record.meta["due"], record.meta["serial"])):
            self._end(record)
        for name in [*self._recovering]:
            self._recover(name, now)

    def _under_way(self) -> list[Record]:
        return [record for name in self._pending if (record := self._store.get(name))]

    def _relieve(self, record: Record, now: float) -> None:
        """Let an operation under way end well after all, where the fault by which it would fail is over before that."""
        meta = record.meta
        if "recovers" in meta and self._faults.over(meta["recovers"]["after"], min(now, meta["due"])):
            well = meta.pop("recovers")
            del meta["error"]
            meta |= {"due": max(now, well["due"]), "changes": well["changes"]}
            self._store.put(record)

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

    def _recover(self, name: str, now: float) -> None:
        """Let a resource be as if its operation had not failed, where the fault by which it failed is over."""
        record = self._store.get(name)
        if record is not None and not self._faults.over(record.meta["recovers"]["after"], now):
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
            record.body.pop("statusMessage", None)  # it told of a failure that is over
            record.meta.pop("recovers_by", None)
            record.body.update(fields)
            self._store.put(record)

    def _forget_old(self, record: Record) -> None:
        """Keep an operation that is done with the newest of its project, and delete older ones."""
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
    """Return where an operation is found: beside its target, in the target's location; ``now`` is in seconds."""
    unique = UUID(int=(serial * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)
    name = f"operation-{int(now * 1000)}-{unique}" if work.style != "longrunning" else f"{unique}"
    if work.where is not None:
        return f"{work.where}operations/{name}"
    parts = work.target.split("/")[1:]
    place = parts[: 3 if parts[2] == "global" else 4]
    return "/".join([*place, "operations", name])


def _body_at_start(work: Work, path: str, serial: int, now: str) -> Json:
    parts, target = path.split("/"), work.target.partition("/")[2]
    if work.style == "longrunning":
        return {"name": path, **({"metadata": work.metadata} if work.metadata else {}), "done": False}
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
    place = {parts[2][:-1]: COMPUTE_LINK + "/".join(parts[:4])} if parts[2] in ("zones", "regions") else {}
    return {
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
        **place,
    }


def _write_end(body: Json, meta: Json, target: Json) -> None:
    """Write into a body that its operation is done; ``target`` is the body of its resource as it then is."""
    style, ended = meta["style"], stamp(meta["due"])
    if style == "longrunning":
        body["done"] = True
        metadata = body.get("metadata", {})
        if "createTime" in metadata:
            metadata["endTime"] = ended
        if "genericMetadata" in metadata:
            metadata["genericMetadata"]["updateTime"] = ended
        if "error" not in meta:
            schema = f"type.googleapis.com/{meta['schema'] or 'google.protobuf.Empty'}"
            body["response"] = {"@type": schema, **(target if meta["response"] is None else meta["response"])}
    else:
        body.update({"status": "DONE", "endTime": ended} | ({"progress": 100} if style == "compute" else {}))
    if "error" in meta:
        code, message = meta["error"]
        if style == "compute":
            body["error"] = {"errors": [{"code": code, "message": message}]}
            body["httpErrorStatusCode"], body["httpErrorMessage"] = 400, "BAD REQUEST"
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
