"""Shapes of values as the documents keep them: equal ones stand once, and others name them by their number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Shape = dict[str, Any]
FORMATS = frozenset({"google-duration", "google-datetime", "date-time", "byte", "quantity", "duration"})
_WORDS = {"minimum": "least", "maximum": "most", "minLength": "shortest", "maxLength": "longest", "pattern": "pattern"}
_COUNTS = {"minItems": "fewest", "maxItems": "most", "minProperties": "fewest", "maxProperties": "most"}


class Shapes:
    """The shapes of one file, gathered; ``number`` gives each its place."""

    def __init__(self) -> None:
        self.rows: list[Shape] = []
        self._numbers: dict[str, int] = {}

    def number(self, shape: Shape) -> int:
        """Return the place of a shape, which is added unless an equal one stands there."""
        key = json.dumps(shape, sort_keys=True)
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(shape)
        return self._numbers[key]


def limits(schema: Mapping[str, Any]) -> Shape:
    """Return what an upstream schema says of a text's or a number's size and form."""
    found = {ours: _number(schema[theirs]) for theirs, ours in _WORDS.items() if theirs in schema}
    if schema.get("format") in FORMATS:
        found["format"] = schema["format"]
    return found


def counts(schema: Mapping[str, Any]) -> Shape:
    """Return what an upstream schema says of how many entries a list or a map has."""
    return {ours: schema[theirs] for theirs, ours in _COUNTS.items() if theirs in schema}


def _number(value: Any) -> Any:
    """Return a bound: discovery documents write numbers as texts."""
    return int(value) if isinstance(value, str) and value.removeprefix("-").isdecimal() else value


def write(path: Path, source: Mapping[str, Any], types: Mapping[str, int], shapes: Shapes) -> None:
    """Write a file of documents: a line for each type and each shape, so that a new version shows as a short change."""
    lines = [
        "{",
        f'"source": {_compact(source)},',
        '"types": {',
        ",\n".join(f"{json.dumps(name)}: {number}" for name, number in sorted(types.items())),
        "},",
        '"shapes": [',
        ",\n".join(_compact(row) for row in shapes.rows),
        "]",
        "}",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_rows(path: Path, source: Mapping[str, Any], types: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what is added to the documents: a line for each input."""
    rows = [
        f"{json.dumps(token)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {_compact(row)}" for name, row in inputs.items())
        + "\n}"
        for token, inputs in types.items()
    ]
    lines = ["{", f'"source": {_compact(source)},', '"types": {', ",\n".join(rows), "}", "}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
