"""Documents of Kubernetes objects: the OpenAPI of an API server, and CustomResourceDefinitions.

What the server alone writes, ``status``, is left out; names and labels are the same for all, those of core objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.documents.shapes import Shape, Shapes, counts, limits

Json = Mapping[str, Any]
METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KINDS = "x-kubernetes-group-version-kind"
SOURCE = {
    "kubernetes": "1.36.3",
    "kueue": "0.19.2",
    "jobset": "0.12.0",
    "gmp": "0.19.0-rc.1",
    "autoscaler": "55c37cd5eb55",
}
"""What is read, in which versions: an API server's OpenAPI, and the CustomResourceDefinitions of the rest."""
_QUANTITY = ".resource.Quantity"
ANY = {"is": "any"}
GKE = {
    "compute-class-api": "8067eaeb319407121f5559b07319f5fda7b6725d, of 2026-08-21",
    "gateway-api": "1.4.1, standard channel",
    "gke-gateway-api": "fc40d60",
    "gke-networking-api": "34c617f",
}
NAMED = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("name", "generateName")},
        **{name: {"type": "object", "additionalProperties": {"type": "string"}} for name in ("annotations", "labels")},
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
    "x-kubernetes-preserve-unknown-fields": True,
}
"""What is judged of an object's metadata where its file does not have the whole of it."""
OPERATORS = {"lws": "0.10.0", "kuberay": "1.7.0", "trainer": "2.3.0"}
# Fields that a CRD requires and a webhook fills in before they are looked at: JobSet 0.12.0, jobset_webhook.go.
_BY_WEBHOOK = {"JobSet": (("failurePolicy", "rules"), "name")}
# Fields that the OpenAPI requires and the server fills in: rbac's defaults, pkg/apis/rbac/v1/defaults.go.
_FILLED_IN = frozenset({("io.k8s.api.rbac.v1.RoleRef", "apiGroup")})


class Reader:
    """Reads kinds into shapes, which they share; ``schemas`` are those that a schema may refer to."""

    def __init__(self, shapes: Shapes, schemas: Json) -> None:
        self.shapes = shapes
        self.schemas = schemas
        self._met: dict[str, int] = {}

    def kind(self, schema: Json, metadata: int) -> int:
        """Return the shape of a kind."""
        fields = {
            name: metadata if name == "metadata" else self.number(each)
            for name, each in schema["properties"].items()
            if name != "status"
        }
        fields["status"] = self.shapes.number(ANY)
        return self.shapes.number(_block(fields, schema, without=self._filled_in(schema, "")))

    def _filled_in(self, schema: Json, name: str) -> set[str]:
        """Return what the server fills in before it looks: a CRD's defaults; those of its own kinds are Go's zeros."""
        custom = {} if self.schemas else schema["properties"]
        return {field for owner, field in _FILLED_IN if owner == name} | {
            key for key, each in custom.items() if "default" in each
        }

    def number(self, schema: Json, name: str = "") -> int:
        """Return the place of a schema's shape; one that holds itself is anything inside."""
        reference = _reference(schema)
        if reference:
            if reference not in self._met:
                self._met[reference] = self.shapes.number(ANY)
                self._met[reference] = self.number(self.schemas[reference], reference)
            return self._met[reference]
        return self.shapes.number(self._shape(schema, name))

    def _shape(self, schema: Json, name: str) -> Shape:
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return {"is": "int-or-text", **limits(schema)}
        if name.endswith(_QUANTITY):
            return {"is": "quantity"}
        kind = schema.get("type")
        if "properties" in schema:
            fields = {key: self.number(each) for key, each in schema["properties"].items()}
            return _block(fields, schema, without=self._filled_in(schema, name))
        if kind == "object":
            inner = schema.get("additionalProperties")
            return {"is": "map", "of": self.number(inner), **counts(schema)} if isinstance(inner, Mapping) else ANY
        if kind == "array":
            keys = schema.get("x-kubernetes-list-map-keys")
            found: Shape = {"is": "list", "of": self.number(schema["items"]), **counts(schema)}
            if schema.get("x-kubernetes-list-type") == "set":
                keys = []
            return found if keys is None else {**found, "keys": keys}
        return _scalar(kind, schema)


def _block(fields: Mapping[str, int], schema: Json, without: set[str]) -> Shape:
    found: Shape = {"is": "block", "fields": dict(sorted(fields.items()))}
    if required := sorted(set(schema.get("required", ())) - without):
        found["required"] = required
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        found["open"] = True
    return found


def _scalar(kind: str | None, schema: Json) -> Shape:
    enum = {"enum": schema["enum"]} if "enum" in schema else {}
    if kind == "string":
        return {"is": "text", **enum, **limits(schema)}
    if kind == "integer":
        return {"is": "int32" if schema.get("format") == "int32" else "int64", **limits(schema)}
    if kind == "number":
        return {"is": "number", **limits(schema)}
    return {"is": "flag"} if kind == "boolean" else ANY


def _reference(schema: Json) -> str:
    """Return the name of what a schema refers to: by itself, or as the one part of ``allOf``, beside a default."""
    parts = schema.get("allOf", ())
    reference = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
    return str(reference or "").rpartition("/")[2]


def openapi(folder: Path) -> dict[str, Any]:
    """Return the schemas of every group in a folder of OpenAPI documents, as an API server has them at /openapi/v3."""
    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*_openapi.json")):
        found |= json.loads(file.read_text(encoding="utf-8")).get("components", {}).get("schemas", {})
    return found


def kinds(schemas: Json) -> Iterator[tuple[str, Json]]:
    """Yield every kind that a server keeps, by Pulumi's token: those of which it has lists."""
    found = {token(**names[0]): schema for schema in schemas.values() if len(names := schema.get(_KINDS, ())) == 1}
    for name, schema in sorted(found.items()):
        if f"{name}List" in found and "metadata" in schema["properties"]:
            yield name, schema


def token(group: str, version: str, kind: str) -> str:
    """Return Pulumi's type of a kind."""
    return f"kubernetes:{group or 'core'}/{version}:{kind}"


def definitions(folder: Path) -> Iterator[tuple[str, Json]]:
    """Yield every served version of the CustomResourceDefinitions in a folder, by Pulumi's token."""
    for file in sorted(folder.rglob("*.yaml")):
        for crd in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            if crd.get("kind") != "CustomResourceDefinition":
                continue
            spec = crd["spec"]
            for each in spec["versions"]:
                if each["served"]:
                    kind, schema = spec["names"]["kind"], each["schema"]["openAPIV3Schema"]
                    if kind in _BY_WEBHOOK:
                        _leave_out(schema["properties"]["spec"], *_BY_WEBHOOK[kind])
                    yield token(spec["group"], each["name"], kind), schema


def _leave_out(schema: Any, path: tuple[str, ...], name: str) -> None:
    for key in path:
        schema = schema["properties"][key]
    schema["items"]["required"].remove(name)
