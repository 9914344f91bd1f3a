"""Documents of Google's resources: the provider's inputs, each with what the discovery document of its API says of it.

``paths.yaml`` says why an input has no field; ``resources.rest.fields`` finds the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, get_args, get_origin

from pulumi import _types

from tools.documents.prose import said
from tools.documents.provider import Block, block, resource
from training_platform.catalog.reading import table
from training_platform.resources.rest import Field, field_of, paths, root, values_of
from training_platform.rules.documents.openapi import Shape, Shapes, counts, limits

Json = Mapping[str, Any]
PATHS: Json = table(__file__, "paths.yaml")
_OUTPUT = frozenset(PATHS["output"])
_WIDTHS: Mapping[str, Shape] = {
    "int32": {"is": "int32"}, "int64": {"is": "int64"}, "uint32": {"is": "int64", "least": 0, "most": 2**32 - 1},
    "uint64": {"is": "int64", "least": 0},
}  # fmt: skip


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
        for name in sorted(inputs.inputs):
            place = f"{field.message}.{name}" if field else name
            found = self._field(name, field)
            shape: Shape = {"is": "output"} if place in _OUTPUT else self._described(inputs, name, found)
            fields[name] = self.shapes.number(shape)
        whole: Shape = {"is": "block", "fields": fields}
        return {**whole, "required": inputs.required} if inputs.required else whole

    def _field(self, name: str, field: Field | None) -> Field | None:
        if field is None:
            return None
        message = field.message
        if name in paths()["names"].get(message, {}):
            self.used.add(f"{message}.{name}")
        found = field_of(name, field)
        if found is None:
            self.missing.add(f"{message}.{name}")
            return None
        if found.field.output_only:
            self.output.add(f"{message}.{name}")
        return found.field

    def _described(self, inputs: Block, name: str, field: Field | None) -> Shape:
        """Return the shape of an input, with what prose says: the API's before the provider's."""
        shape = self._value(inputs.inputs[name], field)
        kind = "list" if shape["is"] == "map" else "number" if shape["is"] in ("int32", "int64") else shape["is"]
        if kind not in ("list", "number", "text") or "enum" in shape:
            return shape
        texts = (inputs.docs.get(name, ""), field.schema.get("description", "") if field else "")
        return {**shape, **said(kind, texts, shape)}

    def _value(self, kind: Any, field: Field | None) -> Shape:
        kind = _types.unwrap_type(kind)
        origin, inner = get_origin(kind), get_args(kind)
        schema = field.schema if field else {}
        if origin in (Sequence, list) or (isinstance(origin, type) and issubclass(origin, Sequence)):
            entry = Field(schema.get("items") or values_of(schema) or schema, field.document) if field else None
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
        return {**_WIDTHS.get(schema.get("format", ""), _WIDTHS["int32"]), **limits(schema)}
    if kind is float:
        return {"is": "number", **limits(schema)}
    if kind is not str:
        return {"is": "any"}
    if schema.get("format") in _WIDTHS:
        return {**_WIDTHS[schema["format"]], **limits(schema)}
    if "enum" in schema:
        return {"is": "text", "enum": sorted(schema["enum"])}
    return {"is": "text", **(limits(schema) if schema.get("type") == "string" else {})}


def source() -> dict[str, str]:
    """Return what was read, in which versions."""
    return {each: version(each) for each in ("google-api-python-client", "pulumi-gcp")}
