"""The real engine previews every stack of the organisation, a team's beside its deployed environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.engine.workspace import MakeWorkspace, Workspace
from tests.support.places import ORGANISATION
from training_platform.config.workspace import read_workspace

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

STACKS = read_workspace(ORGANISATION).stacks
ENVIRONMENTS = {name: stack.environment_name for name, stack in STACKS.items()}
TEAMS = [name for name, stack in STACKS.items() if stack.team]


@pytest.fixture(scope="module")
def places(workspace: MakeWorkspace, deployed_outputs: Mapping[str, Mapping[str, Any]]) -> tuple[Workspace, Workspace]:
    """A workspace in which nothing is deployed, and one in which every environment is."""
    later = workspace("later")
    for name in sorted({str(ENVIRONMENTS[team]) for team in TEAMS}):
        later.deploy(name, deployed_outputs[name])
    return workspace("first"), later


@pytest.mark.parametrize("stack", STACKS)
def test_a_preview_succeeds_and_no_policy_objects(stack: str, places: tuple[Workspace, Workspace]) -> None:
    first, later = places
    place = later if stack in TEAMS else first
    place.init(stack)

    preview = place.preview(stack, "--policy-pack", "policies")

    assert (preview.code, preview.errors) == (0, [])
    assert preview.violations("mandatory") == []
    assert preview.violations("advisory") == []
    assert {"disks", "quota", "tpu"} <= preview.policies
