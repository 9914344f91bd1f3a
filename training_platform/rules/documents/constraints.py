"""Constraints on values, as typed data. They come from upstream documents and from our own additions.

A ``Shape`` is the schema of a value. It refers to the shapes of its parts. Types share shapes, so a shape is never
changed: an addition copies it. Files use the keywords of JSON Schema if it has one for a constraint, in camel case,
such as ``minLength``. The shapes in a file refer to each other by index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from training_platform.config.reading.section import article

ShapeKind = Literal[
    "any", "block", "flag", "int-or-text", "int32", "int64", "list", "map", "number", "output", "quantity", "text",
    "uint32", "uint64",
]  # fmt: skip
Names = Sequence[str]
Values = Mapping[str, Sequence[Any]]
Number = int | float


class Order(NamedTuple):
    """A constraint on two inputs: ``smaller`` must not exceed ``larger``.

    If ``strictly`` is set, they must not be equal either. ``default`` is used as the value of ``larger`` if that is
    missing. With ``zero_is_no_bound``, a ``larger`` of 0 sets no bound.
    """

    smaller: str
    larger: str
    strictly: bool = False
    zero_is_no_bound: bool = False
    default: int | None = None


class Case(NamedTuple):
    """Additional constraints on a block whose inputs have one of the values in ``when``.

    In ``when``, null means a missing input and ``<written>`` any value. Inputs are named by their paths in the block.

    - ``forbidden`` inputs must be missing.
    - ``at_least_one`` lists inputs of which at least one must be set.
    - ``enum`` contains the only allowed values of an input; ``*`` matches any string.
    - ``doubted_enum`` is like ``enum`` but causes only a warning.
    - ``not_`` contains refused values.
    - Bounds, ``pattern`` and ``max_items`` are as in ``Constraint``.
    - ``format`` is the format of each entry of a list.
    """

    when: Values
    required: Names = ()
    forbidden: Names = ()
    at_least_one: Names = ()
    enum: Values = {}
    doubted_enum: Values = {}
    not_: Values = {}
    minimum: Mapping[str, Any] = {}
    maximum: Mapping[str, Any] = {}
    pattern: Mapping[str, str] = {}
    max_items: Mapping[str, int] = {}
    format: Mapping[str, str] = {}


class Constraint(NamedTuple):
    """The constraints on a value other than its kind, from a document or from one of our additions.

    Numbers, and strings with a unit such as ``90s`` or ``2Gi``:

    - ``minimum``, ``maximum``, ``multiple_of``
    - ``also_allowed``, a number outside these bounds

    All values:

    - ``enum``. Any other string is an error if ``closed``; otherwise only a misspelled string is an error. Any
      other number is an error.

    Strings:

    - the length, ``pattern``, and ``format`` (one of ``scalars.FORMS``)
    - ``doubted_format``, a format that causes only a warning
    - ``alike``, the difference that the provider ignores when it compares two strings: letter ``case``, or a
      ``link`` before the name

    Lists and maps:

    - the number of entries
    - ``property_names``, the pattern of a map's keys
    - ``contains``, an entry or key that must exist unless the list or map is empty
    - ``unique_items``, if the entries of a list must differ
    - ``unique_by``, inputs of which at least one must differ between the entries of a list
    - ``alone``, an entry that must be the only one
    - ``exclusive``, pairs of entries that exclude each other

    Blocks:

    - ``required`` inputs
    - ``filled_in`` inputs, which a document requires and a server fills in
    - groups of inputs with the number of inputs that must be set
    - ``orders``
    - ``disjoint`` pairs of lists or maps
    - ``cases``
    - ``ignore_names``, if the names of inputs imply no formats in this block
    """

    minimum: Number | str | None = None
    maximum: Number | str | None = None
    multiple_of: Number | str | None = None
    also_allowed: Number | None = None
    enum: Sequence[Any] | None = None
    closed: bool | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    doubted_format: str | None = None
    alike: Literal["case", "link"] | None = None
    min_items: int | None = None
    max_items: int | None = None
    property_names: str | None = None
    contains: str | None = None
    unique_items: bool = False
    unique_by: Sequence[Names] = ()
    alone: str | None = None
    exclusive: Sequence[Names] = ()
    required: Names = ()
    filled_in: Names = ()
    exactly_one: Sequence[Names] = ()
    at_most_one: Sequence[Names] = ()
    at_least_one: Sequence[Names] = ()
    orders: Sequence[Order] = ()
    disjoint: Sequence[Names] = ()
    cases: Sequence[Case] = ()
    ignore_names: bool = False

    def words(self) -> dict[str, Any]:
        """Return the constraints that are set, keyed by attribute."""
        return {name: value for name, value in self._asdict().items() if value != _DEFAULTS[name]}


_DEFAULTS: Final = Constraint._field_defaults
FREE: Final = Constraint()
"""A constraint that allows every value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shape:
    """The schema of a value: its kind, the schemas of its parts, and its limits.

    A block has ``fields``, and accepts other inputs if it is ``is_open``. ``entry`` is the shape of a list's entries or
    of a map's values. The other attributes exist only in CustomResourceDefinitions. Null is allowed if ``nullable``. A
    value must match all shapes in ``all_of``, at least one in ``any_of``, exactly one in ``one_of``, and not ``not_``.
    """

    kind: ShapeKind
    fields: Mapping[str, Shape] = field(default_factory=dict)
    entry: Shape | None = None
    is_open: bool = False
    nullable: bool = False
    all_of: Sequence[Shape] = ()
    any_of: Sequence[Shape] = ()
    one_of: Sequence[Shape] = ()
    not_: Shape | None = None
    limits: Constraint = FREE

    @property
    def inner(self) -> Shape:
        """The shape of an entry of the list or map."""
        return self.entry or ANY


