"""A long-running operation: its start, its stored data, and its body in the format of each API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Required, TypedDict
from uuid import UUID

from local_google_cloud.state.clock import stamp
from training_platform.catalog.types import Json

COMPUTE_LINK: Final = "https://www.googleapis.com/compute/v1/"
CONTAINER_LINK: Final = "https://container.googleapis.com/v1/"

Style = Literal["compute", "container", "longrunning"]
StoredChange = list[Any]
"""A ``StateChange`` as JSON: its target, the fields, and whether the target is deleted."""


@dataclass(frozen=True, kw_only=True)
class StateChange:
    """What happens at the end of an operation: ``fields`` are merged into ``target``, or ``target`` is deleted."""

    target: str
    fields: Json = field(default_factory=dict)
    delete: bool = False


class Recovery(TypedDict):
    """The changes that a failed operation would have made. They are made once the fault ``after`` is over."""

    after: str
    changes: list[StoredChange]


class OperationMeta(TypedDict, total=False):
    """The JSON data that an operation's record contains in addition to its body.

    ``due``, ``changes`` and ``response`` are deleted when the operation ends at the time ``ended``. ``error`` contains
    the code and the message of a fault.
    """

    serial: Required[int]
    style: Required[Style]
    target: Required[str]
    schema: Required[str]
    due: float
    changes: list[StoredChange]
    response: Json | None
    error: list[str]
    recovers: Recovery
    ended: float


@dataclass(frozen=True, kw_only=True)
class Work:
    """An operation to start: its target, type (``insert``, ``CREATE_CLUSTER``) and duration.

    ``response``, with its ``schema``, is the result of a google.longrunning operation; None means that the result is
    the body of the target at the end. Until the end, ``metadata`` describes the operation. ``where`` is the parent path
    of the operation; None means the location of the target. ``grows`` marks an update that requests VMs. A create
    operation always counts as requesting VMs.
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
        """What the operation does to its target: create, update or delete."""
        verb = self.type.lower().partition("_")[0]
        return {"insert": "create", "create": "create", "delete": "delete"}.get(verb, "update")


def path_of(work: Work, serial: int, now: float) -> str:
    """Return the path of an operation. By default, it is in the location of its target."""
    unique = UUID(int=(serial * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)
    name = str(unique) if work.style == "longrunning" else f"operation-{int(now * 1000)}-{unique}"
    if work.where is not None:
        return f"{work.where}operations/{name}"
    parts = work.target.split("/")[1:]
    location = parts[: 3 if parts[2] == "global" else 4]
    return "/".join([*location, "operations", name])


def body_at_start(work: Work, path: str, serial: int, now: str) -> Json:
    """Return the body of an operation that has started."""
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


def write_end(body: Json, meta: OperationMeta, target: Json) -> None:
    """Write the result of an operation into its body. ``target`` is the body of its target at the end."""
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
