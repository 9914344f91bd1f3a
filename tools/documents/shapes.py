"""Files of documents, as ``make documents`` writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training_platform.rules.documents.openapi import Shapes


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
