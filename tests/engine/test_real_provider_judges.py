"""Every accepted and every refused configuration under the real provider, by whole previews where one holds many.

The program registers resources as their inputs are written. What owners deploy passes in one preview, and so does what
only Google's APIs are recorded to refuse, which is the rules' to find. What the provider refuses by itself ends a
preview at once: the released plugin is asked of each as the engine asks it, and one of each kind is previewed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import pytest

from tests.engine.workspace import Json, Preview, Workspace
from tests.training_platform.rules.corpus import accepted
from tests.violations.draw import damaged
from tests.violations.records import RECORDED, VALID, change, found
from tests.violations.refusers import Provider, provider

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
LET_PASS = [row for row in OF_GOOGLE if row.get("by") != "provider" and row["values"] != _KNOWN]
OF_EACH_KIND = {row["constraint"]: row for row in BY_ITSELF}
Resources = Mapping[str, tuple[str, Json]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("judges"), program=PROGRAM)
    workspace.init(STACK)
    (workspace.root / "stacks" / f"Pulumi.{STACK}.yaml").write_text(SETTINGS, encoding="utf-8")
    return workspace


def preview(place: Workspace, resources: Resources) -> Preview:
    (place.root / "resources.json").write_text(json.dumps(resources), encoding="utf-8")
    return place.preview(STACK)


def test_one_preview_takes_every_accepted_configuration(place: Workspace) -> None:
    resources = {
        f"{entry_name}-{name}".replace("_", "-"): (row["type"], row["inputs"])  # what has no name is called so
        for entry_name, entry in accepted().items()
        for name, row in entry.get("resources", {}).items()
        if row["type"].startswith("gcp:")
    }

    seen = preview(place, resources)

    assert seen.errors == []
    assert len(resources) >= 150
    assert {name for kind, name in seen.resources if kind.startswith("gcp:")} == set(resources)


def test_one_preview_lets_pass_what_only_rules_find(place: Workspace) -> None:
    """What Google's APIs are recorded to refuse, and nothing before them does: it is the rules' to find."""
    seen = preview(place, {f"{number:03}-{row['of']}": _resource(row) for number, row in enumerate(LET_PASS)})

    assert seen.errors == []
    assert len(seen.resources) == len(LET_PASS) >= 65
    assert sum(bool(found(row)) for row in LET_PASS) >= 0.95 * len(LET_PASS)


@pytest.fixture(scope="module")
def plugin() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.mark.parametrize("row", BY_ITSELF, ids=[f"{row['of']}-{number}" for number, row in enumerate(BY_ITSELF)])
def test_the_provider_refuses_by_itself_what_is_recorded_of_it(plugin: Provider, row: Json) -> None:
    assert _beginning(row) in _words(plugin.refusal(*_resource(row)))


@pytest.mark.parametrize("constraint", OF_EACH_KIND)
def test_a_preview_stops_at_what_the_provider_refuses_by_itself(place: Workspace, constraint: str) -> None:
    seen = preview(place, {"damaged": _resource(OF_EACH_KIND[constraint])})

    assert seen.code != 0
    assert _beginning(OF_EACH_KIND[constraint]) in _words(" ".join(seen.errors))


def test_every_refusal_of_google_s_is_the_provider_s_or_passes_it() -> None:
    """No row is left out: each is asked of the plugin above, or passes in one preview."""
    assert len(BY_ITSELF) + len(LET_PASS) == len(OF_GOOGLE)
    assert len(BY_ITSELF) >= 118


def _beginning(row: Json) -> str:
    return _words(row["says"])[:40]


def _resource(row: Json) -> tuple[str, Json]:
    valid = VALID[row["of"]]
    return valid["type"], damaged(valid["inputs"], change(row))


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", text)
