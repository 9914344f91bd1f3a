"""What ``additions.yaml`` adds to the shapes of the documents: bounds and forms that no document says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Shape = dict[str, Any]
_FILE = Path(__file__).with_name("additions.yaml")


def with_additions(token: str, number: int, shapes: list[Shape]) -> int:
    """Return the number of a type's shape with all that is added to it; shapes are shared, and so never changed."""
    content = _content()
    for wanted, rows in content["types"].items():
        if fnmatchcase(token, wanted):
            for path, extra in _flat(rows, "", content):
                number = _added(number, path.split(".") if path else [], extra, shapes)
    return number


def _flat(rows: Any, at: str, content: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Yield paths and what is added there; a name stands for a form, or for a part with paths of its own."""
    if isinstance(rows, str):
        rows = content["parts"].get(rows) or {"": content["forms"][rows]}
    for path, extra in rows.items():
        here = ".".join(filter(None, (at, path)))
        if isinstance(extra, str):
            yield from _flat(extra, here, content)
        else:
            yield here, extra


def _added(number: int, path: list[str], extra: Shape, shapes: list[Shape]) -> int:
    shape = dict(shapes[number])
    if not path:
        needed = {*shape.get("required", ()), *extra.get("required", ())} - {*extra.get("optional", ())}
        shape.update({**extra, "required": sorted(needed)} if shape["is"] == "block" else extra)
    else:
        first, *rest = path
        name, entry = first.removesuffix("[]").removesuffix("{}"), first.endswith(("[]", "{}"))
        inner = shape["fields"][name]
        if entry:
            outer = dict(shapes[inner])
            outer["of"] = _added(outer["of"], rest, extra, shapes)
            shapes.append(outer)
            made = len(shapes) - 1
        else:
            made = _added(inner, rest, extra, shapes)
        shape["fields"] = {**shape["fields"], name: made}
    shapes.append(shape)
    return len(shapes) - 1


@cache
def _content() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = yaml.load(_FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # safe
    return loaded
