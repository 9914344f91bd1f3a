"""Constraints that upstream documents do not contain: bounds, formats, and relations of inputs.

They are added to the schemas (``Shape``) that are read from the documents. ``make documents`` generates two files of
constraints. ``provider.json`` contains the provider's own checks. ``by_hand.json`` is made from two files in
``tools/documents``: descriptions of Google's types (``described.yaml``), and all others (``additions.yaml``).

Rows map a path to a constraint (``constraints.Constraint``), or to the name of rows or of a format that several types
share. A path names inputs, ``nodePools[].labels{}``: ``[]`` means the entries of a list, ``{}`` the values of a map. A
question mark makes the addition careful: it skips inputs that a type does not have, and never widens a bound.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from training_platform.rules.documents.constraints import Constraint, Shape, constraint

_FOLDER = Path(__file__).parent
_WILD = re.compile(r"[*?[]")
_NARROWER: Mapping[str, Callable[[Any, Any], Any]] = {
    "minimum": max, "min_items": max, "min_length": max, "maximum": min, "max_items": min, "max_length": min,
}  # fmt: skip
_EXTENDED = frozenset({
    "at_least_one", "at_most_one", "cases", "disjoint", "exactly_one", "orders", "unique_by",
})  # lists that an addition extends; # fmt: skip
_OF_BLOCKS = _EXTENDED - {"unique_by"} | {"required"}
_ENTRY = "[]"  # a step from a list or a map to its entries


class Addition(NamedTuple):
    """A constraint that is added at a path, which consists of names of inputs and ``_ENTRY``.

    A ``careful`` addition skips a path that a type does not have, and never widens a bound.
    """

    path: tuple[str, ...]
    limits: Constraint
    careful: bool


class Additions:
    """Adds constraints to the schemas from one source.

    Types share parts of their schemas, so an addition never changes a schema. It copies the schemas on its path.
    """

    def __init__(self, *, strict: bool) -> None:
        self._family = "kubernetes" if strict else "gcp"
        self._copies: dict[tuple[object, ...], Shape] = {}

    def to_type(self, token: str, shape: Shape) -> Shape:
        """Return the schema of a type with all constraints that are added to the type."""
        additions = [
            addition
            for path, limits in _provider().get(token, {}).items()
            for addition in _expanded({path: limits}, careful=True)
        ]
        for pattern, rows in _by_hand().types:
            if token == pattern or (_WILD.search(pattern) and fnmatchcase(token, pattern)):
                additions += _expanded(rows, careful=False)
        return self._copy(shape, additions)

    def by_name(self, shape: Shape) -> Shape:
        """Return a block's schema with the constraints implied by input names: ``timeZone`` is always a time zone."""
        if shape.limits.ignore_names:
            return shape
        forms = _forms_by_name(self._family)
        additions: list[Addition] = []
        for name in shape.fields.keys() & forms.keys():
            inner = shape.fields[name]
            path: tuple[str, ...] = (name,)
            if inner.kind == "list":
                inner = inner.inner
                path = (name, _ENTRY)
            if inner.limits.ignore_names or inner.limits.enum is not None:
                continue
            named = [
                addition._replace(path=path + addition.path)
                for end, form in forms[name]
                for addition in _expanded({end: form}, careful=True)
            ]
            if all(_fits_kind(addition.limits, inner.kind) for addition in named if addition.path == path):
                additions += named
        return self._with(shape, additions)

    def _copy(self, shape: Shape, additions: list[Addition]) -> Shape:
        """Return a copy of a type's schema with additional constraints. Types with the same pods share one copy."""
        # Constraints are read once, so the same one is the same object.
        key = (shape, *((row.path, id(row.limits), row.careful) for row in additions))
        if key not in self._copies:
            self._copies[key] = self._with(shape, additions)
        return self._copies[key]

    def _with(self, shape: Shape, additions: list[Addition]) -> Shape:
        """Return a copy of a schema with additional constraints. Any part that gets constraints is copied, too."""
        limits = shape.limits
        below: dict[str, list[Addition]] = defaultdict(list)
        for addition in additions:
            if addition.path:
                step, *later_steps = addition.path
                below[step].append(addition._replace(path=tuple(later_steps)))
            else:
                limits = _joined(limits, addition)
        entry = shape.entry
        fields = shape.fields
        for step, inner_additions in below.items():
            if step == _ENTRY:
                entry = self._copy(shape.inner, inner_additions)
                continue
            is_careful = all(addition.careful for addition in inner_additions)
            is_open = shape.kind not in ("block", "list", "map")  # values of other kinds in a provider's document
            if step in fields or not (is_careful or is_open):
                fields = {**fields, step: self._copy(fields[step], inner_additions)}
        return replace(shape, limits=limits, entry=entry, fields=fields)


