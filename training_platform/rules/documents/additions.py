"""Constraints that no document states, added to its shapes: bounds, forms, and how inputs go together.

``make documents`` writes two files of them. ``provider.json`` has the provider's own checks. ``by_hand.json`` comes
from ``tools/documents``: descriptions of Google's types (``described.yaml``), and the rest (``additions.yaml``).

Rows map a path to a constraint, which is a part of a shape (see ``shapes``), or to the name of rows or of a form that
several types share. A path names inputs, ``nodePools[].labels{}``: ``[]`` are the entries of a list, ``{}`` the values
of a map. With a question mark it is careful: it skips what a type does not have, and never widens a bound.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Shape = dict[str, Any]
_FOLDER = Path(__file__).parent
_WILD = re.compile(r"[*?[]")
_NARROWER: Mapping[str, Callable[[Any, Any], Any]] = {
    "least": max, "fewest": max, "shortest": max, "most": min, "longest": min,
}  # fmt: skip
_LISTS = ("groups", "cases", "orders", "disjoint")  # lists of a block that an addition extends
_ENTRY = "[]"  # a step from a list or a map to its entries


class Addition(NamedTuple):
    """A constraint at a path: names of inputs, and ``_ENTRY``.

    A ``careful`` one skips a path that a type does not have, and never widens a bound.
    """

    path: tuple[str, ...]
    constraint: Shape
    careful: bool


class Additions:
    """Adds constraints to the shapes of one source.

    Shapes refer to each other by their index in a list. Types share shapes, so an addition never changes one: it
    appends changed copies of the shapes on its path.
    """

    def __init__(self, shapes: list[Shape], *, strict: bool) -> None:
        self._shapes = shapes
        self._family = "kubernetes" if strict else "gcp"
        self._copies: dict[tuple[object, ...], int] = {}

    def to_type(self, token: str, number: int) -> int:
        """Return the index of a type's shape with all additions to the type."""
        additions = [
            addition
            for path, constraint in _provider().get(token, {}).items()
            for addition in _expanded({path: constraint}, careful=True)
        ]
        for pattern, rows in _by_hand()["types"]:
            if token == pattern or (_WILD.search(pattern) and fnmatchcase(token, pattern)):
                additions += _expanded(rows, careful=False)
        return self._copy(number, additions)

    def by_name(self, shape: Shape) -> Shape:
        """Return a block with the constraints that follow from names: a ``timeZone`` is a time zone in every type."""
        if "unnamed" in shape:
            return shape
        forms = _forms_by_name(self._family)
        additions: list[Addition] = []
        for name in shape["fields"].keys() & forms.keys():
            inner = self._shapes[shape["fields"][name]]
            path: tuple[str, ...] = (name,)
            if inner["is"] == "list":
                inner = self._shapes[inner["of"]]
                path = (name, _ENTRY)
            if "unnamed" in inner or "enum" in inner:
                continue
            named = [
                addition._replace(path=path + addition.path)
                for end, form in forms[name]
                for addition in _expanded({end: form}, careful=True)
            ]
            if all(_fits_kind(addition.constraint, inner["is"]) for addition in named if addition.path == path):
                additions += named
        return self._with(shape, additions)

    def _copy(self, number: int, additions: list[Addition]) -> int:
        """Return the index of a copy of a shape with additions: one copy for all types with the same pods."""
        # Constraints are read once, so the same one is the same object.
        key = (number, *((row.path, id(row.constraint), row.careful) for row in additions))
        if key not in self._copies:
            self._shapes.append(self._with(self._shapes[number], additions))
            self._copies[key] = len(self._shapes) - 1
        return self._copies[key]

    def _with(self, shape: Shape, additions: list[Addition]) -> Shape:
        """Return a shape with additions; those below it go to copies of the shapes that it refers to."""
        changed = dict(shape)
        below: dict[str, list[Addition]] = defaultdict(list)
        for addition in additions:
            if addition.path:
                step, *rest = addition.path
                below[step].append(addition._replace(path=tuple(rest)))
            else:
                changed.update(_joined(changed, addition))
        for step, inner_additions in below.items():
            if step == _ENTRY:
                changed["of"] = self._copy(changed["of"], inner_additions)
            elif changed["is"] in ("block", "list", "map"):  # values of other kinds are open in a provider's document
                fields = changed.get("fields", {})
                if step in fields or not all(addition.careful for addition in inner_additions):
                    changed["fields"] = {**fields, step: self._copy(fields[step], inner_additions)}
        return changed


def _joined(shape: Shape, addition: Addition) -> Shape:
    """Return the entries of a shape that an addition changes or adds."""
    extra = addition.constraint
    if shape["is"] == "block":
        required = {*shape.get("required", ()), *extra.get("required", ())} - {*extra.get("optional", ())}
        joined = {**extra, "required": sorted(required)}
        for name in _LISTS:
            if name in extra:
                present = shape.get(name, ())
                joined[name] = [*present, *(row for row in extra[name] if row not in present)]
        return joined
    both = extra.keys() & shape.keys() if addition.careful else set()
    joined = {name: value for name, value in extra.items() if name not in both}
    for name in both & _NARROWER.keys():
        joined[name] = _NARROWER[name](shape[name], extra[name])
    if "enum" in both and "closed" in extra:
        joined["enum"] = extra["enum"] if extra["closed"] else sorted({*shape["enum"], *extra["enum"]})
    return joined


def _expanded(rows: Mapping[str, Any] | str, *, careful: bool) -> Iterator[Addition]:
    """Yield the additions in rows by path; a name stands for the rows of a part, or for a form.

    A question mark in a path marks a careful addition.
    """
    if isinstance(rows, str):
        content = _by_hand()
        rows = content["parts"].get(rows) or {"": content["forms"][rows]}
    for written, extra in rows.items():
        path = _steps(written.replace("?", ""))
        is_careful = careful or "?" in written
        if isinstance(extra, str):
            for row in _expanded(extra, careful=is_careful):
                yield row._replace(path=(*path, *row.path))
        else:
            yield Addition(path, extra, is_careful)


def _steps(path: str) -> tuple[str, ...]:
    """Return the steps of a path, ``nodePools[].labels{}`` or ``{}``."""
    return tuple(step for step in re.split(r"(\[\])|\.", path.replace("{}", _ENTRY)) if step)


def _fits_kind(constraint: Shape, kind: str) -> bool:
    """Whether a constraint is for a kind of input: a form for a string, groups of inputs for a block."""
    if constraint.keys() & {"least", "most"}:
        return kind in ("int32", "int64")
    if constraint.keys() & {*_LISTS, "required"}:
        return kind == "block"
    if "keys_like" in constraint:
        return kind == "map"
    return kind == "text"


@cache
def _forms_by_name(family: str) -> Mapping[str, list[tuple[str, str]]]:
    """Return forms by the name of an input, each with ``{}`` if it is for the values of a map, else with ""."""
    forms: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for written, form in _by_hand()["names"][family].items():
        name = written.removesuffix("{}")
        forms[name].append((written[len(name) :], form))
    return dict(forms)


@cache
def _provider() -> Mapping[str, Mapping[str, Shape]]:
    types: Mapping[str, Mapping[str, Shape]] = _content_of("provider.json")["types"]
    return types


@cache
def _by_hand() -> Mapping[str, Any]:
    """Return the additions written by hand: forms, parts and names, and pairs of a pattern of types and its rows."""
    return _content_of("by_hand.json")


def _content_of(name: str) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return content
