"""Write the documents by which whole objects are judged: ``python -m tools.documents``.

What is written by hand in additions.yaml and described.yaml goes into one file that is read quickly. Google's come from
the installed google-api-python-client and pulumi_gcp. Kubernetes' are written where both its sources are given:
``--openapi``, a folder with what an API server has at /openapi/v3, as files such as ``apis__batch__v1_openapi.json``,
and ``--crds``, a folder of CustomResourceDefinitions. GKE's own kinds are written with ``--gke``, a folder with the
CustomResourceDefinitions of ComputeClass, Gateway API, and GKE's Gateways and networks, kinds of jobs with
``--operators``, a folder with those of LeaderWorkerSet, KubeRay and Trainer, and what Terraform's provider checks with
``--provider``, the folder google-beta/services of its source.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.documents import google, kubernetes, provider_schemas
from training_platform.resources.rest import paths
from training_platform.rules.documents.openapi import KindReader, Shapes

TARGET = Path(__file__).parents[2] / "training_platform" / "rules" / "documents"


def write_google(target: Path) -> google.Reader:
    """Write the documents of Google's resources; what was met on the way is returned."""
    reader = google.Reader()
    types = {token: reader.type(token) for token in paths()["types"]}
    write(target / "google.json", google.source(), types, reader.shapes)
    return reader


def write_kubernetes(target: Path, openapi: Path, crds: Path) -> None:
    """Write the documents of Kubernetes' own kinds and of custom ones."""
    shapes, schemas = Shapes(), kubernetes.openapi(openapi)
    own = KindReader(shapes, schemas)
    metadata = own.number({"$ref": kubernetes.METADATA})
    types = {token: own.kind(schema, metadata) for token, schema in kubernetes.kinds(schemas)}
    custom = KindReader(shapes, {})
    types |= {token: custom.kind(schema, metadata) for token, schema in kubernetes.definitions(crds)}
    write(target / "kubernetes.json", kubernetes.SOURCE, types, shapes)


def write_apart(target: Path, source: Mapping[str, str], crds: Path) -> None:
    """Write the documents of kinds that are published apart from Kubernetes' versions: GKE's own, and operators'."""
    shapes = Shapes()
    reader = KindReader(shapes, {})
    metadata = reader.number(kubernetes.NAMED)
    types = {token: reader.kind(schema, metadata) for token, schema in kubernetes.definitions(crds)}
    write(target, source, types, shapes)


def write_provider(target: Path, services: Path) -> None:
    """Write what the provider checks of the same resources, a line for each type."""
    source = provider_schemas.Provider(services)
    types = {token: rows for token in sorted(paths()["types"]) if (rows := source.rows(token))}
    write_rows(target / "provider.json", provider_schemas.SOURCE, types)


def main() -> None:
    """Write what can be written."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--openapi", type=Path)
    arguments.add_argument("--crds", type=Path)
    arguments.add_argument("--gke", type=Path)
    arguments.add_argument("--operators", type=Path)
    arguments.add_argument("--provider", type=Path)
    given = arguments.parse_args()
    write_google(TARGET)
    write_by_hand(TARGET / "by_hand.json")
    if given.gke:
        write_apart(TARGET / "gke.json", kubernetes.GKE, given.gke)
    if given.operators:
        write_apart(TARGET / "operators.json", kubernetes.OPERATORS, given.operators)
    if given.provider:
        write_provider(TARGET, given.provider)
    if given.openapi and given.crds:
        write_kubernetes(TARGET, given.openapi, given.crds)


if __name__ == "__main__":
    main()


_FOLDER = Path(__file__).parent
Content = Mapping[str, Any]


def content() -> Content:
    """Return forms, parts and names, and pairs of a type and its rows."""
    added, described = (_read(name) for name in ("additions.yaml", "described.yaml"))
    types = [*added["types"].items(), *described["types"].items()]
    return {**added, "parts": {**added["parts"], **described["parts"]}, "types": types}


def write_by_hand(path: Path) -> None:
    """Write both files as one that is read quickly, a line for each part and each type."""
    whole = content()
    lines = ",\n".join(
        f'"{section}": {_lines(rows) if section in ("parts", "types") else _compact(rows)}'
        for section, rows in whole.items()
    )
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _lines(rows: Any) -> str:
    if isinstance(rows, Mapping):
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {_compact(row)}" for name, row in rows.items()) + "\n}"
    return "[\n" + ",\n".join(map(_compact, rows)) + "\n]"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _read(name: str) -> Any:
    return yaml.load((_FOLDER / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # safe


def write(path: Path, source: Mapping[str, Any], types: Mapping[str, int], shapes: Shapes) -> None:
    """Write a file of documents: a line for each type and each shape, so that a new version shows as a short change."""
    lines = [
        "{",
        f'"source": {_compact(source)},',
        '"types": {',
        ",\n".join(f"{json.dumps(name)}: {number}" for name, number in sorted(types.items())),
        "},",
        '"shapes": [',
        ",\n".join(_compact(row) for row in shapes.rows),
        "]",
        "}",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_rows(path: Path, source: Mapping[str, Any], types: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what is added to the documents: a line for each input."""
    rows = [
        f"{json.dumps(token)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {_compact(row)}" for name, row in inputs.items())
        + "\n}"
        for token, inputs in types.items()
    ]
    lines = ["{", f'"source": {_compact(source)},', '"types": {', ",\n".join(rows), "}", "}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
