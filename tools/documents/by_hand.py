"""What is written by hand of the documents: additions.yaml and described.yaml, whose heads say how to read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent
Content = Mapping[str, Any]


def content() -> Content:
    """Return forms, parts and names, and pairs of a type and its rows."""
    added, described = (_read(name) for name in ("additions.yaml", "described.yaml"))
    types = [*added["types"].items(), *described["types"].items()]
    return {**added, "parts": {**added["parts"], **described["parts"]}, "types": types}


def write(path: Path) -> None:
    """Write both files as one that is read quickly, a line for each part and each type."""
    whole = content()
    lines = ",\n".join(
        f'"{section}": {_lines(rows) if section in ("parts", "types") else _compact(rows)}'
        for section, rows in whole.items()
    )
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _lines(rows: Any) -> str:
    if isinstance(rows, Mapping):
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {_compact(row)}" for name, row in rows.items()) + "\n}"
    return "[\n" + ",\n".join(map(_compact, rows)) + "\n]"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _read(name: str) -> Any:
    return yaml.load((_FOLDER / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # safe
