"""What APIs fill in where a request leaves it out: ``defaults.yaml``, read once."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
_FILE = Path(__file__).parents[1] / "services" / "defaults.yaml"


def fill_in(body: Json, kind: str) -> None:
    """Complete a body, or a part of one, by the defaults of its kind; what is there stays."""
    for path, value in _table().get(kind, {}).items():
        *above, field = path.split(".")
        place = body
        for name in above:
            place = place.setdefault(name, {})
        place.setdefault(field, copy.deepcopy(value))


@cache
def _table() -> dict[str, Json]:
    table: dict[str, Json] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return table
