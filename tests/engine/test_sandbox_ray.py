"""A Ray cluster under the real engine, by a provider of our own: refused, made, resized, replaced, and taken down."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.engine.test_adopt import first_preview, throw_away_state
from tests.engine.test_sandbox_changes import done_to
from tests.engine.test_sandbox_vertex import ENVIRONMENT
from tests.training_platform.sandbox.run.conftest import Sandbox, without_stacks
from training_platform.cli.main import app
from training_platform.sandbox.run.servers import announced, serving
from training_platform.sandbox.run.session import read_stacks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

RAYS = "vertex-rays-persistent-resource"
CLUSTER: dict[str, Any] = {
    "region": "us-central1",
    "machine_type": "n2-standard-8",
    "ray": {},
    "more_pools": {"workers": {"machine_type": "n1-standard-4", "replicas": 1}},
}
SCALED = {"workers": {"machine_type": "n1-standard-4", "replicas": 0, "max_replicas": 3}}


@pytest.fixture
def place(tmp_path: Path) -> Sandbox:
    """Make a sandbox with the environment of a team, which is up."""
    if shutil.which("pulumi-resource-pulumi-python") is None:
        pytest.skip("pulumi-resource-pulumi-python, which comes with the Pulumi CLI, is not on PATH")
    found = without_stacks(tmp_path / "repository")
    found.write("lab", ENVIRONMENT)
    found.steps("up", "lab")
    return found


def team(**changes: Any) -> dict[str, Any]:
    rays = copy.deepcopy(CLUSTER) | changes
    return {
        "environment": "lab",
        "name": "vision",
        "members": ["group:vision@example.com"],
        "vertex": {"persistent_resources": {"rays": rays}},
    }


def up(place: Sandbox, **changes: Any) -> dict[str, set[str]]:
    place.write("lab-vision", team(**changes))
    return place.steps("up", "lab-vision")


def stands(place: Sandbox) -> dict[str, Any]:
    """Return what the local cloud has of the cluster; nothing where it has none."""
    text = place.folder.cloud.read_text(encoding="utf-8")
    records = [each for each in _records(json.loads(text)) if each["name"].endswith("/lab-vision-rays")]
    return records[0]["body"] if records else {}


def _records(value: Any) -> list[dict[str, Any]]:
    """Return everything in the cloud's file that is a resource, wherever it stands."""
    if isinstance(value, dict):
        own = [value] if isinstance(value.get("name"), str) and isinstance(value.get("body"), dict) else []
        return [*own, *(each for inner in value.values() for each in _records(inner))]
    return [each for inner in value for each in _records(inner)] if isinstance(value, list) else []


def test_it_comes_up_changes_as_announced_and_goes_down(place: Sandbox) -> None:
    place.write("lab-vision", team(more_pools={"workers": {"machine_type": "n1-standard-4", "replicas": 0}}))
    refused = place("up", "lab-vision")
    made = up(place)
    pools = stands(place)["resourcePools"]
    resized = up(place, more_pools={"workers": {"machine_type": "n1-standard-4", "replicas": 3}})
    larger = stands(place)["resourcePools"]
    scaled = up(place, more_pools=SCALED)
    now = stands(place)["resourcePools"]
    again = place.steps("up", "lab-vision")

    assert refused.returncode != 0
    assert "replicaCount is 0. Allowed: at least 1." in refused.stderr
    assert 'File "' not in refused.stderr  # no line of the program
    assert made[RAYS] == {"create"}
    assert [pool["replicaCount"] for pool in pools] == ["1", "1"]
    assert resized[RAYS] == {"update"}
    assert [pool["replicaCount"] for pool in larger] == ["1", "3"]
    assert done_to(scaled, RAYS) == "replace"
    assert now[1]["autoscalingSpec"] == {"minReplicaCount": "0", "maxReplicaCount": "3"}
    assert {name for name in again if done_to(again, name) != "same"} == set()
    place.steps("destroy", "lab-vision")
    assert stands(place) == {}
    place.steps("destroy", "lab")


def test_one_that_stands_is_imported_and_nothing_is_left_to_do(place: Sandbox) -> None:
    """The state of a team is lost; the file of ``adopt`` brings its cluster back, and what changes it still does."""
    up(place)
    before = stands(place)
    folder = place.folder
    with (
        folder.alone(),
        serving(folder, read_stacks(folder.root, ()), durations={}) as servers,
        announced(folder, servers),
    ):
        throw_away_state(place, "lab-vision")
        where = ["--local-cloud", f"http://127.0.0.1:{servers.cloud}", "--root", str(folder.root), "--overwrite"]
        said = CliRunner().invoke(app, ["adopt", "example-vertex", "--stack", "lab", "--no-production", *where])
        assert said.exit_code in (0, 1), (said.output, said.exception)
        _, steps = first_preview(place, [folder.root / "import-lab-vision.json"], "lab-vision")

    assert RAYS in steps["same"], steps
    assert steps.keys() - {"read"} == {"same", "create"}  # it reads what the environment exports
    resized = up(place, more_pools={"workers": {"machine_type": "n1-standard-4", "replicas": 2}})
    assert resized[RAYS] == {"update"}
    assert [pool["replicaCount"] for pool in stands(place)["resourcePools"]] == ["1", "2"]
    assert before["createTime"] == stands(place)["createTime"]
    gone = place("destroy", "lab-vision", "--lift-protection")  # which the adopted environment has
    assert (gone.returncode, stands(place)) == (0, {}), gone.stderr
