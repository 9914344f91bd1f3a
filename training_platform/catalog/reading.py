"""Reads data files: parses YAML, reports positions of errors, and converts values to the catalogue's types.

``build`` does not depend on particular types. It follows the annotations of a dataclass: the data files may contain
exactly the fields of the dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import yaml

from training_platform.catalog.nearest import find_nearest

T = TypeVar("T")
Plain = dict[str, Any]  # a value of YAML; its type is unknown until ``build`` has checked it

_TEXT = "tag:yaml.org,2002:str"
_MEANT = frozenset({"y", "yes", "n", "no", "true", "false", "on", "off", "null"})  # in lower case, unquoted
# The C parser is ten times faster, but a PyYAML built without libyaml lacks it.
_Fastest: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def table(module: str, name: str) -> Any:
    """Return the content of the YAML file ``name`` in a module's folder; ``module`` is the module's ``__file__``."""
    return yaml.load(Path(module).with_name(name).read_text(encoding="utf-8"), Loader=_Fastest)  # noqa: S506 # a safe one


class CatalogError(Exception):
    """A data file of the catalogue is invalid. The message names the file, the key, and the allowed values."""


class DataPosition(NamedTuple):
    """The position of a value: the data file that contains it, and the keys that lead to it."""

    file: Path
    keys: tuple[str, ...] = ()

    def at(self, key: str | int) -> DataPosition:
        """Return the position of the entry that is under a key or index of this value."""
        return DataPosition(self.file, (*self.keys, str(key)))

    def error(self, problem: str) -> CatalogError:
        """Return an error that reports a problem at this position."""
        return CatalogError(f"{self.file.name}: {'.'.join(self.keys) or 'the file'}: {problem}")


class _Loader(_Fastest):  # type: ignore[misc] # the base is chosen at run time
    """YAML's safe loader, except that a repeated key is an error instead of replacing the earlier value.

    Mappings, lists and strings make up nearly all of the content. Constructing them here takes half of YAML's time.
    """

    def construct_document(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            values = {self._key(key): self.construct_document(value) for key, value in node.value}
            if len(values) < len(node.value):
                raise yaml.constructor.ConstructorError(None, None, "a key is written twice", node.start_mark)
            return values
        if isinstance(node, yaml.SequenceNode):
            return [self.construct_document(item) for item in node.value]
        return node.value if node.tag == _TEXT else self.construct_object(node)

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        """Return the tag of a node. A plain word is a string, and is not tested against YAML's patterns."""
        if kind is yaml.ScalarNode and value[:1].isalpha() and value.lower() not in _MEANT:
            return _TEXT
        return str(super().resolve(kind, value, implicit))

    def _key(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key is a list or a mapping", node.start_mark)
        return self.construct_document(node)


def read_file(path: Path) -> Plain:
    """Return the content of a data file. Raises ``CatalogError`` if it is not a YAML mapping."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 # a safe loader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CatalogError(f"{path.name}: {error}") from error
    return mapping(values, DataPosition(path))


def mapping(value: object, place: DataPosition) -> Plain:
    """Return a value that must be a mapping with string keys."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise place.error(f"{value!r} is not a mapping with names as keys")
    return value


def known_keys(values: Iterable[str], allowed: Iterable[str], place: DataPosition) -> None:
    """Raise ``CatalogError`` for an unknown key."""
    allowed = sorted(allowed)
    for key in values:
        if key not in allowed:
            nearest = find_nearest(key, allowed)
            hint = f" Nearest: {nearest!r}" if nearest else ""
            raise place.error(f"unknown key {key!r}. Allowed: {', '.join(allowed)}.{hint}")


def build(cls: type[T], values: object, place: DataPosition, references: Mapping[type, Mapping[str, object]]) -> T:
    """Return an instance of a dataclass, made from plain values.

    ``references`` contains the rows, keyed by name, of each type whose values are written as the name of a row.
    """
    plain = mapping(values, place)
    kinds, required = _shape(cast("type", cls))
    known_keys(plain, kinds, place)
    if missing := sorted(required - plain.keys()):
        raise place.error(f"lacks {', '.join(missing)}")
    return cls(**{key: _convert(kinds[key], value, place, key, references) for key, value in plain.items()})


class _Kind(NamedTuple):
    """How a value is converted to an annotated type. A value whose type is in ``right`` is used without conversion."""

    hint: Any
    right: tuple[type, ...]
    convert: Callable[..., Any]


@cache
def _shape(cls: type) -> tuple[dict[str, _Kind], frozenset[str]]:
    """Return how each field is converted, and the names of the fields without a default."""
    hints = get_type_hints(cls)
    named = fields(cls)
    required = (f.name for f in named if f.default is MISSING and f.default_factory is MISSING)
    return {f.name: _kind(hints[f.name]) for f in named}, frozenset(required)


@cache
def _kind(hint: Any) -> _Kind:
    if hint in _PLAIN:
        return _Kind(hint, (hint,), convert=_plain)
    if get_origin(hint) in (UnionType, Union):  # the second is the origin of ``Literal[...] | None``
        (inner,) = (_kind(part) for part in get_args(hint) if part is not NoneType)
        return inner._replace(right=(*inner.right, NoneType))
    return _Kind(hint, (), convert=_CONTAINERS.get(get_origin(hint), _named))


def _convert(
    kind: _Kind, value: Any, above: DataPosition, key: str | int, references: Mapping[type, Mapping[str, object]]
) -> Any:
    """Return a key's value, converted if necessary. Positions are created only for values that need conversion."""
    return value if type(value) in kind.right else kind.convert(kind.hint, value, above.at(key), references)


# The types of values, with YAML's types for them; a bool, which Python counts as an int, is not a number.
_PLAIN: dict[Any, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float), bool: (bool,), date: (date,)}


