"""Types of pulumi-gcp without a document of their own: the names and kinds of their top-level inputs.

``make documents`` writes the list, which is read only if a plan has such a type.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_suffix(".txt")
_COMMENT = "#"


def sdk_tokens() -> Collection[str]:
    """Return every type in the list."""
    return _lines().keys()


def sdk_shapes(token: str) -> list[dict[str, Any]] | None:
    """Return the shapes of a type, the type's own last; None if the list does not have the type."""
    line = _lines().get(token)
    if line is None:
        return None
    shapes: list[dict[str, Any]] = [{"is": "any"}]
    fields: dict[str, int] = {}
    for inputs in line.split():
        kind, _, names = inputs.partition("=")
        fields |= dict.fromkeys(names.split(","), len(shapes))
        shapes.append({"is": kind, **({"fields": {}, "open": True} if kind == "block" else {"of": 0})})
    # Names imply no forms here: only documents say what an input is.
    return [*shapes, {"is": "block", "fields": fields, "unnamed": True}]


@cache
def _lines() -> dict[str, str]:
    """Return by type the rest of its line."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return dict(line.partition(" ")[::2] for line in lines if not line.startswith(_COMMENT))
