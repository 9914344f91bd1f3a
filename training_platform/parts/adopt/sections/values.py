"""Reading bodies, and writing sections without the model's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from training_platform.config.reading.rejection import rejections
from training_platform.config.reading.section import Name, fits
from training_platform.config.reading.source import Source


class Inexpressible(Exception):
    """Something that no stack file can express; the message says why, in a clause."""


def at(body: Any, path: str) -> Any:
    """Return a value of a body, such as ``config.bootDisk.sizeGb``, or None; of a list, the first entry."""
    for key in path.split("."):
        if isinstance(body, list):
            body = body[0] if body else None
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def whole(body: Any, path: str, default: int = 0) -> int:
    """Return a number; bodies have strings for large ones."""
    value = at(body, path)
    return int(value) if value not in (None, "") else default


def shortest(model: type[BaseModel], section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid section without the model's defaults. Raises Inexpressible."""
    try:
        read = model.model_validate(_plain(section), strict=False)
    except ValidationError as error:
        findings = rejections(error, model, Source(file=""), (), "")
        raise Inexpressible("; ".join(f"{rejection.path}: {rejection.message}" for rejection in findings)) from error
    return read.model_dump(mode="json", exclude_defaults=True)


def labels_of(body: Any) -> dict[str, str]:
    """Return labels without those of Google and Pulumi."""
    return {key: value for key, value in (body or {}).items() if not key.startswith("goog-")}


def own_labels(every: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the labels that all have in common, without those that stack files do not set."""
    first, *others = list(every) or [{}]
    ours = ("environment", "managed-by", "team")
    return {
        key: value
        for key, value in sorted(first.items())
        if key not in ours and all(labels.get(key) == value for labels in others)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def key_of(stack: str, name: str) -> str:
    """Return the key of a name in a stack file. Raises Inexpressible."""
    key = name.removeprefix(f"{stack}-")
    if key == name or not fits(Name, key):
        raise Inexpressible(f"stack {stack} calls what it has {stack}-KEY, with a key of at most 30 characters")
    return key


def is_ours(stack: str, path: str) -> bool:
    """Whether a resource's name follows a stack's naming."""
    try:
        key_of(stack, path.rpartition("/")[2])
    except Inexpressible:
        return False
    return True
