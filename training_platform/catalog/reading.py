"""Reading data files: YAML with positions of mistakes, and plain values into the catalogue's types.

``build`` knows no type by name. It follows the annotations of a dataclass, so a field that is added there may be
written in the data files, and nothing else may.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import MISSING, fields
from datetime import date
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import yaml

from training_platform.catalog.nearest import find_nearest

T = TypeVar("T")
Plain = dict[str, Any]  # what YAML holds; nothing is known of a value until ``build`` has looked at it

# The C parser is ten times as fast, but a PyYAML built without libyaml has only the other.
_Fastest: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class CatalogError(Exception):
    """A data file of the catalogue is wrong; the message names the file, the key, and what is allowed."""


class Place(NamedTuple):
    """Where a value stands: the data file, and the keys that lead to it."""

    file: Path
    keys: tuple[str, ...] = ()

    def at(self, key: str | int) -> Place:
        """Return the place of a value under this one."""
        return Place(self.file, (*self.keys, str(key)))

    def error(self, problem: str) -> CatalogError:
        """Return the error that reports a problem here."""
        return CatalogError(f"{self.file.name}: {'.'.join(self.keys) or 'the file'}: {problem}")


class _Loader(_Fastest):  # type: ignore[misc] # the base is chosen at run time
    """The safe loader, which refuses a key written twice instead of taking the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        values: dict[Hashable, Any] = super().construct_mapping(node, deep)
        if len(values) < len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a key is written twice", node.start_mark)
        return values


def read_file(path: Path) -> Plain:
    """Return what a data file contains; raises ``CatalogError`` when that is not a YAML mapping."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 # a safe loader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CatalogError(f"{path.name}: {error}") from error
    return mapping(values, Place(path))


def mapping(value: object, place: Place) -> Plain:
    """Return a value that has to be a mapping with text for keys."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise place.error(f"{value!r} is not a mapping with names for keys")
    return value


def known_keys(values: Iterable[str], allowed: Iterable[str], place: Place) -> None:
    """Refuse a key that means nothing here."""
    allowed = sorted(allowed)
    for key in values:
        if key not in allowed:
            nearest = find_nearest(key, allowed)
            hint = f" Nearest: {nearest!r}" if nearest else ""
            raise place.error(f"unknown key {key!r}. Allowed: {', '.join(allowed)}.{hint}")


def build(cls: type[T], values: object, place: Place, references: Mapping[type, Mapping[str, object]]) -> T:
    """Return a dataclass from plain values; ``references`` holds the types that are written as a name, and by name."""
    plain = mapping(values, place)
    hints, required = _shape(cast("type", cls))
    known_keys(plain, hints, place)
    if missing := sorted(required - plain.keys()):
        raise place.error(f"lacks {', '.join(missing)}")
    return cls(**{key: _convert(hints[key], value, place.at(key), references) for key, value in plain.items()})


@cache
def _shape(cls: type) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the annotation of each field, and the fields without a default."""
    hints = get_type_hints(cls)
    named = fields(cls)
    required = (f.name for f in named if f.default is MISSING and f.default_factory is MISSING)
    return {f.name: hints[f.name] for f in named}, frozenset(required)


def _convert(hint: Any, value: Any, place: Place, references: Mapping[type, Mapping[str, object]]) -> Any:
    if hint in references:
        return _refer(hint.__name__, references[hint], value, place)
    if hint in _PLAIN:
        return _plain(hint, value, place)
    convert = _CONTAINERS.get(get_origin(hint)) or (_named_tuple if hasattr(hint, "_fields") else build)
    return convert(hint, value, place, references)


# Each type that a value may have, and the types that YAML gives it; a bool, which Python counts as an int, is none.
_PLAIN: dict[Any, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float), bool: (bool,), date: (date,)}


def _plain(hint: type, value: object, place: Place) -> object:
    if type(value) not in _PLAIN[hint]:
        raise place.error(f"{value!r} is not {'a number' if hint is float else f'of type {hint.__name__}'}")
    return float(value) if hint is float and isinstance(value, int) else value


def _refer(kind: str, rows: Mapping[str, object], value: object, place: Place) -> object:
    if isinstance(value, str) and value in rows:
        return rows[value]
    nearest = find_nearest(str(value), rows)
    raise place.error(f"{value!r} names no {kind}." + (f" Nearest: {nearest!r}" if nearest else ""))


def _literal(hint: Any, value: Any, place: Place, _: object) -> Any:
    if value not in get_args(hint):
        raise place.error(f"{value!r} is not one of {', '.join(map(str, get_args(hint)))}")
    return value


def _optional(hint: Any, value: Any, place: Place, references: Mapping[type, Mapping[str, object]]) -> Any:
    if value is None:
        return None
    (inner,) = (part for part in get_args(hint) if part is not NoneType)
    return _convert(inner, value, place, references)


def _tuple(hint: Any, value: Any, place: Place, references: Mapping[type, Mapping[str, object]]) -> Any:
    if not isinstance(value, list):
        raise place.error(f"{value!r} is not a list")
    item = get_args(hint)[0]
    return tuple(_convert(item, part, place.at(number), references) for number, part in enumerate(value))


def _dict(hint: Any, value: Any, place: Place, references: Mapping[type, Mapping[str, object]]) -> Any:
    keys, items = get_args(hint)
    return {
        _convert(keys, key, place, references): _convert(items, part, place.at(key), references)
        for key, part in mapping(value, place).items()
    }


def _named_tuple(hint: Any, value: Any, place: Place, references: Mapping[type, Mapping[str, object]]) -> Any:
    """Build a named tuple, which data files write as a list."""
    hints = get_type_hints(hint)
    if not isinstance(value, list) or len(value) != len(hints):
        raise place.error(f"{value!r} is not a list of {', '.join(hints)}")
    parts = zip(hints.items(), value, strict=True)
    return hint(*(_convert(part, item, place.at(name), references) for (name, part), item in parts))


_CONTAINERS: dict[Any, Callable[..., Any]] = {
    Literal: _literal,
    UnionType: _optional,
    Union: _optional,  # what ``Literal[...] | None`` becomes
    tuple: _tuple,
    dict: _dict,
}
