"""OpenAPI schemas of Kubernetes as shapes: an API server's own kinds, and CustomResourceDefinitions.

``make documents`` writes the shapes of published kinds into the JSON files beside this module; the sandbox reads a
folder of CustomResourceDefinitions when it starts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
Shape = dict[str, Any]
ANY = {"is": "any"}
OPEN = {"is": "block", "fields": {}, "open": True}
FORMATS = frozenset({"google-duration", "google-datetime", "date-time", "byte", "quantity", "duration"})
COMBINED = ("allOf", "anyOf", "oneOf")
_QUANTITY = ".resource.Quantity"
# OpenAPI's names of limits, and those of shapes.
_WORDS = {"minimum": "least", "maximum": "most", "minLength": "shortest", "maxLength": "longest", "pattern": "pattern"}
_COUNTS = {"minItems": "fewest", "maxItems": "most", "minProperties": "fewest", "maxProperties": "most"}
# The type that a part of ``anyOf`` has if it names only a limit.
_TYPES = {"pattern": "string", "minLength": "string", "maxLength": "string", "minimum": "number", "maximum": "number"}
# Fields that the OpenAPI requires and the server fills in: rbac's defaults, pkg/apis/rbac/v1/defaults.go.
_FILLED_IN = frozenset({("io.k8s.api.rbac.v1.RoleRef", "apiGroup")})


class Shapes:
    """The shapes of one source, each once; they refer to each other by their index."""

    def __init__(self) -> None:
        self.rows: list[Shape] = []
        self._numbers: dict[str, int] = {}

    def number(self, shape: Shape) -> int:
        """Return the index of a shape; it is added unless an equal one exists."""
        key = json.dumps(shape, sort_keys=True)
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(shape)
        return self._numbers[key]


class KindReader:
    """Reads kinds into shapes, which they share; ``schemas`` are those that a schema may refer to.

    An object that is judged by its definition ``alone``, without additions and rules of ours, is judged by the whole
    definition: by ``status``, by ``nullable``, and by ``anyOf`` and the like.
    """

    def __init__(self, shapes: Shapes, schemas: Schema, *, alone: bool = False) -> None:
        self.shapes = shapes
        self.schemas = schemas
        self.alone = alone
        self._met: dict[str, int] = {}

    def kind(self, schema: Schema, metadata: int) -> int:
        """Return the index of a kind's shape."""
        fields = {name: self.number(part) for name, part in schema.get("properties", {}).items() if name != "metadata"}
        fields["metadata"] = metadata
        if not self.alone:
            fields["status"] = self.shapes.number(ANY)
        return self.shapes.number(_block(fields, schema, without=self._filled_in(schema, "")))

    def _filled_in(self, schema: Schema, name: str) -> set[str]:
        """Return the inputs that the server fills in before it validates: a CRD's defaults, and a few of its own."""
        custom = {} if self.schemas else schema.get("properties", {})
        return {field for owner, field in _FILLED_IN if owner == name} | {
            key for key, inner in custom.items() if "default" in inner
        }

    def number(self, schema: Schema, name: str = "") -> int:
        """Return the index of a schema's shape; a schema that contains itself may contain anything there."""
        reference = _reference(schema)
        if reference:
            if reference not in self._met:
                self._met[reference] = self.shapes.number(ANY)
                self._met[reference] = self.number(self.schemas[reference], reference)
            return self._met[reference]
        shape = self._shape(schema, name)
        return self.shapes.number({**shape, **self._combined(schema)} if self.alone else shape)

    def _shape(self, schema: Schema, name: str) -> Shape:
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return {"is": "int-or-text", **limits(schema)}
        if name.endswith(_QUANTITY):
            return {"is": "quantity"}
        kind = schema.get("type")
        if "properties" in schema:
            fields = {key: self.number(inner) for key, inner in schema["properties"].items()}
            return _block(fields, schema, without=self._filled_in(schema, name))
        if kind == "object":
            inner = schema.get("additionalProperties")
            if isinstance(inner, Mapping):
                return {"is": "map", "of": self.number(inner), **counts(schema)}
            return OPEN if self.alone else ANY
        if kind == "array":
            keys = schema.get("x-kubernetes-list-map-keys")
            shape: Shape = {"is": "list", "of": self.number(schema["items"]), **counts(schema)}
            if schema.get("x-kubernetes-list-type") == "set" or (self.alone and schema.get("uniqueItems")):
                keys = []
            if keys is not None:
                shape["keys"] = keys
            return shape
        return self._scalar(kind, schema)

    def _scalar(self, kind: str | None, schema: Schema) -> Shape:
        enum = {"enum": schema["enum"]} if "enum" in schema else {}
        if kind == "string":
            return {"is": "text", **enum, **limits(schema)}
        if kind == "integer":
            more = {"among": schema["enum"]} if self.alone and enum else {}
            step = {"step": schema["multipleOf"]} if self.alone and "multipleOf" in schema else {}
            return {"is": "int32" if schema.get("format") == "int32" else "int64", **limits(schema), **more, **step}
        if kind == "number":
            return {"is": "number", **limits(schema)}
        return {"is": "flag"} if kind == "boolean" else ANY

    def _combined(self, schema: Schema) -> Shape:
        """Return the parts of ``anyOf`` and the like; a part may leave out the type, since it narrows the schema."""
        if schema.get("x-kubernetes-int-or-string"):
            return {}
        combined: Shape = {"nullable": True} if schema.get("nullable") else {}
        for name in COMBINED:
            if name in schema:
                combined[name] = [self._part(part) for part in schema[name]]
        if "not" in schema:
            combined["not"] = self._part(schema["not"])
        return combined

    def _part(self, part: Schema) -> int:
        """Return the index of a part's shape; a part without a type has that of its limit, or of its first value."""
        if "type" in part or "properties" in part:
            typed = dict(part)
        elif "required" in part:
            typed = {**part, "properties": {}}
        else:
            typed = {"type": next((kind for word, kind in _TYPES.items() if word in part), None), **part}
        if "enum" in part and not typed.get("type"):
            typed["type"] = "string" if isinstance(part["enum"][0], str) else "integer"
        if "properties" in typed:
            inner = {key: self._part(field) for key, field in typed["properties"].items()}
            shape = {**_block(inner, typed, without=set()), "open": True, **self._combined(part)}
            return self.shapes.number(shape)
        return self.number(typed)


