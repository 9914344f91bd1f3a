"""Every accepted and every refused configuration under the real provider, by whole previews.

The program registers resources as their inputs are written. What owners deploy passes in one preview; of what is known
to be refused, the test says what the provider refuses by itself, and counts what it lets pass, which is the rules'.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from tests.engine.workspace import Json, Preview, Workspace
from tests.training_platform.rules.corpus import accepted
from tests.violations.draw import damaged
from tests.violations.test_found import RECORDED, VALID, change, found

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1500)]

STACK = "dev"
PROGRAM = """
import asyncio, json, pathlib, pulumi

def done(value):
    future = asyncio.Future()
    future.set_result(value)
    return future

def read(value):
    if value == "<unknown>":
        return pulumi.Output(set(), done(None), done(False), done(False))
    if isinstance(value, dict):
        return {key: read(part) for key, part in value.items()}
    return [read(part) for part in value] if isinstance(value, list) else value

for name, (kind, inputs) in json.loads(pathlib.Path("resources.json").read_text()).items():
    pulumi.CustomResource(kind, name, read(inputs))
"""
SETTINGS = "config:\n  gcp:project: example-train\n  gcp:region: us-central1\n  gcp:skipRegionValidation: true\n"
OF_GOOGLE = [row for row in RECORDED if VALID[row["of"]]["type"].startswith("gcp:")]
_KNOWN = {"enableAutopilot": True}
_AUTOPILOT = "Conflicting configuration arguments"
BY_ITSELF = [{"says": _AUTOPILOT, **row} for row in OF_GOOGLE if row.get("by") == "provider" or row["values"] == _KNOWN]
"""What the provider refuses by itself, with what it says; the last is the one of the API's that it knows, too."""
Resources = Mapping[str, tuple[str, Json]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace(tmp_path_factory.mktemp("judges"), program=PROGRAM)
    made.init(STACK)
    (made.root / "stacks" / f"Pulumi.{STACK}.yaml").write_text(SETTINGS, encoding="utf-8")
    return made


def preview(place: Workspace, resources: Resources) -> Preview:
    (place.root / "resources.json").write_text(json.dumps(resources), encoding="utf-8")
    return place.preview(STACK)


def test_one_preview_takes_every_accepted_configuration(place: Workspace) -> None:
    resources = {
        f"{at}-{name}": (row["type"], row["inputs"])
        for at, entry in accepted().items()
        for name, row in entry.get("resources", {}).items()
        if row["type"].startswith("gcp:")
    }

    seen = preview(place, resources)

    assert seen.errors == []
    assert len(resources) >= 150
    assert {name for kind, name in seen.resources if kind.startswith("gcp:")} == set(resources)


def test_one_preview_lets_pass_what_only_rules_find(place: Workspace) -> None:
    """What Google's APIs are recorded to refuse, and nothing before them does: it is the rules' to find."""
    rows = [row for row in OF_GOOGLE if row.get("by") != "provider" and row["values"] != _KNOWN]

    seen = preview(place, {f"{number:03}-{row['of']}": _resource(row) for number, row in enumerate(rows)})

    assert seen.errors == []
    assert len(seen.resources) == len(rows) >= 65
    assert sum(bool(found(row)) for row in rows) >= 0.95 * len(rows)


@pytest.mark.parametrize("row", BY_ITSELF, ids=[f"{row['of']}-{number}" for number, row in enumerate(BY_ITSELF)])
def test_a_preview_stops_at_what_the_provider_refuses_by_itself(place: Workspace, row: Json) -> None:
    """One at a time, since the engine ends a preview at the first resource that is refused."""
    seen = preview(place, {"damaged": _resource(row)})

    assert seen.code != 0
    assert _words(row["says"])[:40] in _words(" ".join(seen.errors))


def _resource(row: Json) -> tuple[str, Json]:
    valid = VALID[row["of"]]
    return valid["type"], damaged(valid["inputs"], change(row))


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", text)
