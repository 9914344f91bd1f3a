"""The values that Google's APIs fill in for fields that are missing in a request, from ``api_defaults.yaml``."""

from __future__ import annotations

import copy
from functools import cache

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json


def fill_in(body: Json, kind: str) -> None:
    """Fill in fields that are missing in a body, or in a part of a body, from the defaults of this ``kind``."""
    for path, value in _defaults().get(kind, {}).items():
        *parents, name = path.split(".")
        message = body
        for parent in parents:
            message = message.setdefault(parent, {})
        message.setdefault(name, copy.deepcopy(value))


@cache
def _defaults() -> dict[str, Json]:
    defaults: dict[str, Json] = table(__file__, "api_defaults.yaml")
    return defaults
