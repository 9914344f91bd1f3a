"""The fields of Google's APIs that a provider's inputs set, according to the APIs' discovery documents.

google-api-python-client includes the documents (extra ``documents``). Each is read when it is first needed.
``paths.yaml`` contains the few names that differ in the provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from training_platform.catalog.reading import own_document
from training_platform.resources.resource_types import RESOURCE_TYPES

_PATHS_FILE: Final = Path(__file__).parent / "data" / "paths.yaml"
_OUTPUT_ONLY: Final = re.compile(r"^\W*output[- ]only", re.IGNORECASE)
LOCATION_INPUTS: Final = frozenset({"project", "location", "region", "zone"})
"""Inputs that belong to a request's path. Fields of the body with the same names are something else."""
Key = str | int  # an entry of a list has its index


class DocumentField(NamedTuple):
    """A field of an API: its schema, and the name of the discovery document that contains it."""

    schema: Mapping[str, Any]
    document: str

    def below(self, name: str) -> tuple[str, DocumentField] | None:
        """Return the field with this name, ignoring letter case, in this field's message, and its name in the API."""
        fields = self.resolved().schema.get("properties", {})
        if name in fields:
            return name, DocumentField(fields[name], self.document)
        for key, schema in fields.items():
            if key.lower() == name.lower():
                return key, DocumentField(schema, self.document)
        return None

    def resolved(self) -> DocumentField:
        """Return the message of this field, which may refer to the message, or be a list or map of messages."""
        schemas = _document(self.document)["schemas"]
        schema = self.schema
        while True:
            inner = schema.get("items") or map_values(schema) or schemas.get(schema.get("$ref"))
            if not inner:
                return DocumentField(schema, self.document)
            schema = inner

    @property
    def message(self) -> str:
        """The service and the name of this field's message, such as ``container.NodePool``."""
        return f"{self.document.partition('.')[0]}.{self.resolved().schema.get('id', 'unnamed')}"

    @property
    def output_only(self) -> bool:
        """Return True if only the API sets this field, according to the document."""
        description = self.schema.get("description", "")
        return bool(self.schema.get("readOnly")) or bool(_OUTPUT_ONLY.match(description))


class ApiField(NamedTuple):
    """A field and its path below a message. The path of the message itself is empty."""

    path: tuple[str, ...]
    field: DocumentField


def root(token: str) -> DocumentField | None:
    """Return the message of a resource type, or None if its API's document is not available."""
    document_and_message = paths()["types"].get(token)
    if document_and_message is None:
        return None
    document, _, message = document_and_message.partition(" ")
    return DocumentField({"$ref": message}, document)


def field_of(name: str, field: DocumentField) -> ApiField | None:
    """Return the API field that a provider input sets in the message ``field``, or None."""
    renamed = paths()["names"].get(field.message, {})
    if name in renamed:
        return _field_at(field, renamed[name])
    for spelling in _spellings(name):
        api_field = _field_at(field, spelling)
        if api_field:
            return api_field
    return None


@cache
def paths() -> Any:
    """Return the content of ``paths.yaml``, with the documents from ``resource_types.yaml`` added to ``types``."""
    table = yaml.safe_load(_PATHS_FILE.read_text(encoding="utf-8"))
    documents = {token: row.document for token, row in RESOURCE_TYPES.items() if token.startswith("gcp:")}
    return {**table, "types": {**table["types"], **documents}}


def map_values(schema: Mapping[str, Any]) -> Any:
    """Return the schema of a map's values, or None if the schema is not a map."""
    if "properties" in schema:
        return None
    return schema.get("additionalProperties")


def _field_at(field: DocumentField, path: str) -> ApiField | None:
    """Return the field at a path below ``field``. With the empty path, this is the message itself."""
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
    """Yield the names that an input may have in the API, where it may be singular instead of plural or vice versa."""
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


class Leaf(NamedTuple):
    """One value of a resource in a plan: its input, such as ``nodeConfig.bootDisk.sizeGb``, and its path in the body.

    A list of plain values is one leaf. A value that is unknown before deployment is kept as it is in the plan.
    """

    name: str
    path: tuple[Key, ...]
    value: Any


def leaves(token: str, inputs: Mapping[str, Any]) -> Iterator[Leaf]:
    """Yield the values of a resource that are sent in the body of the API request."""
    field = root(token)
    if field is None:
        return
    for leaf in _block(inputs, field, "", ()):
        if leaf.name not in LOCATION_INPUTS or leaf.path == (leaf.name,):
            yield leaf


def body_of(values: Iterable[Leaf]) -> dict[str, Any]:
    """Return the request body that contains these leaves."""
    body: dict[str, Any] = {}
    for leaf in values:
        container: Any = body
        for key, next_key in zip(leaf.path, leaf.path[1:], strict=False):
            if isinstance(key, int):
                while len(container) <= key:
                    container.append({})
                container = container[key]
            else:
                container = container.setdefault(key, [] if isinstance(next_key, int) else {})
        container[leaf.path[-1]] = leaf.value
    return body


def _block(inputs: Mapping[str, Any], field: DocumentField, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    for key, value in inputs.items():
        api_field = field_of(key, field)
        if value is not None and api_field is not None:
            input_name = f"{name}.{key}" if name else key
            yield from _value(value, api_field.field, input_name, (*path, *api_field.path))


def _value(value: Any, field: DocumentField, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    if isinstance(value, Mapping):
        yield from _mapping(value, field, name, path)
    elif isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value):
        for index, entry in enumerate(value):
            yield from _entry(entry, index, field, f"{name}[{index}]", path)
    else:
        yield Leaf(name, path, value=value)


def _mapping(value: Mapping[str, Any], field: DocumentField, name: str, path: tuple[Key, ...]) -> Iterator[Leaf]:
    """Yield the values in a block, or in the entries of a map whose keys users choose."""
    if "$ref" not in field.schema and map_values(field.schema):
        for key, entry in value.items():
            yield Leaf(f"{name}.{key}", (*path, key), value=entry)
    elif field.schema.get("type") == "array":  # the provider has one block instead of the list
        yield from _block(value, field, name, (*path, 0))
    else:
        yield from _block(value, field, name, path)


def _entry(
    entry: Mapping[str, Any], index: int, field: DocumentField, name: str, path: tuple[Key, ...]
) -> Iterator[Leaf]:
    """Yield the values in a list entry. If the API has a map in place of the list, one of its inputs is the key."""
    if field.schema.get("type") == "array":
        yield from _block(entry, field, name, (*path, index))
    elif map_values(field.schema) is None:  # a list of one entry, for a block of the API
        yield from _block(entry, field, name, path)
    else:
        key_input = _key_input(entry, field)
        other_inputs = {input_name: value for input_name, value in entry.items() if input_name != key_input}
        yield from _block(other_inputs, field, name, (*path, entry[key_input]))


def _key_input(entry: Mapping[str, Any], field: DocumentField) -> str:
    """Return the name of the input that becomes the key of a map's entry.

    It is ``id``, or the input that is not a field of the message.
    """
    for name in entry:
        if name == "id" or field_of(name, field) is None:
            return name
    raise KeyError(f"no input of {sorted(entry)} is a key of {field.message}")
