"""Numbers of a wire that has floats only, as the models take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def whole_numbers(value: Any) -> Any:
    """Return a value with whole numbers as such, at any depth: 8 where the wire has 8.0."""
    if isinstance(value, Mapping):
        return {key: whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