def _plain(hint: type, value: object, place: DataPosition, _: object) -> object:
    if type(value) not in _PLAIN[hint]:
        raise place.error(f"{value!r} is not {'a number' if hint is float else f'of type {hint.__name__}'}")
    return float(value) if hint is float and isinstance(value, int) else value


def _named(hint: Any, value: Any, place: DataPosition, references: Mapping[type, Mapping[str, object]]) -> Any:
    """Return the row that a value names. If a type's values have no names, build the dataclass or named tuple."""
    if hint not in references:
        if hasattr(hint, "_fields"):
            return _named_tuple(hint, value, place, references)
        return build(hint, value, place, references)
    rows = references[hint]
    if isinstance(value, str) and value in rows:
        return rows[value]
    nearest = find_nearest(str(value), rows)
    raise place.error(f"{value!r} names no {hint.__name__}." + (f" Nearest: {nearest!r}" if nearest else ""))


def _literal(hint: Any, value: Any, place: DataPosition, _: object) -> Any:
    if value not in get_args(hint):
        raise place.error(f"{value!r} is not one of {', '.join(map(str, get_args(hint)))}")
    return value


def _tuple(hint: Any, value: Any, place: DataPosition, references: Mapping[type, Mapping[str, object]]) -> Any:
    if not isinstance(value, list):
        raise place.error(f"{value!r} is not a list")
    kind = _kind(get_args(hint)[0])
    return tuple(_convert(kind, part, place, number, references) for number, part in enumerate(value))


def _dict(hint: Any, value: Any, place: DataPosition, references: Mapping[type, Mapping[str, object]]) -> Any:
    keys, items = map(_kind, get_args(hint))
    return {
        keys.convert(keys.hint, key, place, references): _convert(items, part, place, key, references)
        for key, part in mapping(value, place).items()
    }


def _named_tuple(hint: Any, value: Any, place: DataPosition, references: Mapping[type, Mapping[str, object]]) -> Any:
    """Build a named tuple, which data files write as a list."""
    hints = get_type_hints(hint)
    if not isinstance(value, list) or len(value) != len(hints):
        raise place.error(f"{value!r} is not a list of {', '.join(hints)}")
    parts = zip(hints.items(), value, strict=True)
    return hint(*(_convert(_kind(part), item, place, name, references) for (name, part), item in parts))


_CONTAINERS: dict[Any, Callable[..., Any]] = {Literal: _literal, tuple: _tuple, dict: _dict}


_FOLDER = files("training_platform.catalog") / "documents"


def own_document(api: str, version: str) -> dict[str, Any] | None:
    """Return this project's own document for a version of an API, or None if Google's client includes one."""
    path = _FOLDER / f"{api}.{version}.yaml"
    if not path.is_file():
        return None
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document