def _joined(limits: Constraint, addition: Addition) -> Constraint:
    """Return the constraint ``limits`` combined with the constraint that an addition adds."""
    present = limits.words()
    joined = addition.limits.words()
    for name in joined.keys() & present.keys():
        if name in _EXTENDED:
            joined[name] = [*present[name], *(row for row in joined[name] if row not in present[name])]
        elif addition.careful and name in _NARROWER:
            joined[name] = _NARROWER[name](present[name], joined[name])
        elif addition.careful and name == "enum" and "closed" in joined:
            joined[name] = joined[name] if joined["closed"] else sorted({*present[name], *joined[name]})
        elif addition.careful and name != "required":
            del joined[name]
    if "required" in joined or "filled_in" in joined:
        required = {*limits.required, *addition.limits.required} - {*addition.limits.filled_in}
        joined["required"] = sorted(required)
    return limits._replace(**joined)


AdditionRows = Mapping[str, "Constraint | str"]


class ByHand(NamedTuple):
    """The additions written by hand: named formats, formats keyed by input name, shared rows, and the rows of types."""

    forms: Mapping[str, Constraint]
    names: Mapping[str, Mapping[str, str]]
    parts: Mapping[str, AdditionRows]
    types: list[tuple[str, AdditionRows | str]]


def _expanded(rows: AdditionRows | str, *, careful: bool) -> Iterator[Addition]:
    """Yield the additions in rows, which are keyed by path.

    The rows, or a constraint in them, may be the name of shared rows or of a format. A question mark in a path marks a
    careful addition.
    """
    if isinstance(rows, str):
        content = _by_hand()
        rows = content.parts.get(rows) or {"": content.forms[rows]}
    for written, extra in rows.items():
        path = _steps(written.replace("?", ""))
        is_careful = careful or "?" in written
        if isinstance(extra, str):
            for row in _expanded(extra, careful=is_careful):
                yield row._replace(path=(*path, *row.path))
        else:
            yield Addition(path, extra, careful=is_careful)


def _steps(path: str) -> tuple[str, ...]:
    """Return the steps of a path such as ``nodePools[].labels{}`` or ``{}``."""
    return tuple(step for step in re.split(r"(\[\])|\.", path.replace("{}", _ENTRY)) if step)


def _fits_kind(limits: Constraint, kind: str) -> bool:
    """Return True if a constraint applies to a kind of input: a format to a string, groups of inputs to a block."""
    words = limits.words().keys()
    if words & {"minimum", "maximum"}:
        return kind in ("int32", "int64")
    if words & _OF_BLOCKS:
        return kind == "block"
    if "property_names" in words:
        return kind == "map"
    return kind == "text"


@cache
def _forms_by_name(family: str) -> Mapping[str, list[tuple[str, str]]]:
    """Return the names of formats, keyed by the name of the inputs to which they apply.

    Each is paired with ``{}`` if it applies to the values of a map, otherwise with an empty string.
    """
    forms: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for written, form in _by_hand().names[family].items():
        name = written.removesuffix("{}")
        forms[name].append((written[len(name) :], form))
    return dict(forms)


@cache
def _provider() -> Mapping[str, AdditionRows]:
    return {token: _rows(rows) for token, rows in _content_of("provider.json")["types"].items()}


@cache
def _by_hand() -> ByHand:
    return by_hand(_content_of("by_hand.json"))


def by_hand(content: Mapping[str, Any]) -> ByHand:
    """Return the additions in the content of a file. Raises ValueError for an unknown keyword in a constraint."""
    return ByHand(
        forms={name: constraint(form) for name, form in content["forms"].items()},
        names=content["names"],
        parts={name: _rows(rows) for name, rows in content["parts"].items()},
        types=[(pattern, rows if isinstance(rows, str) else _rows(rows)) for pattern, rows in content["types"]],
    )


def _rows(rows: Mapping[str, Any]) -> AdditionRows:
    return {path: row if isinstance(row, str) else constraint(row) for path, row in rows.items()}


def _content_of(name: str) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return content
