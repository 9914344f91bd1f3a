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
from collections.abc import Mapping
from pathlib import Path

from tools.documents import by_hand, google, kubernetes, provider_schemas
from tools.documents.shapes import write, write_rows
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
    by_hand.write(TARGET / "by_hand.json")
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
