"""The bodies of operations, under way and done, in each API's own shape."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from training_platform.sandbox.cloud.requests.links import COMPUTE_LINK, CONTAINER_LINK
from training_platform.sandbox.cloud.state.clock import stamp
from training_platform.sandbox.cloud.state.work import Work

Json = dict[str, Any]


def path_of(work: Work, serial: int, now: float) -> str:
    """Return where an operation is found: beside its target, in the target's location; ``now`` is in seconds."""
    unique = UUID(int=(serial * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)
    name = f"operation-{int(now * 1000)}-{unique}" if work.style != "longrunning" else f"{unique}"
    if work.where is not None:
        return f"{work.where}operations/{name}"
    parts = work.target.split("/")[1:]
    place = parts[: 3 if parts[2] == "global" else 4]
    return "/".join([*place, "operations", name])


def begun(work: Work, path: str, serial: int, now: str) -> Json:
    """Return the body of an operation that is under way; ``now`` is a timestamp, ``serial`` its number in the store."""
    return _BEGUN[work.style](work, path, serial, now)


def end(body: Json, meta: Json, target: Json) -> None:
    """Make a body that of an operation that is done; ``target`` is the body of its resource as it then is."""
    if meta["style"] == "longrunning":
        _end_longrunning(body, meta, target)
        return
    body.update(
        {"status": "DONE", "endTime": stamp(meta["due"])} | ({"progress": 100} if meta["style"] == "compute" else {})
    )
    _end_with_error(body, meta)


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


def _longrunning(work: Work, path: str, _serial: int, _now: str) -> Json:
    return {"name": path, **({"metadata": work.metadata} if work.metadata else {}), "done": False}


_BEGUN: Final = {"compute": _compute, "container": _container, "longrunning": _longrunning}


def _end_longrunning(body: Json, meta: Json, target: Json) -> None:
    body["done"] = True
    metadata = body.get("metadata", {})
    if "createTime" in metadata:
        metadata["endTime"] = stamp(meta["due"])
    if "genericMetadata" in metadata:
        metadata["genericMetadata"]["updateTime"] = stamp(meta["due"])
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
