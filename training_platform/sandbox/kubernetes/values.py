"""Property values as the engine sends them: what is in them, and changes that leave secrets and unknowns as they came.

Most code keeps values as they were sent, and asks ``readable`` for a copy without secrets, in which every unknown is
``UNKNOWN``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from google.protobuf.struct_pb2 import Struct

from training_platform.checks.planning.wire import SECRET, SIGNATURE, as_sent
from training_platform.resources.planned import UNKNOWN

Json = dict[str, Any]  # a JSON object whose shape is a CRD's or a chart's business, not ours


def from_struct(struct: Struct) -> Json:
    """Read a protobuf struct."""
    return {name: as_sent(value) for name, value in struct.fields.items()}


def to_struct(value: Mapping[str, Any]) -> Struct:
    """Write a value as it came back into protobuf."""
    struct = Struct()
    struct.update(value)
    return struct


def is_secret(value: Any) -> bool:
    """Whether a value as it came is wrapped as a secret."""
    return isinstance(value, Mapping) and value.get(SIGNATURE) == SECRET


def dig(value: Any, *path: str) -> Any:
    """The value at a path of a readable value: ``None`` where absent, ``UNKNOWN`` where something above it is."""
    for name in path:
        if value is UNKNOWN:
            return UNKNOWN
        value = value.get(name) if isinstance(value, dict) else None
    return value


def has_condition(obj: Json, kind: str) -> bool:
    """Whether the status of an object says that a condition, such as ``Ready``, holds."""
    conditions = dig(obj, "status", "conditions") or []
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


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
