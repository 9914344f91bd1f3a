"""Write the documents against which objects are checked, and the table of map inputs: ``python -m tools.documents``.

The handwritten files additions.yaml and described.yaml are combined into one file that loads quickly. Google's
documents are generated from the installed google-api-python-client and pulumi_gcp, map inputs only from pulumi_gcp. The
other documents are written if their sources are given as options:

- Kubernetes, with both ``--openapi``, a folder with the files that an API server serves at /openapi/v3, such as
  ``apis__batch__v1_openapi.json``, and ``--crds``, a folder of CustomResourceDefinitions
- GKE's own kinds, with ``--gke``, a folder with the CustomResourceDefinitions of ComputeClass, Gateway API, and GKE's
  Gateways and networks
- kinds of jobs, with ``--operators``, a folder with the CustomResourceDefinitions of LeaderWorkerSet, KubeRay and
  Trainer
- the checks of Terraform's provider, with ``--provider``, the folder google-beta/services of its source
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.documents import google, kubernetes, provider_schemas
from tools.documents.map_inputs import write_map_inputs
from tools.documents.sdk_types import write_sdk_types
from training_platform.resources import spelling
from training_platform.resources.api_fields import paths
from training_platform.rules.documents.additions import by_hand
from training_platform.rules.documents.constraints import Constraint, Shape
from training_platform.rules.documents.openapi import KindReader

FOLDER = Path(__file__).parent
TARGET = FOLDER.parents[1] / "training_platform" / "rules" / "documents"


def main() -> None:
    """Write all documents whose sources are present."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("openapi", "crds", "gke", "operators", "provider"):
        parser.add_argument(f"--{option}", type=Path)
    folders = parser.parse_args()
    write_google(TARGET)
    write_map_inputs(spelling.FILE, paths()["types"])
    write_sdk_types(TARGET / "sdk_types.txt", paths()["types"])
    write_by_hand(TARGET / "by_hand.json")
    if folders.gke:
        write_apart(TARGET / "gke.json", kubernetes.GKE, folders.gke)
    if folders.operators:
        write_apart(TARGET / "operators.json", kubernetes.OPERATORS, folders.operators)
    if folders.provider:
        provider = provider_schemas.Provider(folders.provider)
        every_type = {token: provider.rows(token) for token in sorted(paths()["types"])}
        checks = {token: rows for token, rows in every_type.items() if rows}
        provider_schemas.close_alike(checks)
        write(TARGET / "provider.json", {"source": provider_schemas.SOURCE, "types": checks}, row=_lines)
    if folders.openapi and folders.crds:
        write_kubernetes(TARGET / "kubernetes.json", folders.openapi, folders.crds)


def write_google(target: Path) -> google.TypeReader:
    """Write the documents of Google's resources, and return the reader, which contains the gaps that it found."""
    reader = google.TypeReader()
    write_shapes(target / "google.json", google.source(), {token: reader.type(token) for token in paths()["types"]})
    return reader


def write_kubernetes(target: Path, openapi: Path, crds: Path) -> None:
    """Write the documents of Kubernetes' built-in kinds and of custom kinds."""
    schemas = kubernetes.openapi(openapi)
    builtin = KindReader(schemas)
    metadata = builtin.shape({"$ref": kubernetes.METADATA})
    types = {token: builtin.kind(schema, metadata) for token, schema in kubernetes.kinds(schemas)}
    custom = KindReader({})
    types |= {token: custom.kind(schema, metadata) for token, schema in kubernetes.definitions(crds)}
    write_shapes(target, kubernetes.SOURCE, types)


def write_apart(target: Path, source: Mapping[str, str], crds: Path) -> None:
    """Write the documents of kinds with their own release cycle: GKE's own kinds, and those of operators."""
    reader = KindReader({})
    metadata = reader.shape(kubernetes.NAMED)
    types = {token: reader.kind(schema, metadata) for token, schema in kubernetes.definitions(crds)}
    write_shapes(target, source, types)


def content() -> Mapping[str, Any]:
    """Return both handwritten files as one: forms, parts, names, and the rows of each type."""
    added, described = (
        yaml.load((FOLDER / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # safe
        for name in ("additions.yaml", "described.yaml")
    )
    types = [*added["types"].items(), *described["types"].items()]
    return {**added, "parts": {**added["parts"], **described["parts"]}, "types": types}


def write_by_hand(path: Path) -> None:
    """Combine both handwritten files into one that loads quickly. Raises ValueError for an unknown constraint."""
    rows = content()
    by_hand(rows)
    write(path, rows)


def write_shapes(path: Path, source: Mapping[str, str], types: Mapping[str, Shape]) -> None:
    """Write the structure (``Shape``) of each type. Equal shapes are written once."""
    table = _Table()
    numbers = {token: table.number(types[token]) for token in sorted(types)}
    write(path, {"source": source, "types": numbers, "shapes": table.rows})


class _Table:
    """The rows of a file. Equal shapes share a row, and rows refer to each other by their index."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._of_shapes: dict[Shape, int] = {}
        self._of_rows: dict[str, int] = {}

    def number(self, shape: Shape) -> int:
        """Return the index of a shape's row, and add the row if it is new."""
        if shape not in self._of_shapes:
            row: dict[str, Any] = {"is": shape.kind}
            if shape.kind == "block":
                row["fields"] = {name: self.number(shape.fields[name]) for name in sorted(shape.fields)}
            if shape.entry:
                row["of"] = self.number(shape.entry)
            if shape.is_open:
                row["open"] = True
            row |= _words(shape.limits, is_map=shape.kind == "map")
            key = _compact(row)
            if key not in self._of_rows:
                self._of_rows[key] = len(self.rows)
                self.rows.append(row)
            self._of_shapes[shape] = self._of_rows[key]
        return self._of_shapes[shape]


def _words(limits: Constraint, *, is_map: bool) -> dict[str, Any]:
    """Return the constraints on a value under the key names that a document file uses."""
    words = {re.sub(r"_(.)", lambda match: match[1].upper(), name): value for name, value in limits.words().items()}
    if is_map:
        words = {word.replace("Items", "Properties"): value for word, value in words.items()}
    return words


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write(path: Path, sections: Mapping[str, Any], row: Callable[[Any], str] = _compact) -> None:
    """Write documents as JSON, with one line for each part, type and shape, so that diffs stay short."""
    lines = ",\n".join(
        f'"{section}": {_lines(rows, row) if section in ("parts", "types", "shapes") else _compact(rows)}'
        for section, rows in sections.items()
    )
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _lines(rows: Any, row: Callable[[Any], str] = _compact) -> str:
    if isinstance(rows, Mapping):
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {row(value)}" for name, value in rows.items()) + "\n}"
    return "[\n" + ",\n".join(map(row, rows)) + "\n]"


if __name__ == "__main__":
    main()
