"""The effects of a change on data, jobs, promises, protection and access, according to ``effects.yaml``.

The table is used wherever a resource is known before and after a change: in a comparison with git or with a stack's
state, and in the preview of any program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal

from training_platform.catalog.reading import DataPosition, build, read_file
from training_platform.checks.effect_kinds import Effect, EffectKind
from training_platform.resources.resource_types import RESOURCE_TYPES, general_path

_FILE = Path(__file__).with_suffix(".yaml")
_POSITION = re.compile(r"\[[^\]]*\]")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_PUBLIC = ("allUsers", "allAuthenticatedUsers", "system:unauthenticated", "system:anonymous", "0.0.0.0/0", "::/0", "*")


@dataclass(frozen=True, kw_only=True)
class EffectRow:
    """A row of the table: the effect of changing the inputs ``of``, if the change meets a condition in ``when``."""

    effect: EffectKind
    says: str
    first: str = ""
    source: str = ""
    of: tuple[str, ...] = ("*",)
    when: tuple[str, ...] = ("any",)
    section: Literal["environment", "team"] | None = None

    def fits(self, path: str, old: Any, new: Any) -> bool:
        """Return True if the row applies to a change. The path contains no positions in lists."""
        return any(_pattern(of).fullmatch(path) for of in self.of) and any(_fits(when, old, new) for when in self.when)


@dataclass(frozen=True, kw_only=True)
class TypeEffects:
    """The effects of changes to resources of one type: ``lost`` if one is deleted, ``added`` if one is created.

    ``replaced`` is the effect of replacing a resource, if that differs from the effect of deleting it.
    """

    lost: EffectRow
    replaced: EffectRow | None = None
    added: EffectRow | None = None
    inputs: tuple[EffectRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EffectTable:
    """The whole content of ``effects.yaml``."""

    sources: dict[str, str]
    options: tuple[EffectRow, ...]
    every: tuple[EffectRow, ...]
    types: dict[str, TypeEffects]
    fields: tuple[EffectRow, ...]


@cache
def effect_table() -> EffectTable:
    """Return the table, which is read at the first call."""
    return build(EffectTable, read_file(_FILE), DataPosition(_FILE), {})


def effect_of_loss(resource_type: str) -> Effect:
    """Return the effect of deleting a resource. If its type is not in the table, its contents are lost."""
    row = _type_effects(resource_type)
    if row is None:
        return Effect(
            "data", "its contents may be lost: the table of effects has no row for its type", first="look into it"
        )
    return _effect(row.lost)


def effect_of_replacement(resource_type: str) -> Effect:
    """Return the effect of replacing a resource. If it protects something, its replacement protects this as well."""
    row = _type_effects(resource_type)
    if row and row.replaced:
        return _effect(row.replaced)
    lost = effect_of_loss(resource_type)
    if lost.kind in ("protection", "opens"):
        return Effect("none", "the new resource has the same effect")
    return lost


def effect_of_addition(resource_type: str, inputs: Mapping[str, Any]) -> Effect:
    """Return the effect of a new resource. A grant to everybody has the effect ``opens``."""
    row = _type_effects(resource_type)
    if row is None or row.added is None:
        return Effect("none", "it is new")
    if any(_fits("public", None, value) for value in inputs.values()):
        return Effect(
            "opens", "everybody gets access", first="list only the members or the address ranges that need access"
        )
    return _effect(row.added)


def effect_of_input(resource_type: str, path: str, old: Any, new: Any) -> Effect:
    """Return the effect of an input that changes without a replacement; ``unknown`` if the table has no row for it."""
    plain = _POSITION.sub("", path)
    for row in _input_rows(resource_type):
        if row.fits(plain, old, new):
            return _effect(row)
    return Effect("unknown", "the table of effects has no row for this input", first="look into it")


def effects_of_field(section: str, path: str, old: Any, new: Any) -> list[Effect]:
    """Return the effects that a field itself has, from the first row of the table that matches.

    Most fields have effects only through the resources that they change. If a list gains one member and loses another,
    there are two effects: access is granted and withdrawn.
    """
    effects: dict[EffectKind, Effect] = {}
    for row in effect_table().fields:
        if row.section not in (section, None) or not row.fits(_POSITION.sub("", path), old, new):
            continue
        if not effects or {row.effect, *effects} == {"grants", "revokes"}:
            effects.setdefault(row.effect, _effect(row))
    return list(effects.values())


def kind_name(resource_type: str) -> str:
    """Return the noun for resources of a type."""
    row = RESOURCE_TYPES.get(resource_type)
    return row.kind if row else resource_type.rpartition(":")[2]


@cache
def type_rank(resource_type: str) -> int:
    """Return a type's position in the table, the most serious first. A missing type comes before all others."""
    names = enumerate(effect_table().types)
    return next((rank for rank, name in names if _pattern(name).fullmatch(resource_type)), -1)


def is_decided(resource_type: str, path: str) -> bool:
    """Return True if any row of the table applies to an input."""
    plain = _POSITION.sub("", general_path(path))
    return any(_pattern(pattern).fullmatch(plain) for row in _input_rows(resource_type) for pattern in row.of)


def _type_effects(resource_type: str) -> TypeEffects | None:
    rank = type_rank(resource_type)
    return None if rank < 0 else list(effect_table().types.values())[rank]


def _input_rows(resource_type: str) -> Sequence[EffectRow]:
    table = effect_table()
    row = _type_effects(resource_type)
    of_type = row.inputs if row else ()
    return (*table.options, *of_type, *table.every)


def _effect(row: EffectRow) -> Effect:
    return Effect(kind=row.effect, says=row.says, first=row.first, source=effect_table().sources.get(row.source, ""))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)


def _fits(when: str, old: Any, new: Any) -> bool:
    """Return True if a change meets a condition. A value of None is absent."""
    if when.startswith("to "):
        return str(new) == when.removeprefix("to ")
    return _WHEN[when](old, new)


def _lost(old: Any, new: Any) -> set[str]:
    """Return the items of a list, or of the lists in a mapping, that the new value no longer has."""
    return set(_items(old)) - set(_items(new))


def _grows(old: Any, new: Any) -> bool | None:
    """Return whether a quantity becomes larger; None if it is not a quantity or does not change."""
    before = _number(old)
    after = _number(new)
    if before is None or after is None or before == after:
        return None
    return after > before


_WHEN: Mapping[str, Callable[[Any, Any], bool]] = {
    "any": lambda _old, _new: True,
    "added": lambda old, _new: old is None,
    "removed": lambda _old, new: new is None,
    "set": lambda old, new: bool(new) and not old,
    "cleared": lambda old, new: bool(old) and not new,
    "fewer": lambda old, new: isinstance(old, list | tuple) and bool(_lost(old, new)),
    "more": lambda old, new: isinstance(new, list | tuple) and bool(_lost(new, old)),
    "public": lambda old, new: not _lost(new, old).isdisjoint(_PUBLIC),
    "lower": lambda old, new: _grows(old, new) is False,
    "higher": lambda old, new: _grows(old, new) is True,
}


def _items(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _items(item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _items(item)
    elif value is not None:
        yield str(value)


def _number(value: Any) -> float | None:
    """Return a quantity as a number, or None. It may have a unit, as in 86400s, and a date counts as its day."""
    if isinstance(value, bool) or value is None:
        return None
    if _DATE.fullmatch(str(value)):
        return date.fromisoformat(str(value)).toordinal()
    match = _NUMBER.match(str(value))
    return float(match[0]) if match else None
