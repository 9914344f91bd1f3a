"""Where an input of the provider stands in its API's message: by the discovery documents, and the names that differ.

The documents are those that google-api-python-client ships (extra ``documents``), read when first asked for.
``paths.yaml`` has the names that differ, which are fewer than it seems.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from training_platform.catalog.api_documents import own_document

Json = Mapping[str, Any]
_FILE = Path(__file__).with_name("paths.yaml")
_OUTPUT_ONLY = re.compile(r"^\W*output[- ]only", re.IGNORECASE)


class Field(NamedTuple):
    """A field of an API's document: its schema, and the document that it stands in."""

    schema: Json
    document: str

    def below(self, name: str) -> tuple[str, Field] | None:
        """Return a field below this one, of a list's entries too, with its name as the API spells it."""
        own = self.resolved()
        fields = own.schema.get("properties", {})
        key = name if name in fields else next((each for each in fields if each.lower() == name.lower()), None)
        return (key, Field(fields[key], self.document)) if key else None

    def resolved(self) -> Field:
        """Return the message that this field holds, or whose list it is."""
        schema = self.schema
        while (
            inner := schema.get("items")
            or values_of(schema)
            or _document(self.document)["schemas"].get(schema.get("$ref"))
        ):
            schema = inner
        return Field(schema, self.document)

    @property
    def message(self) -> str:
        """The service and the name of the message that it holds, ``container.NodePool``."""
        return f"{self.document.partition('.')[0]}.{self.resolved().schema.get('id', 'unnamed')}"

    @property
    def output_only(self) -> bool:
        """Whether only the API writes it, by the document."""
        return bool(self.schema.get("readOnly")) or bool(_OUTPUT_ONLY.match(self.schema.get("description", "")))


class Found(NamedTuple):
    """A field with its path below the message that was asked; the path is empty where it is the message itself."""

    path: tuple[str, ...]
    field: Field


def root(token: str) -> Field | None:
    """Return the message behind a type of resource; None for one whose API's document is not to be had."""
    place = paths()["types"].get(token)
    if place is None:
        return None
    document, _, message = place.partition(" ")
    return Field({"$ref": message}, document)


def field_of(name: str, field: Field) -> Found | None:
    """Return the field that an input of a block is in the block's message."""
    renamed = paths()["names"].get(field.message, {})
    candidates = [renamed[name]] if name in renamed else _spellings(name)
    return next((found for path in candidates if (found := _below(field, path))), None)


@cache
def paths() -> Any:
    """Return the document of each type, and the names that differ, as the file has them."""
    return yaml.safe_load(_FILE.read_text(encoding="utf-8"))


def values_of(schema: Json) -> Any:
    """Return what a map holds by name: the provider has lists of some, where an entry says its own name."""
    return schema.get("additionalProperties") if "properties" not in schema else None


def _below(field: Field, path: str) -> Found | None:
    """Return the field at a path; the message itself where the provider has a block of its own."""
    keys: list[str] = []
    for name in path.split(".") if path else ():
        found = field.below(name)
        if found is None:
            return None
        key, field = found
        keys.append(key)
    return Found(tuple(keys), field)


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
    own = own_document(*name.split(".", 1))
    return own or json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
