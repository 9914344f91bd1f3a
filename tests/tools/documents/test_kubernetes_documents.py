"""The documents of Kubernetes objects: equal to the CRDs beside the checkout, and to what a real API server says."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.places import ROOT
from tools.documents import __main__ as generator
from tools.documents import kubernetes
from training_platform.rules.documents.openapi import KindReader, Shapes
from training_platform.sandbox.kubernetes.api_servers import ControlPlanes

CRDS = ROOT.parent / "shared" / "schemas"
NETWORKS = {"kubernetes:networking.gke.io/v1:Network", "kubernetes:networking.gke.io/v1:GKENetworkParamSet"}


@pytest.fixture(scope="module", name="crds")
def _crds() -> Path:
    if not CRDS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return CRDS


def test_custom_kinds_are_as_their_crds_say(crds: Path) -> None:
    committed = json.loads((generator.TARGET / "kubernetes.json").read_text(encoding="utf-8"))
    shapes = Shapes()
    reader = KindReader(shapes, {})
    found = {token: reader.kind(schema, 0) for token, schema in kubernetes.definitions(crds)}

    assert len(found) > 30
    for token, number in found.items():
        expected = _whole(shapes.rows, number)
        assert _whole(committed["shapes"], committed["types"][token]) == expected, token


@pytest.mark.kube
def test_kinds_of_operators_are_as_their_crds_say(tmp_path: Path) -> None:
    folders = [os.environ.get(f"TRAINING_PLATFORM_{name}_DEFINITIONS") for name in ("LWS", "KUBERAY", "TRAINER")]
    if None in folders:
        pytest.skip("settings name no CRDs of LeaderWorkerSet, KubeRay and Trainer")
    for folder in filter(None, folders):
        for file in Path(folder).glob("*.yaml"):
            if file.name.startswith(("leaderworkerset", "ray.io", "trainer")):
                shutil.copy(file, tmp_path)

    generator.write_apart(tmp_path / "found.json", kubernetes.OPERATORS, tmp_path)

    committed = (generator.TARGET / "operators.json").read_text(encoding="utf-8")
    assert (tmp_path / "found.json").read_text(encoding="utf-8") == committed


@pytest.mark.kube
def test_the_documents_are_those_of_a_real_server_and_the_crds(crds: Path, tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    binaries = Path(os.environ["KUBEBUILDER_ASSETS"])
    with ControlPlanes(binaries, tmp_path / "planes") as planes, planes.access("cluster").client() as http:
        version = http.get("/version").json()["gitVersion"]
        for name, each in http.get("/openapi/v3").json()["paths"].items():
            file = specs / f"{name.replace('/', '__')}_openapi.json"
            file.write_text(http.get(each["serverRelativeURL"]).text, encoding="utf-8")
    if version != f"v{kubernetes.SOURCE['kubernetes']}":
        pytest.skip(f"the documents are of {kubernetes.SOURCE['kubernetes']}, and the server of {version}")

    generator.write_kubernetes(tmp_path, specs, crds)

    found = json.loads((tmp_path / "kubernetes.json").read_text(encoding="utf-8"))
    committed = json.loads((generator.TARGET / "kubernetes.json").read_text(encoding="utf-8"))
    left_out = NETWORKS - found["types"].keys()  # their CRDs may not be beside the checkout; they are the last
    assert found["source"] == committed["source"]
    assert found["types"] == {name: number for name, number in committed["types"].items() if name not in left_out}
    assert found["shapes"] == committed["shapes"][: len(found["shapes"]) if left_out else None]


def _whole(shapes: list[dict[str, Any]], number: int) -> Any:
    """Return a shape with those that it names in their places, but for the metadata, which all kinds share."""
    shape = dict(shapes[number])
    if "fields" in shape:
        names = shape["fields"].items()
        shape["fields"] = {name: _whole(shapes, inner) for name, inner in names if name != "metadata"}
    if "of" in shape:
        shape["of"] = _whole(shapes, shape["of"])
    return shape
