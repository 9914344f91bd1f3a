"""Documents of Google's resources: the provider's inputs, each with what the discovery document of its API says of it.

Names differ less than it seems: ``paths.yaml`` has those that do, and why an input has no field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import yaml
from pulumi import _types

from tools.documents.provider import Block, block, resource
from tools.documents.shapes import Shape, Shapes, counts, limits
from training_platform.catalog.api_documents import own_document

Json = Mapping[str, Any]
PATHS: Json = yaml.safe_load(Path(__file__).with_name("paths.yaml").read_text(encoding="utf-8"))
_DOCUMENTS = files("googleapiclient.discovery_cache") / "documents"
_OUTPUT = frozenset(PATHS["output"])
_OUTPUT_ONLY = re.compile(r"^\W*output[- ]only", re.IGNORECASE)


class Field(NamedTuple):
    """A field of an API's document: its schema, and the document that it stands in."""

    schema: Json
    document: str

    def below(self, name: str) -> Field | None:
        """Return a field below this one, of a list's entries too."""
        own = self.resolved()
        fields = own.schema.get("properties", {})
        found = fields.get(name) or next((each for key, each in fields.items() if key.lower() == name.lower()), None)
        return Field(found, self.document) if found else None

    def resolved(self) -> Field:
        """Return the message that this field holds, or whose list it is."""
        schema = self.schema
        while (
            inner := schema.get("items")
            or _values(schema)
            or _document(self.document)["schemas"].get(schema.get("$ref"))
        ):
            schema = inner
        return Field(schema, self.document)

    @property
    def message(self) -> str:
        """The service and the name of the message that it holds, ``container.NodePool``."""
        return f"{self.document.partition('.')[0]}.{self.resolved().schema.get('id', 'unnamed')}"


class Reader:
    """Reads types into shapes.

    ``missing`` gathers inputs without a field, ``output`` those whose field only the API writes, by the document;
    ``used`` the renamed ones. All are message and input, ``container.NodePool.cluster``.
    """

    def __init__(self) -> None:
        self.shapes = Shapes()
        self.missing: set[str] = set()
        self.output: set[str] = set()
        self.used: set[str] = set()

    def type(self, token: str) -> int:
        """Return the shape of a type of resource."""
        return self.shapes.number(self._block(resource(token), root(token)))

    def _block(self, inputs: Block, field: Field | None) -> Shape:
        fields = {}
        for name, kind in sorted(inputs.inputs.items()):
            place = f"{field.message}.{name}" if field else name
            found = self._field(name, field)
            fields[name] = self.shapes.number({"is": "output"} if place in _OUTPUT else self._value(kind, found))
        shape: Shape = {"is": "block", "fields": fields}
        return {**shape, "required": inputs.required} if inputs.required else shape

    def _field(self, name: str, field: Field | None) -> Field | None:
        if field is None:
            return None
        message = field.message
        renamed = PATHS["names"].get(message, {})
        if name in renamed:
            self.used.add(f"{message}.{name}")
        candidates = [renamed[name]] if name in renamed else list(_spellings(name))
        found = next((each for path in candidates if (each := _below(field, path))), None)
        if found is None:
            self.missing.add(f"{message}.{name}")
        elif _is_output(found.schema):
            self.output.add(f"{message}.{name}")
        return found

    def _value(self, kind: Any, field: Field | None) -> Shape:
        kind = _types.unwrap_type(kind)
        origin, inner = get_origin(kind), get_args(kind)
        schema = field.schema if field else {}
        if origin in (Sequence, list) or (isinstance(origin, type) and issubclass(origin, Sequence)):
            entry = Field(schema.get("items") or _values(schema) or schema, field.document) if field else None
            return {"is": "list", "of": self.shapes.number(self._value(inner[0], entry)), **counts(schema)}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"is": "map", "of": self.shapes.number(self._value(inner[1], None))}
        if _types.is_input_type(kind):
            return self._block(block(kind), field)
        while schema.get("type") == "array":  # one of a list that the provider takes a single one of
            schema = schema["items"]
        return _scalar(kind, schema)


def _scalar(kind: Any, schema: Json) -> Shape:
    if kind is bool:
        return {"is": "flag"}
    if kind is int:
        width = 64 if "64" in schema.get("format", "") else 32
        return {"is": f"int{width}", **limits(schema)}
    if kind is float:
        return {"is": "number", **limits(schema)}
    if kind is not str:
        return {"is": "any"}
    if schema.get("format") in ("int64", "uint64", "int32", "uint32"):
        return {"is": schema["format"].removeprefix("u"), **limits(schema)}
    if "enum" in schema:
        return {"is": "text", "enum": sorted(schema["enum"])}
    return {"is": "text", **(limits(schema) if schema.get("type") == "string" else {})}


def root(token: str) -> Field | None:
    """Return the message behind a type of resource; None for one whose API's document is not to be had."""
    place = PATHS["types"][token]
    if place is None:
        return None
    document, _, message = place.partition(" ")
    return Field({"$ref": message}, document)


def source() -> dict[str, str]:
    """Return what was read, in which versions."""
    return {each: version(each) for each in ("google-api-python-client", "pulumi-gcp")}


def _below(field: Field, path: str) -> Field | None:
    """Return the field at a path; the message itself where the provider has a block of its own."""
    found: Field | None = field
    for name in path.split(".") if path else ():
        found = found.below(name) if found else None
    return found


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


def _values(schema: Json) -> Any:
    """Return what a map holds by name: the provider has lists of some, where an entry says its own name."""
    return schema.get("additionalProperties") if "properties" not in schema else None


def _is_output(schema: Json) -> bool:
    return bool(schema.get("readOnly")) or bool(_OUTPUT_ONLY.match(schema.get("description", "")))


@cache
def _document(name: str) -> Any:
    own = own_document(*name.split(".", 1))
    return own or json.loads((_DOCUMENTS / f"{name}.json").read_text(encoding="utf-8"))
