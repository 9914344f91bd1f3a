"""The place of a provider's input in its API's message: by the discovery documents, and the names that differ.

The documents are those that google-api-python-client ships (extra ``documents``), read when first asked for.
``paths.yaml`` has the names that differ, which are fewer than it seems.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from training_platform.catalog.reading import own_document
from training_platform.resources.resource_types import RESOURCE_TYPES

_FILE = Path(__file__).parent / "data" / "paths.yaml"
_OUTPUT_ONLY = re.compile(r"^\W*output[- ]only", re.IGNORECASE)


class DocumentField(NamedTuple):
    """A field of an API's document: its schema, and the document itself."""

    schema: Mapping[str, Any]
    document: str

    def below(self, name: str) -> tuple[str, DocumentField] | None:
        """Return a field below this one, of a list's entries too, with its name as the API spells it."""
        fields = self.resolved().schema.get("properties", {})
        key = name if name in fields else next((field for field in fields if field.lower() == name.lower()), None)
        return (key, DocumentField(fields[key], self.document)) if key else None

    def resolved(self) -> DocumentField:
        """Return the message that this field holds, or whose list it is."""
        schema = self.schema
        while (
            inner := schema.get("items")
            or values_of(schema)
            or _document(self.document)["schemas"].get(schema.get("$ref"))
        ):
            schema = inner
        return DocumentField(schema, self.document)

    @property
    def message(self) -> str:
        """The service and the name of the message that it holds, ``container.NodePool``."""
        return f"{self.document.partition('.')[0]}.{self.resolved().schema.get('id', 'unnamed')}"

    @property
    def output_only(self) -> bool:
        """Whether only the API writes it, by the document."""
        return bool(self.schema.get("readOnly")) or bool(_OUTPUT_ONLY.match(self.schema.get("description", "")))


class ApiField(NamedTuple):
    """A field with its path below the message that was asked; the path is empty where it is the message itself."""

    path: tuple[str, ...]
    field: DocumentField


def root(token: str) -> DocumentField | None:
    """Return the message behind a type of resource, or None if its API's document is not available."""
    place = paths()["types"].get(token)
    if place is None:
        return None
    document, _, message = place.partition(" ")
    return DocumentField({"$ref": message}, document)


def field_of(name: str, field: DocumentField) -> ApiField | None:
    """Return the field of a block's message that an input of the block sets, or None."""
    renamed = paths()["names"].get(field.message, {})
    candidates = [renamed[name]] if name in renamed else _spellings(name)
    for path in candidates:
        place = _below(field, path)
        if place:
            return place
    return None


@cache
def paths() -> Any:
    """Return the document of each type, also of ``resource_types.yaml``, and names that differ as the file has them."""
    table = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    documents = {token: row.document for token, row in RESOURCE_TYPES.items() if token.startswith("gcp:")}
    return {**table, "types": {**table["types"], **documents}}


def values_of(schema: Mapping[str, Any]) -> Any:
    """Return the schema of a map's values: the provider has lists of some, where an entry holds its own name."""
    return schema.get("additionalProperties") if "properties" not in schema else None


def _below(field: DocumentField, path: str) -> ApiField | None:
    """Return the field at a path; an empty path is the message itself, if the provider has a block of its own."""
    keys: list[str] = []
    names = path.split(".") if path else []
    for name in names:
        inner = field.below(name)
        if inner is None:
            return None
        key, field = inner
        keys.append(key)
    return ApiField(tuple(keys), field)


def _spellings(name: str) -> Iterator[str]:
    """Yield how the API may spell an input: lists have other numbers here and there."""
    yield name
    if name.endswith("ies"):
        yield f"{name[:-3]}y"
    if name.endswith("s"):
        yield name[:-1]
    if name.endswith("es"):
        yield name[:-2]
    yield f"{name}s"
    yield f"{name}es"
    if name.endswith("y"):
        yield f"{name[:-1]}ies"


@cache
def _document(name: str) -> Any:
    folder = files("googleapiclient.discovery_cache") / "documents"
    document = own_document(*name.split(".", 1))
    return document or json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


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
    """Yield the values of a resource that have a field; values elsewhere in a request have none."""
    if (field := root(token)) is not None:
        yield from (
            leaf for leaf in _block(inputs, field, "", ()) if leaf.name not in PLACES or leaf.path == (leaf.name,)
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


def _block(inputs: Mapping[str, Any], field: DocumentField, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    for key, value in inputs.items():
        if value is not None and (place := field_of(key, field)) is not None:
            inner = f"{name}.{key}" if name else key
            yield from _value(value, place.field, inner, (*path, *place.path))


def _value(value: Any, field: DocumentField, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    if isinstance(value, Mapping):
        yield from _mapping(value, field, name, path)
    elif isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value):
        for index, entry in enumerate(value):
            yield from _entry(entry, index, field, f"{name}[{index}]", path)
    else:
        yield Leaf(name, path, value)


def _mapping(value: Mapping[str, Any], field: DocumentField, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    """Yield a block, or the entries of a map, whose keys are users' own."""
    if "properties" not in field.schema and "$ref" not in field.schema and values_of(field.schema):
        for key, entry in value.items():
            yield Leaf(f"{name}.{key}", (*path, key), entry)
    elif field.schema.get("type") == "array":  # the provider takes a single entry of a list
        yield from _block(value, field, name, (*path, 0))
    else:
        yield from _block(value, field, name, path)


def _entry(
    entry: Mapping[str, Any], index: int, field: DocumentField, name: str, path: tuple[Key, ...]
) -> Iterator[Leaf]:
    """Yield an entry of a list; where the API has a map instead, the entry holds its key."""
    if field.schema.get("type") == "array":
        yield from _block(entry, field, name, (*path, index))
    elif values_of(field.schema) is not None:
        key = next(key_name for key_name in entry if field_of(key_name, field) is None or key_name == "id")
        rest = {key_name: value for key_name, value in entry.items() if key_name != key}
        yield from _block(rest, field, name, (*path, entry[key]))
    else:  # a list of one, where the API has a block
        yield from _block(entry, field, name, path)