def _block(fields: Mapping[str, int], schema: Schema, without: set[str]) -> Shape:
    block: Shape = {"is": "block", "fields": dict(sorted(fields.items()))}
    if required := sorted(set(schema.get("required", ())) - without):
        block["required"] = required
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        block["open"] = True
    return block


def _reference(schema: Schema) -> str:
    """Return the name of the schema that a schema refers to, by itself or by the one part of its ``allOf``."""
    parts = schema.get("allOf", ())
    reference = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
    return str(reference or "").rpartition("/")[2]


def limits(schema: Schema) -> Shape:
    """Return the constraints of an upstream schema on the size and form of a string or a number."""
    bounds = {ours: _bound(schema[theirs]) for theirs, ours in _WORDS.items() if theirs in schema}
    for bound, word, direction in (("least", "exclusiveMinimum", 1), ("most", "exclusiveMaximum", -1)):
        if schema.get(word) is not True or bound not in bounds:
            continue
        if schema.get("type") == "integer":
            bounds[bound] += direction
        else:
            bounds[bound] = math.nextafter(bounds[bound], direction * math.inf)
    if schema.get("format") in FORMATS:
        bounds["format"] = schema["format"]
    return bounds


def counts(schema: Schema) -> Shape:
    """Return the constraints of an upstream schema on the number of entries in a list or a map."""
    return {ours: schema[theirs] for theirs, ours in _COUNTS.items() if theirs in schema}


def _bound(value: Any) -> Any:
    """Return a bound as a number: discovery documents write numbers as strings."""
    return int(value) if isinstance(value, str) and value.removeprefix("-").isdecimal() else value
