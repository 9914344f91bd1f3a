"""The components under the real engine: a program in YAML and one in Python preview the same resources."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.engine.workspace import Key, Preview, Workspace
from tests.support.places import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

STACK = "dev"
PYTHON = """
import pulumi
from training_platform.modules import GkeCluster, Network, TeamBucket
place = {"project": "example-train-dev", "environment": "dev"}
vision = {**place, "team": "vision"}
pools = {
    "location": "us-central1",
    "node_pools": {"h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 4}},
}
network = Network("shared", {"place": place, "regions": ["us-central1"]})
cluster = GkeCluster("main", {
    "place": place, **pools, "network": network.network_id,
    "subnet": {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
})
TeamBucket("checkpoints", {
    "place": vision, "location": "us-central1", "jobs": "jobs@example.com", "members": ["group:vision@example.com"],
})
pulumi.export("pools", cluster.pool_names)
"""
PLACE = {"project": "example-train-dev", "environment": "dev"}
H100 = {"machineType": "a3-highgpu-8g", "zone": "us-central1-a", "maxNodes": 4}
YAML = {
    "name": "training-platform",
    "runtime": "yaml",
    "stackConfigDir": "stacks",
    "packages": {"training-platform": "./plugin/modules"},
    "resources": {
        "shared": {
            "type": "training-platform:Network",
            "properties": {"place": PLACE, "regions": ["us-central1"]},
        },
        "main": {
            "type": "training-platform:GkeCluster",
            "properties": {
                "place": PLACE,
                "location": "us-central1",
                "network": "${shared.networkId}",
                "subnet": {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"},
                "nodePools": {"h100": H100},
            },
        },
        "checkpoints": {
            "type": "training-platform:TeamBucket",
            "properties": {
                "place": {**PLACE, "team": "vision"},
                "location": "us-central1",
                "jobs": "jobs@example.com",
                "members": ["group:vision@example.com"],
            },
        },
    },
    "outputs": {"pools": "${main.poolNames}"},
}


def needs_yaml() -> None:
    if shutil.which("pulumi-language-yaml") is None:
        pytest.skip("not on PATH: pulumi-language-yaml")


def previewed(folder: Path, *changes: tuple[str, str]) -> Preview:
    """Preview the program in YAML, with these replacements in it, beside a copy of the package's folder."""
    needs_yaml()
    workspace = Workspace(folder, program="")
    plugin = workspace.root / "plugin"
    shutil.copytree(ROOT / "modules", plugin / "modules", ignore=shutil.ignore_patterns(".venv", "__pycache__"))
    (plugin / "modules" / ".venv").symlink_to(sys.prefix)
    for name in ("training_platform", "pyproject.toml"):
        (plugin / name).symlink_to(ROOT / name)
    text = json.dumps(YAML, indent=2)  # which is YAML, without aliases of its repeated parts
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (workspace.root / "Pulumi.yaml").write_text(text, encoding="utf-8")
    workspace.init(STACK)
    return workspace.preview(STACK)


def registered(preview: Preview) -> dict[Key, object]:
    """Return the inputs of each resource, without those that the engine fills in; providers are the languages' own."""
    return {
        key: {name: value for name, value in state.get("inputs", {}).items() if name != "__defaults"}
        for key, state in preview.resources.items()
        if not key[0].startswith("pulumi:")
    }


def test_a_program_in_yaml_previews_what_one_in_python_does(tmp_path: Path) -> None:
    yaml_preview = previewed(tmp_path / "yaml")
    python = Workspace(tmp_path / "python", program=PYTHON)
    python.init(STACK)
    python_preview = python.preview(STACK)

    assert (yaml_preview.errors, python_preview.errors) == ([], [])
    assert registered(yaml_preview).keys() == registered(python_preview).keys()
    pool = ("gcp:container/nodePool:NodePool", "main-h100-pool")
    assert registered(yaml_preview)[pool] == registered(python_preview)[pool]
    assert ("training-platform:index:GkeCluster", "main") in registered(yaml_preview)
    assert yaml_preview.outputs["pools"] == python_preview.outputs["pools"] == ["system", "h100"]


def test_a_rejection_names_every_wrong_property_in_the_callers_spelling_without_a_traceback(tmp_path: Path) -> None:
    preview = previewed(tmp_path, ("a3-highgpu-8g", "a3-higpu-8g"), ('"maxNodes": 4', '"maxNodes": 0'))

    text = " ".join(preview.errors)
    assert "property nodePools.h100.machineType" in text
    assert "Nearest: a3-highgpu-8g" in text
    assert "property nodePools.h100.maxNodes" in text
    assert "Traceback" not in text
    assert ".py" not in text
