"""A planned resource as its API would hold it: every input at its field, by the names of ``fields``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from training_platform.resources.rest.fields import Field, field_of, root, values_of

PLACES = frozenset({"project", "location", "region", "zone"})
"""Inputs that say where something is: they stand in a request's path, and not in a field that reads like them."""
Key = str | int  # of a list's entry its position


class Leaf(NamedTuple):
    """One value of a plan: its input, ``nodeConfig.bootDisk.sizeGb``, and the keys of its field below the body.

    A list of plain values is one leaf. A value that only a deployment tells is as the plan has it.
    """

    name: str
    path: tuple[Key, ...]
    value: Any


def leaves(token: str, inputs: Mapping[str, Any]) -> Iterator[Leaf]:
    """Yield the values of a resource that have a field; those that stand elsewhere in a request have none."""
    if (field := root(token)) is not None:
        yield from (
            each for each in _block(inputs, field, "", ()) if each.name not in PLACES or each.path == (each.name,)
        )


def body_of(values: Iterable[Leaf]) -> dict[str, Any]:
    """Return the body that leaves make, lists as lists."""
    body: dict[str, Any] = {}
    for leaf in values:
        place: Any = body
        for key, after in zip(leaf.path, leaf.path[1:], strict=False):
            empty: Any = [] if isinstance(after, int) else {}
            if isinstance(key, int):
                while len(place) <= key:
                    place.append({})
                place = place[key]
            else:
                place = place.setdefault(key, empty)
        place[leaf.path[-1]] = leaf.value
    return body


def _block(inputs: Mapping[str, Any], field: Field, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    for key, value in inputs.items():
        if value is not None and (found := field_of(key, field)) is not None:
            inner = f"{name}.{key}" if name else key
            yield from _value(value, found.field, inner, (*path, *found.path))


def _value(value: Any, field: Field, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    if isinstance(value, Mapping):
        yield from _mapping(value, field, name, path)
    elif isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in value):
        for index, each in enumerate(value):
            yield from _entry(each, index, field, f"{name}[{index}]", path)
    else:
        yield Leaf(name, path, value)


def _mapping(value: Mapping[str, Any], field: Field, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    """Yield a block, or the entries of a map: keys of that are users' own."""
    if "properties" not in field.schema and "$ref" not in field.schema and values_of(field.schema):
        for key, each in value.items():
            yield Leaf(f"{name}.{key}", (*path, key), each)
    elif field.schema.get("type") == "array":  # the provider takes a single one of a list
        yield from _block(value, field, name, (*path, 0))
    else:
        yield from _block(value, field, name, path)


def _entry(entry: Mapping[str, Any], index: int, field: Field, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    """Yield an entry of a list; where the API has a map instead, the entry says its key."""
    if field.schema.get("type") == "array":
        yield from _block(entry, field, name, (*path, index))
    elif values_of(field.schema) is not None:
        key = next(each for each in entry if field_of(each, field) is None or each == "id")
        rest = {each: value for each, value in entry.items() if each != key}
        yield from _block(rest, field, name, (*path, entry[key]))
    else:  # a list of one, where the API has a block
        yield from _block(entry, field, name, path)
