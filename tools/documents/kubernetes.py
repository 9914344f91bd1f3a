"""Documents of Kubernetes objects: the OpenAPI of an API server, and CustomResourceDefinitions.

``status`` is left out, since only the server writes it. The rules for names and labels are those of core objects for
all kinds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from training_platform.catalog.types import Json

METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KINDS = "x-kubernetes-group-version-kind"
SOURCE = {
    "kubernetes": "1.36.3",
    "kueue": "0.19.2",
    "jobset": "0.12.0",
    "gmp": "0.19.0-rc.1",
    "autoscaler": "55c37cd5eb55",
}
"""The versions of the sources: an API server's OpenAPI, and CustomResourceDefinitions for all other kinds."""
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
"""The schema of an object's metadata, for kinds whose source does not contain the whole schema."""
OPERATORS = {"lws": "0.10.0", "kuberay": "1.7.0", "trainer": "2.3.0"}


def openapi(folder: Path) -> dict[str, Any]:
    """Return the schemas of every group in a folder of OpenAPI documents from an API server's /openapi/v3."""
    schemas: dict[str, Any] = {}
    for file in sorted(folder.glob("*_openapi.json")):
        schemas |= json.loads(file.read_text(encoding="utf-8")).get("components", {}).get("schemas", {})
    return schemas


def kinds(schemas: Json) -> Iterator[tuple[str, Json]]:
    """Yield every kind that a server stores, with Pulumi's token. A kind is stored if it has a list kind."""
    by_token: dict[str, Json] = {}
    for schema in schemas.values():
        names = schema.get(_KINDS, ())
        if len(names) == 1:
            by_token[token(**names[0])] = schema
    for name, schema in sorted(by_token.items()):
        if f"{name}List" in by_token and "metadata" in schema["properties"]:
            yield name, schema


def token(group: str, version: str, kind: str) -> str:
    """Return Pulumi's token of a kind."""
    return f"kubernetes:{group or 'core'}/{version}:{kind}"


def definitions(folder: Path) -> Iterator[tuple[str, Json]]:
    """Yield every served version of the CustomResourceDefinitions in a folder, with Pulumi's token."""
    for file in sorted(folder.rglob("*.yaml")):
        for crd in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            if crd.get("kind") != "CustomResourceDefinition":
                continue
            group = crd["spec"]["group"]
            kind = crd["spec"]["names"]["kind"]
            for version in crd["spec"]["versions"]:
                if version["served"]:
                    schema = version["schema"]["openAPIV3Schema"]
                    if kind == "JobSet":  # its webhook fills in the name of a rule: JobSet 0.12.0, jobset_webhook.go
                        policy = schema["properties"]["spec"]["properties"]["failurePolicy"]
                        policy["properties"]["rules"]["items"]["required"].remove("name")
                    yield token(group, version["name"], kind), schema
