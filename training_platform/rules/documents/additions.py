"""What is added to the shapes of the documents: bounds, forms, and how inputs go together, which no document says.

By ``make documents``: ``provider.json`` has what the provider checks, and ``by_hand.json`` what is written by hand in
``tools/documents``: ``described.yaml``, what descriptions of Google's types say, and ``additions.yaml``, the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

Shape = dict[str, Any]
Made = dict[tuple[int, str, bool], int]
"""Shapes with a part, by the shape, the part, and whether only inputs that the shape has are meant."""
_FOLDER = Path(__file__).parent
_WILD = re.compile(r"[*?[]")
_NARROWER: Mapping[str, Callable[[Any, Any], Any]] = {
    "least": max, "fewest": max, "shortest": max, "most": min, "longest": min,
}  # fmt: skip
_LISTS = ("groups", "cases", "orders", "disjoint")  # of a block: what is added stands beside what is there


def with_additions(token: str, number: int, shapes: list[Shape], parts: Made | None = None) -> int:
    """Return the number of a type's shape with all that is added to it; shapes are shared, and so never changed."""
    parts = {} if parts is None else parts
    for path, extra in _provider().get(token, {}).items():
        number = _added(number, path.split(".") if path else [], extra, shapes, parts, known=True)
    for wanted, rows in _content()["types"]:
        if token == wanted or (_WILD.search(wanted) and fnmatchcase(token, wanted)):
            number = _with_rows(number, rows, shapes, parts, known=False)
    return number


def _with_rows(number: int, rows: Mapping[str, Any] | str, shapes: list[Shape], parts: Made, *, known: bool) -> int:
    if isinstance(rows, str):
        return _with_part(number, rows, shapes, parts, known=known)
    for path, extra in rows.items():
        plain = path.replace("?", "")
        here = plain.split(".") if plain else []
        number = _added(number, here, extra, shapes, parts, known=known or plain != path)
    return number


def _with_part(number: int, name: str, shapes: list[Shape], parts: Made, *, known: bool) -> int:
    """Return the number of a shape with a part or a form, which is added once: most kinds have the same pods."""
    key = (number, name, known)
    if key not in parts:
        content = _content()
        rows = content["parts"].get(name) or {"": content["forms"][name]}
        parts[key] = _with_rows(number, rows, shapes, parts, known=known)
    return parts[key]


def with_names(shape: Shape, shapes: list[Shape], *, strict: bool) -> Shape:
    """Return a block with what the names of its inputs alone tell: a ``timeZone`` is a time zone in every type."""
    content, names = _content(), _names("kubernetes" if strict else "gcp")
    for name in shape["fields"].keys() & names.keys():
        inner, at = shapes[shape["fields"][name]], name
        if inner["is"] == "list":
            inner, at = shapes[inner["of"]], f"{name}[]"
        rows = [row for end, form in names[name] for row in _flat({f"{at}{end}": form}, "", content)]
        if "unnamed" in shape or "unnamed" in inner:
            continue
        if "enum" not in inner and all(_is_for(extra, inner["is"]) for path, extra in rows if path == at):
            shapes.append(shape)
            number = len(shapes) - 1
            for path, extra in rows:
                number = _added(number, path.split("."), extra, shapes, {}, known=True)
            shape = shapes[number]
    return shape


@cache
def _names(family: str) -> Mapping[str, list[tuple[str, str]]]:
    """Return names with their forms, each with where that stands: at the input, or ``{}``, at the values of a map."""
    found: dict[str, list[tuple[str, str]]] = {}
    for written, form in _content()["names"][family].items():
        name = written.removesuffix("{}")
        found.setdefault(name, []).append((written[len(name) :], form))
    return found


def _is_for(extra: Shape, kind: str) -> bool:
    """Whether what is said of an input goes with its kind: of a block how inputs go together, of a text its form."""
    if extra.keys() & {"least", "most"}:
        return kind in ("int32", "int64")
    return kind == ("block" if extra.keys() & {*_LISTS, "required"} else "map" if "keys_like" in extra else "text")


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


def _added(number: int, path: list[str], extra: Shape | str, shapes: list[Shape], parts: Made, *, known: bool) -> int:
    """Return the number of a shape with something added at a path; what is ``known`` may only become narrower."""
    shape = dict(shapes[number])
    if not path:
        if isinstance(extra, str):
            return _with_part(number, extra, shapes, parts, known=known)
        shape.update(_joined(shape, extra, known=known))
    elif shape["is"] not in ("block", "list", "map"):
        return number  # the provider's own documents leave what it holds open
    else:
        first, *rest = path
        name, entry = first.removesuffix("[]").removesuffix("{}"), first.endswith(("[]", "{}"))
        if known and name not in shape.get("fields", ()):
            return number
        inner = shape["fields"][name]
        if entry:
            outer = dict(shapes[inner])
            outer["of"] = _added(outer["of"], rest, extra, shapes, parts, known=known)
            shapes.append(outer)
            made = len(shapes) - 1
        else:
            made = _added(inner, rest, extra, shapes, parts, known=known)
        shape["fields"] = {**shape["fields"], name: made}
    shapes.append(shape)
    return len(shapes) - 1


def _joined(shape: Shape, extra: Shape, *, known: bool) -> Shape:
    if shape["is"] != "block":
        both = {name for name in extra if known and name in shape}
        narrower = {name: _NARROWER[name](shape[name], extra[name]) for name in both & _NARROWER.keys()}
        if "enum" in both and "closed" in extra:
            narrower["enum"] = extra["enum"] if extra["closed"] else sorted({*shape["enum"], *extra["enum"]})
        return {name: value for name, value in extra.items() if name not in both} | narrower
    needed = {*shape.get("required", ()), *extra.get("required", ())} - {*extra.get("optional", ())}
    lists = {
        name: [*shape.get(name, ()), *(row for row in extra[name] if row not in shape.get(name, ()))]
        for name in _LISTS if name in extra
    }  # fmt: skip
    return {**extra, **lists, "required": sorted(needed)}


@cache
def _provider() -> Mapping[str, Mapping[str, Shape]]:
    types: Mapping[str, Mapping[str, Shape]] = _read("provider.json")["types"]
    return types


@cache
def _content() -> Mapping[str, Any]:
    """Return what is written by hand: forms, parts and names, and pairs of a type and its rows."""
    return _read("by_hand.json")


def _read(name: str) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return content