ANY: Final = Shape(kind="any")
OPEN: Final = Shape(kind="block", is_open=True)


class ShapeRows:
    """The shapes of a file, which are read when they are needed."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows
        self._shapes: dict[int, Shape] = {}

    def shape(self, number: int) -> Shape:
        """Return the shape at an index."""
        if number not in self._shapes:
            row = dict(self._rows[number])
            kind = row.pop("is")
            fields = {name: self.shape(inner) for name, inner in row.pop("fields", {}).items()}
            entry = self.shape(row.pop("of")) if "of" in row else None
            is_open = row.pop("open", False)
            limits = constraint(row) if row else FREE
            self._shapes[number] = Shape(kind=kind, fields=fields, entry=entry, is_open=is_open, limits=limits)
        return self._shapes[number]


def constraint(row: Mapping[str, Any]) -> Constraint:
    """Return the constraint in a row of a file. Raises ValueError for an unknown keyword."""
    attributes = _attributes(row, Constraint)
    if "property_names" in attributes:
        attributes["property_names"] = attributes["property_names"]["pattern"]
    if "orders" in attributes:
        attributes["orders"] = [Order(**_attributes(order, Order)) for order in attributes["orders"]]
    if "cases" in attributes:
        attributes["cases"] = [Case(**_attributes(case, Case)) for case in attributes["cases"]]
    return Constraint(**attributes)


def _attributes(row: Mapping[str, Any], kind: type[Constraint | Case | Order]) -> dict[str, Any]:
    attributes = {}
    name_of_kind = kind.__name__.lower()
    for word, value in row.items():
        name = _ATTRIBUTES.get(word) or _attribute(word)
        if name not in kind._fields:
            raise ValueError(f"{word} is not a word of {article(name_of_kind)} {name_of_kind}")
        attributes[name] = value
    return attributes


@cache
def _attribute(word: str) -> str:
    """Return the name of the attribute for a keyword in a file: ``min_length`` for ``minLength``."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", word)


# Words whose attribute has another name; a map's bounds are those of a list.
_ATTRIBUTES: Final = {"not": "not_", "minProperties": "min_items", "maxProperties": "max_items"}
