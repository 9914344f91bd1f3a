"""Property values as the engine sends them, and the two ways to read them.

On the wire an unknown is a string with a reserved value and a secret is an object with a signature. Most code keeps
values as they came (so both survive by being left alone) and asks ``readable`` for a copy without secrets, in which
every unknown is ``UNKNOWN``. Source: pulumi/pulumi v3.259 pkg/resource/plugin/rpc.go, read 2026-11-21.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

Json = dict[str, Any]  # a JSON object whose shape is a CRD's or a chart's business, not ours

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"  # the key that marks an object as something else than a map
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # what that key says of a secret; itself no secret
UNKNOWNS: Final = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",  # string, and whatever an SDK does not type
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
UNKNOWN_ON_WIRE: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class Unknown:
    """A value that is not known before the deployment; equal to nothing but itself."""

    def __repr__(self) -> str:
        return "<unknown>"


UNKNOWN: Final = Unknown()


def from_struct(struct: Struct) -> Json:
    """Read a protobuf struct; whole numbers come back as integers, since the wire has floats only."""
    return {name: _whole(value) for name, value in MessageToDict(struct).items()}


def to_struct(value: Mapping[str, Any]) -> Struct:
    """Write a value as it came back into protobuf."""
    struct = Struct()
    struct.update(value)
    return struct


def readable(value: Any) -> Any:
    """Copy a value without secret wrappers; unknowns, and anything that is no JSON at all, become ``UNKNOWN``."""
    if is_secret(value):
        return readable(value["value"])
    if isinstance(value, Mapping):
        return {name: readable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [readable(item) for item in value]
    if isinstance(value, str):
        return UNKNOWN if value in UNKNOWNS else value
    return value if value is None or isinstance(value, bool | int | float) else UNKNOWN


def is_secret(value: Any) -> bool:
    """Whether a value as it came is wrapped as a secret."""
    return isinstance(value, Mapping) and value.get(SIGNATURE) == SECRET


def holds_unknown(value: Any) -> bool:
    """Whether a readable value is unknown, or unknown somewhere inside."""
    if isinstance(value, dict):
        return any(holds_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(holds_unknown(item) for item in value)
    return value is UNKNOWN


def dig(value: Any, *path: str) -> Any:
    """The value at a path of a readable value: ``None`` where absent, ``UNKNOWN`` where something above it is."""
    for name in path:
        if value is UNKNOWN:
            return UNKNOWN
        value = value.get(name) if isinstance(value, dict) else None
    return value


def put(value: Json, path: tuple[str, ...], item: Any) -> Json:
    """Copy a value as it came with one field set, inside secrets too; unchanged where an unknown stands in the way."""
    changed = copy.deepcopy(value)
    here: Any = changed
    for name in path[:-1]:
        here = here.setdefault(name, {})
        while is_secret(here):
            here = here["value"]
        if not isinstance(here, dict):
            return changed
    here[path[-1]] = item
    return changed


def pruned(live: Json, like: Json) -> Json:
    """What of a live object an earlier set of inputs had set; fields that others filled in are left out."""
    return {
        name: pruned(item, like[name]) if isinstance(item, dict) and isinstance(like[name], dict) else item
        for name, item in live.items()
        if name in like
    }


def with_secrets(value: Any, like: Any) -> Any:
    """Mark as secret in ``value`` what is secret in ``like``, a value as it came."""
    if is_secret(like):
        return {SIGNATURE: SECRET, "value": with_secrets(value, like["value"])}
    if isinstance(value, dict) and isinstance(like, Mapping):
        return {name: with_secrets(item, like.get(name)) for name, item in value.items()}
    if isinstance(value, list) and isinstance(like, list):
        return [with_secrets(item, like[i] if i < len(like) else None) for i, item in enumerate(value)]
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
