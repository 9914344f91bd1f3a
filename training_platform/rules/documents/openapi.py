"""Converts OpenAPI schemas of Kubernetes to shapes, our own form of schemas.

It reads the schemas of an API server's own kinds and of CustomResourceDefinitions. ``make documents`` writes the shapes
of published kinds into the JSON files in this package. The sandbox reads a folder of CustomResourceDefinitions when it
starts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from training_platform.rules.documents.constraints import ANY, OPEN, Shape, ShapeKind, constraint

Schema = Mapping[str, Any]
FORMATS = frozenset({"google-duration", "google-datetime", "date-time", "byte", "quantity", "duration"})
_QUANTITY = ".resource.Quantity"
_LIMITS = ("minimum", "maximum", "minLength", "maxLength", "pattern")
_COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties")
_SCALARS: Mapping[str, ShapeKind] = {"string": "text", "number": "number", "boolean": "flag"}
# The type that a part of ``anyOf`` has if it names only a limit.
_TYPES = {"pattern": "string", "minLength": "string", "maxLength": "string", "minimum": "number", "maximum": "number"}
# Fields that the OpenAPI requires and the server fills in: rbac's defaults, pkg/apis/rbac/v1/defaults.go.
_FILLED_IN = frozenset({("io.k8s.api.rbac.v1.RoleRef", "apiGroup")})


class KindReader:
    """Converts the schemas of kinds to shapes. ``schemas`` contains the schemas that they may refer to.

    With ``alone``, an object is checked only against its definition, without our additions and rules. In this case the
    whole definition is used, including ``status``, ``nullable``, and ``anyOf`` and the like.
    """

    def __init__(self, schemas: Schema, *, alone: bool = False) -> None:
        self.schemas = schemas
        self.alone = alone
        self._met: dict[str, Shape] = {}

    def kind(self, schema: Schema, metadata: Shape) -> Shape:
        """Return the shape (schema) of a kind of object."""
        fields = {name: self.shape(part) for name, part in schema.get("properties", {}).items() if name != "metadata"}
        fields["metadata"] = metadata
        if not self.alone:
            fields["status"] = ANY
        return _block(fields, schema, without=self._filled_in(schema, ""))

    def _filled_in(self, schema: Schema, name: str) -> set[str]:
        """Return the inputs that the server fills in before validation.

        These are the defaults in CRDs, and some inputs of built-in kinds.
        """
        custom = {} if self.schemas else schema.get("properties", {})
        return {field for owner, field in _FILLED_IN if owner == name} | {
            key for key, inner in custom.items() if "default" in inner
        }

    def shape(self, schema: Schema, name: str = "") -> Shape:
        """Return the shape of a schema. Any value is allowed at the place where a schema contains itself."""
        reference = _reference(schema)
        if reference:
            if reference not in self._met:
                self._met[reference] = ANY
                self._met[reference] = self.shape(self.schemas[reference], reference)
            return self._met[reference]
        shape = self._plain(schema, name)
        return self._combined(shape, schema) if self.alone else shape

    def _plain(self, schema: Schema, name: str) -> Shape:
        """Return the shape of a schema without its combinations such as ``anyOf``."""
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return Shape(kind="int-or-text", limits=constraint(limits(schema)))
        if name.endswith(_QUANTITY):
            return Shape(kind="quantity")
        kind = schema.get("type")
        if "properties" in schema:
            fields = {key: self.shape(inner) for key, inner in schema["properties"].items()}
            return _block(fields, schema, without=self._filled_in(schema, name))
        if kind == "object":
            inner = schema.get("additionalProperties")
            if isinstance(inner, Mapping):
                return Shape(kind="map", entry=self.shape(inner), limits=constraint(counts(schema)))
            return OPEN if self.alone else ANY
        if kind == "array":
            return Shape(
                kind="list", entry=self.shape(schema["items"]), limits=constraint(counts(schema) | self._unique(schema))
            )
        return self._scalar(kind, schema)

    def _unique(self, schema: Schema) -> dict[str, Any]:
        """Return the constraints that make the entries of a list unique."""
        if schema.get("x-kubernetes-list-type") == "set" or (self.alone and schema.get("uniqueItems")):
            return {"uniqueItems": True}
        keys = schema.get("x-kubernetes-list-map-keys")
        return {"uniqueBy": [keys]} if keys else {}

    def _scalar(self, type_name: str | None, schema: Schema) -> Shape:
        row = limits(schema)
        if type_name == "integer":
            kind: ShapeKind = "int32" if schema.get("format") == "int32" else "int64"
            if self.alone:
                row |= {word: schema[word] for word in ("enum", "multipleOf") if word in schema}
            return Shape(kind=kind, limits=constraint(row))
        if type_name is None or type_name not in _SCALARS:
            return ANY
        if type_name == "string" and "enum" in schema:
            row["enum"] = schema["enum"]
        return Shape(kind=_SCALARS[type_name], limits=constraint({} if type_name == "boolean" else row))

    def _combined(self, shape: Shape, schema: Schema) -> Shape:
        """Return a shape with the alternatives in ``anyOf`` and the like. An alternative may leave out the type."""
        if schema.get("x-kubernetes-int-or-string"):
            return shape
        return replace(
            shape,
            nullable=bool(schema.get("nullable")),
            all_of=self._parts(schema, "allOf"),
            any_of=self._parts(schema, "anyOf"),
            one_of=self._parts(schema, "oneOf"),
            not_=self._part(schema["not"]) if "not" in schema else None,
        )

    def _parts(self, schema: Schema, word: str) -> list[Shape]:
        return [self._part(part) for part in schema.get(word, ())]

    def _part(self, part: Schema) -> Shape:
        """Return the shape of an alternative. A missing type is inferred from its limits or from its first value."""
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
            return self._combined(replace(_block(inner, typed, without=set()), is_open=True), part)
        return self.shape(typed)


def _block(fields: Mapping[str, Shape], schema: Schema, without: set[str]) -> Shape:
    required = sorted(set(schema.get("required", ())) - without)
    return Shape(
        kind="block",
        fields=dict(sorted(fields.items())),
        is_open=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        limits=constraint({"required": required} if required else {}),
    )


def _reference(schema: Schema) -> str:
    """Return the name of the schema that a schema refers to, directly or through the only part of its ``allOf``."""
    parts = schema.get("allOf", ())
    reference = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
    return str(reference or "").rpartition("/")[2]


def limits(schema: Schema) -> dict[str, Any]:
    """Return the constraints of an upstream schema on the size and format of a string or a number."""
    bounds = {word: _bound(schema[word]) for word in _LIMITS if word in schema}
    for bound, word, direction in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        if schema.get(word) is not True or bound not in bounds:
            continue
        if schema.get("type") == "integer":
            bounds[bound] += direction
        else:
            bounds[bound] = math.nextafter(bounds[bound], direction * math.inf)
    if schema.get("format") in FORMATS:
        bounds["format"] = schema["format"]
    return bounds


def counts(schema: Schema) -> dict[str, Any]:
    """Return the constraints of an upstream schema on the number of entries in a list or a map."""
    return {word: schema[word] for word in _COUNTS if word in schema}


def _bound(value: Any) -> Any:
    """Return a bound as a number; discovery documents write numbers as strings."""
    return int(value) if isinstance(value, str) and value.removeprefix("-").isdecimal() else value
