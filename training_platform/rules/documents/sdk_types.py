"""Types of pulumi-gcp that have no document: the names and kinds of their top-level inputs.

``make documents`` writes the list, which is read only if a plan contains such a type.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import cast

from training_platform.rules.documents.constraints import ANY, OPEN, Constraint, Shape, ShapeKind

_FILE = Path(__file__).with_suffix(".txt")
_COMMENT = "#"


def sdk_tokens() -> Collection[str]:
    """Return all types in the list."""
    return _lines().keys()


def sdk_shape(token: str) -> Shape | None:
    """Return the shape (schema) of a type; None if the list does not have the type."""
    line = _lines().get(token)
    if line is None:
        return None
    fields: dict[str, Shape] = {}
    for inputs in line.split():
        kind, _, names = inputs.partition("=")
        shape = OPEN if kind == "block" else Shape(kind=cast("ShapeKind", kind), entry=ANY)
        fields |= dict.fromkeys(names.split(","), shape)
    # Names imply no forms here: only documents say what an input is.
    return Shape(kind="block", fields=fields, limits=Constraint(ignore_names=True))


@cache
def _lines() -> dict[str, str]:
    """Return the lines of the list, keyed by type. The type itself is removed from each line."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return dict(line.partition(" ")[::2] for line in lines if not line.startswith(_COMMENT))
