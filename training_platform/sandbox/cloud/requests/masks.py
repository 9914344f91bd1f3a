"""Changes of a part of a resource: update masks, and JSON merge."""

from __future__ import annotations

import copy
from typing import Any

from training_platform.resources.spelling import camel_case

Json = dict[str, Any]


def mask_paths(mask: str) -> list[str]:
    """Return the paths of a mask, in camelCase whichever way they are spelt."""
    return [camel_case(part.strip()) for part in mask.split(",") if part.strip()]


def apply_mask(old: Json, new: Json, paths: list[str]) -> Json:
    """Return ``old`` with the values of ``new`` at the paths; what ``new`` lacks there is cleared. ``*`` is all."""
    if "*" in paths:
        return {**old, **new}
    result = copy.deepcopy(old)
    for path in paths:
        _set(result, path.split("."), new)
    return result


def merge(old: Json, new: Json) -> Json:
    """Return ``old`` with ``new`` merged into it, as a JSON merge patch does: maps by key, all else replaced."""
    result = copy.deepcopy(old)
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _set(body: Json, path: list[str], new: Any) -> None:
    """Set a field to that of ``new``; below a list, of each entry to that of the entry at its place."""
    first, *rest = path
    value = new.get(first) if isinstance(new, dict) else None
    if rest and isinstance(body.get(first), list):
        for entry, given in zip(body[first], value or (), strict=False):
            _set(entry, rest, given)
    elif rest:
        if not isinstance(body.get(first), dict):
            body[first] = {}
        _set(body[first], rest, value)
    elif value is None:
        body.pop(first, None)
    else:
        body[first] = copy.deepcopy(value)
