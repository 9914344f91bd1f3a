"""Operations: what a change is while it is under way, in each API's own shape.

An operation is a resource too, and so survives a restart: ``meta`` holds when it is due and what then happens, as
data. Every request first settles what is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from sandbox.cloud.clock import Clock, stamp
from sandbox.cloud.model import Style
from sandbox.cloud.store import Record, Store

Json = dict[str, Any]
COMPUTE_LINK: Final = "https://www.googleapis.com/compute/v1/"
CONTAINER_LINK: Final = "https://container.googleapis.com/v1/"
_LINKS: Final = {"compute": COMPUTE_LINK, "container": CONTAINER_LINK}


@dataclass(frozen=True, kw_only=True)
class Change:
    """What happens when an operation is done: ``fields`` are merged into ``target``, or it is deleted."""

    target: str
    fields: Json = field(default_factory=dict)
    delete: bool = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """An operation to start: on which resource, of which type (``insert``, ``CREATE_CLUSTER``), for how long.

    ``response`` and its ``schema`` are what a google.longrunning operation answers in the end; None is the target's
    body as it then is. ``where`` is the path below which the operation is named; empty: the target's location.
    """

    style: Style
    service: str
    project: str
    target: str
    type: str
    seconds: float
    changes: Sequence[Change] = ()
    response: Json | None = None
    schema: str = ""
    where: str | None = None


class Operations:
    """Starts operations and ends them when they are due."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pending = {each.name for each in store.all() if "due" in each.meta}

    def start(self, work: Work) -> Json:
        """Start an operation and return its body; one of no length is done at once."""
        record = self._record(work)
        self._store.put(record)
        self._pending.add(record.name)
        self.settle()
        return record.body

    def settle(self) -> None:
        """End every operation that is due, in order."""
        now = self._clock.now()
        due = [found for name in self._pending if (found := self._store.get(name)) and found.meta["due"] <= now]
        self._pending = {name for name in self._pending if self._store.get(name)}
        for record in sorted(due, key=lambda each: (each.meta["due"], each.meta["serial"])):
            self._end(record)

    def pending(self, target: str) -> Record | None:
        """Return an operation that is under way on a resource."""
        return next((found for found in self._under_way() if found.meta["target"] == target), None)

    def fail(self, name: str, code: str, message: str) -> None:
        """End an operation with an error; its changes do not happen."""
        record = self._store.get(name)
        if record is not None and "due" in record.meta:
            record.meta["changes"] = []
            record.meta["error"] = [code, message]
            record.meta["due"] = self._clock.now()
            self.settle()

    def _under_way(self) -> list[Record]:
        return [found for name in self._pending if (found := self._store.get(name))]

    def _record(self, work: Work) -> Record:
        serial, now = self._store.serial(), self._clock.now()
        path = _path(work, serial, now)
        body = _BODIES[work.style](work, path, serial, stamp(now))
        meta = {
            "due": now + work.seconds,
            "serial": serial,
            "style": work.style,
            "target": work.target,
            "changes": [[each.target, each.fields, each.delete] for each in work.changes],
            "response": work.response,
            "schema": work.schema,
        }
        return Record(name=f"{work.service}/{path}", project=work.project, body=body, meta=meta)

    def _end(self, record: Record) -> None:
        self._pending.discard(record.name)
        for target, fields, delete in record.meta["changes"]:
            found = self._store.get(target)
            if delete:
                self._store.delete(target)
            elif found is not None:
                found.body.update(fields)
                self._store.put(found)
        meta, body = record.meta, record.body
        target = self._store.get(meta["target"])
        if meta["style"] == "longrunning":
            _end_longrunning(body, meta, target.body if target else {})
        else:
            body.update(
                {"status": "DONE", "endTime": stamp(meta["due"])}
                | ({"progress": 100} if meta["style"] == "compute" else {})
            )
            _end_with_error(body, meta)
        for key in ("due", "changes", "response"):
            meta.pop(key, None)
        self._store.put(record)


def _path(work: Work, serial: int, now: float) -> str:
    """Return where an operation is found: beside its target, in the target's location."""
    unique = UUID(int=(serial * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)
    name = f"operation-{int(now * 1000)}-{unique}" if work.style != "longrunning" else f"{unique}"
    if work.where is not None:
        return f"{work.where}operations/{name}"
    parts = work.target.split("/")[1:]
    place = parts[: 3 if parts[2] == "global" else 4]
    return "/".join([*place, "operations", name])


def _compute(work: Work, path: str, serial: int, now: str) -> Json:
    parts = path.split("/")
    place = {parts[2][:-1]: COMPUTE_LINK + "/".join(parts[:4])} if parts[2] in ("zones", "regions") else {}
    return {
        "kind": "compute#operation",
        "id": str(10**18 + serial),
        "name": parts[-1],
        "operationType": work.type,
        "targetLink": COMPUTE_LINK + work.target.partition("/")[2],
        "status": "RUNNING",
        "progress": 0,
        "insertTime": now,
        "startTime": now,
        "selfLink": COMPUTE_LINK + path,
        **place,
    }


def _container(work: Work, path: str, _serial: int, now: str) -> Json:
    return {
        "name": path.rpartition("/")[2],
        "zone": path.split("/")[3],
        "location": path.split("/")[3],
        "operationType": work.type,
        "status": "RUNNING",
        "startTime": now,
        "selfLink": CONTAINER_LINK + path,
        "targetLink": CONTAINER_LINK + work.target.partition("/")[2],
    }


def _longrunning(work: Work, path: str, _serial: int, now: str) -> Json:
    return {
        "name": path,
        "metadata": {
            "@type": f"type.googleapis.com/google.cloud.{work.service}.OperationMetadata",
            "createTime": now,
            "target": work.target.partition("/")[2],
            "verb": work.type,
        },
        "done": False,
    }


_BODIES: Final = {"compute": _compute, "container": _container, "longrunning": _longrunning}


def _end_longrunning(body: Json, meta: Json, target: Json) -> None:
    body["done"] = True
    body["metadata"]["endTime"] = stamp(meta["due"])
    if "error" in meta:
        code, message = meta["error"]
        body["error"] = {"code": _CODES.get(code, 13), "message": message}
        return
    response = target if meta["response"] is None else meta["response"]
    body["response"] = {"@type": f"type.googleapis.com/{meta['schema'] or 'google.protobuf.Empty'}", **response}


def _end_with_error(body: Json, meta: Json) -> None:
    if "error" not in meta:
        return
    code, message = meta["error"]
    if meta["style"] == "compute":
        body["error"] = {"errors": [{"code": code, "message": message}]}
        body["httpErrorStatusCode"], body["httpErrorMessage"] = 400, "BAD REQUEST"
    else:
        body["statusMessage"] = message
        body["error"] = {"code": _CODES.get(code, 13), "message": message}


_CODES: Final = {
    "INVALID_ARGUMENT": 3,
    "NOT_FOUND": 5,
    "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
}
