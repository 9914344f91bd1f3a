"""Property values as the engine sends them, changes that leave their secrets and unknowns alone, and differences.

Most code keeps values as they were sent, and asks ``readable`` for a copy without secrets, in which every unknown is
``UNKNOWN``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from google.protobuf.struct_pb2 import Struct

from training_platform.catalog.types import Json
from training_platform.checks.planning.wire import SECRET, SIGNATURE, as_sent

PropertyPath = tuple[str | int, ...]


def from_struct(struct: Struct) -> Json:
    """Read a protobuf struct."""
    return {name: as_sent(value) for name, value in struct.fields.items()}


def is_secret(value: Any) -> bool:
    """Whether a value as the engine sent it is wrapped as a secret."""
    return isinstance(value, Mapping) and value.get(SIGNATURE) == SECRET


def with_secrets(value: Any, like: Any) -> Any:
    """Mark as secret in ``value`` what is secret in ``like``, a value as the engine sent it."""
    if is_secret(like):
        return {SIGNATURE: SECRET, "value": with_secrets(value, like["value"])}
    if isinstance(value, dict) and isinstance(like, Mapping):
        return {name: with_secrets(item, like.get(name)) for name, item in value.items()}
    if isinstance(value, list) and isinstance(like, list):
        return [with_secrets(item, like[i] if i < len(like) else None) for i, item in enumerate(value)]
    return value


def put(value: Json, path: tuple[str, ...], item: Any) -> Json:
    """Copy a value as the engine sent it and set one field, inside secrets too; below an unknown nothing is set."""
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
    """The fields of a live object that earlier inputs had set; fields that a server or others set are left out."""
    return {
        name: pruned(item, like[name]) if isinstance(item, dict) and isinstance(like[name], dict) else item
        for name, item in live.items()
        if name in like
    }


class PropertyChange(NamedTuple):
    """One property that was added, deleted or updated."""

    path: PropertyPath
    kind: Literal["add", "delete", "update"]

    def within(self, path: PropertyPath) -> bool:
        """Whether the change touches ``path``: at it, below it, or by adding or deleting something above it."""
        shared = min(len(path), len(self.path))
        return self.path[:shared] == path[:shared]

    def __str__(self) -> str:
        return text(self.path)


def changes(old: Any, new: Any, path: PropertyPath = ()) -> Iterator[PropertyChange]:
    """Compare readable values; a null counts as absent, and an unknown differs from every known value."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from changes(old.get(name), new.get(name), (*path, name))
    elif isinstance(old, list) and isinstance(new, list):
        for i, (before, after) in enumerate(zip_longest(old, new)):
            yield from changes(before, after, (*path, i))
    elif old is None and new is not None:
        yield PropertyChange(path, "add")
    elif new is None and old is not None:
        yield PropertyChange(path, "delete")
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield PropertyChange(path, "update")


def text(path: PropertyPath) -> str:
    """Write a path as the engine does: ``spec.flavors[0]["example.com/key"]``."""
    written = ""
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        elif any(mark in step for mark in '."[]'):
            escaped = step.replace('"', '\\"')
            written += f'["{escaped}"]'
        else:
            written += f".{step}" if written else step
    return written
