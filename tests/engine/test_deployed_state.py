"""The engine's own state, read as a check reads it: what was deployed differs in nothing from its plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.parts.sandbox.run.repositories import STACK, Sandbox, small
from training_platform.checks.comparison.changes import against_state
from training_platform.checks.comparison.deployed import read_state
from training_platform.checks.outcome import FlatResource, flat_resource
from training_platform.config.workspace import read_workspace
from training_platform.resources.stack_plan import stack_plan

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Return a sandbox in which a small environment is up."""
    sandbox = small(tmp_path_factory.mktemp("deployed") / "repository", STACK)
    sandbox.steps("up", "small")
    return sandbox


def exported(sandbox: Sandbox, path: Path) -> Path:
    """Write a stack's state as ``pulumi stack export`` prints it."""
    deployment = {"resources": sandbox.folder.resources("small")}
    path.write_text(json.dumps({"version": 3, "deployment": deployment}), encoding="utf-8")
    return path


def planned(root: Path) -> list[FlatResource]:
    workspace = read_workspace(root)
    plan = stack_plan(workspace.stacks["small"], workspace)
    assert plan is not None
    return [flat_resource(resource) for resource in plan.planned() if resource.custom]


def test_what_is_deployed_differs_in_nothing_from_its_plan(deployed: Sandbox, tmp_path: Path) -> None:
    state = read_state(exported(deployed, tmp_path / "state.json"))

    assert state.stack == "small"
    assert len(state.resources) > 50
    assert against_state(state.resources, planned(deployed.folder.root)) == ()
