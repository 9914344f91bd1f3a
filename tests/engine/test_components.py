"""The component package under the real engine: the examples in YAML and in TypeScript preview the same resources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from components.provider import Provider
from tests.engine.workspace import Json, Key, Preview, Workspace
from tests.places import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

STACK = "dev"
NODE_MODULES = "TRAINING_PLATFORM_NODE_MODULES"
"""Names a node_modules folder with what examples/components/typescript/package.json asks for."""

Place = Callable[[str], Workspace]


def needs(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not on PATH: {', '.join(missing)}")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Make a checkout with the package and one example, in which the engine runs."""

    def example(name: str) -> Workspace:
        made = Workspace(tmp_path, program="")
        checkout = made.root
        for part in ("components", "modules"):
            shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__", ".venv"))
        (checkout / "components" / ".venv").symlink_to(sys.prefix)
        made.root = checkout / "examples" / "components" / name
        shutil.copytree(ROOT / "examples" / "components" / name, made.root)
        made.environment["PYTHONPATH"] = str(ROOT)
        made.init(STACK)
        return made

    return example


def with_sdk(made: Workspace) -> Workspace:
    """Add what ``pulumi package add`` and ``npm install`` would: the SDK for the package, and the libraries."""
    needs("node", "pulumi-language-nodejs")
    libraries = Path(os.environ.get(NODE_MODULES, ""))
    if not (libraries / "@pulumi" / "pulumi").is_dir():
        pytest.skip(f"{NODE_MODULES} names no folder with @pulumi/pulumi and typescript")
    link(libraries, made.root / "node_modules")
    schema = made.root / "schema.json"
    schema.write_text(Provider("0.1.0").schema or "", encoding="utf-8")
    written = made.run("package", "gen-sdk", str(schema), "--language", "nodejs", "--local", "--out", "sdks")
    assert written.returncode == 0, written.stdout + written.stderr
    sdk = made.root / "node_modules" / "@pulumi" / "training-platform"
    shutil.copytree(made.root / "sdks" / "nodejs", sdk)
    path = f"{made.root / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        ["node", "scripts/postinstall.js"], cwd=sdk, env={**made.environment, "PATH": path}, check=True, timeout=120
    )
    return made


def link(libraries: Path, folder: Path) -> None:
    """Make a folder with links to the libraries, beside which another of the same scope can stand."""
    for source in libraries.iterdir():
        target = folder / source.name
        if source.name == "@pulumi":
            link(source, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)


def previewed(made: Workspace) -> Preview:
    seen = made.preview(STACK)
    assert seen.errors == []
    assert seen.code == 0
    return seen


def inputs(seen: Preview) -> dict[Key, Json]:
    """Return what each resource is given; names that the engine made up are left out, also in references."""
    given = {key: state.get("inputs", {}) for key, state in seen.resources.items() if not key[0].startswith("pulumi:")}
    made_up = [each["name"] for each in given.values() if "name" in each.get("__defaults", ())]
    return {key: _without(each, made_up) for key, each in given.items()}


def _without(given: Json, names: Sequence[str]) -> Json:
    text = json.dumps(given)
    for name in names:
        text = text.replace(f'"{name}"', '"made up"')
    kept: Json = json.loads(text)
    return kept


def test_the_yaml_example_previews_pools_whose_every_input_came_through(place: Place) -> None:
    needs("pulumi-language-yaml")

    seen = previewed(place("yaml"))

    pool = seen.resources["gcp:container/nodePool:NodePool", "main-h100-pool"]["inputs"]
    assert pool["nodeConfig"]["machineType"] == "a3-highgpu-8g"
    assert pool["autoscaling"]["maxNodeCount"] == 4
    assert pool["nodeConfig"]["resourceLabels"] == {
        "cost-center": "ml-research",
        "environment": "dev",
        "managed-by": "training-platform",
    }
    assert ("training-platform:index:Cluster", "main") in seen.resources


def test_the_typescript_example_previews_what_the_yaml_example_does(place: Place, tmp_path: Path) -> None:
    needs("pulumi-language-yaml", "pulumi-language-nodejs", "node")
    typescript = previewed(with_sdk(place("typescript")))
    shutil.rmtree(tmp_path / "checkout")
    shutil.rmtree(tmp_path / "state")

    yaml = previewed(place("yaml"))

    assert inputs(typescript) == inputs(yaml)
    assert len(inputs(yaml)) > 20


def test_a_wrong_value_is_said_by_its_property_and_its_nearest_without_a_traceback(place: Place) -> None:
    needs("pulumi-language-yaml")
    made = place("yaml")
    file = made.root / "Pulumi.yaml"
    text = file.read_text(encoding="utf-8")
    assert "a3-highgpu-8g" in text
    file.write_text(text.replace("a3-highgpu-8g", "a3-higpu-8g"), encoding="utf-8")

    seen = made.preview(STACK)

    said = " ".join(seen.errors)
    assert seen.code != 0
    assert "property spec.nodePools.h100.machineType" in said
    assert "Nearest: a3-highgpu-8g" in said
    assert "Traceback" not in said
    assert "components/given.py" not in said
