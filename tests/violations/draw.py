"""Violations drawn from valid objects: one value of an object damaged at a time, without a look at any document.

What is damaged is decided by the value that stands there; whether it is a violation, whoever refuses it decides. This
shares nothing with the rules.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Json = dict[str, Any]
Keys = tuple[str | int, ...]
FOLDER = Path(__file__).parent
ABSENT = "<absent>"  # in a change, instead of a value: the input is left out
_FREE = frozenset({"labels", "resourceLabels", "nodeSelector", "matchLabels", "nodeLabels", "parameters", "sysctls",
                   "dimensions", "requests", "limits", "hard", "capacity", "annotations", "default", "max",
                   "defaultRequest"})  # fmt: skip
_FILLED_IN = ("metadata", "metadata.name", "metadata.namespace")  # Pulumi names what has no name
_ENUM = re.compile(r"[A-Z][A-Za-z]*(_[A-Z0-9]+)*\Z")
_CIDR = re.compile(r"[0-9.]+/[0-9]+\Z")
_SECONDS = re.compile(r"[0-9]+[smhd]\Z")


class Change(NamedTuple):
    """One damage of the object ``of``: inputs by path, and the kind of constraint that it is meant to break."""

    of: str
    constraint: str
    values: dict[str, Any]


def valid() -> dict[str, Json]:
    """Return the valid objects by name."""
    objects: dict[str, Json] = load(FOLDER / "valid.yaml")
    return objects


def drawn(name: str, inputs: Json) -> Iterator[Change]:
    """Yield every damage of one value of an object."""
    for keys, value in _walk(inputs, ()):
        path = ".".join(map(str, keys))
        if path in _FILLED_IN:
            continue
        for constraint, worse in _damages(value, free=bool(_FREE & set(keys[:-1]))):
            yield Change(name, constraint, {path: worse})
        if isinstance(value, dict) and keys and keys[-1] not in _FREE:
            yield Change(name, "unknown", {f"{path}.noSuchField": "some"})
    yield Change(name, "unknown", {"noSuchField": "some"})


def damaged(inputs: Json, change: Change) -> Json:
    """Return an object's inputs after a change."""
    damaged_inputs = copy.deepcopy(inputs)
    for path, value in change.values.items():
        keys: list[Any] = [_key(part) for part in path.replace("\\.", "\0").split(".")]
        last = keys.pop()
        block: Any = damaged_inputs
        for key in keys:
            block = block[key] if isinstance(block, list) else block.setdefault(key, {})
        if value == ABSENT:
            del block[last]
        elif isinstance(block, list) and last == len(block):
            block.append(value)
        else:
            block[last] = copy.deepcopy(value)
    return damaged_inputs


def _key(part: str) -> str | int:
    return int(part) if part.isdecimal() else part.replace("\0", ".")


def entries(value: Any) -> Iterable[tuple[str | int, Any]]:
    """Return the keys and values of a mapping, or the places and values of a list; nothing of other values."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _walk(value: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    if keys:
        yield keys, value
    for key, part in entries(value):
        if not (isinstance(key, str) and ("." in key or "/" in key)):
            yield from _walk(part, (*keys, key))


def _damages(value: Any, *, free: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(value, bool):
        yield "type", "perhaps"
    elif isinstance(value, (int, float)):
        yield from (("type", "several"), ("range", -7), ("range", 10**12))
    elif isinstance(value, list):
        yield from (("type", "text"), ("count", []))
    elif isinstance(value, dict):
        yield "type", "text"
    elif isinstance(value, str):
        yield from _of_text(value)
    if not free:
        yield "required", ABSENT


def _of_text(value: str) -> Iterator[tuple[str, Any]]:
    if _CIDR.match(value):
        yield "format", "10.0.0.0/77"
    elif _SECONDS.match(value):
        yield "format", "an hour"
    elif _ENUM.match(value):
        yield "enum", "NoSuchValue"
    else:
        yield "format", "Not Valid!"
    yield "type", {"no": "text"}


def load(path: Path) -> Any:
    """Return what a YAML file holds."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # safe, in C
