"""Previews by the real engine: every stack as ``check`` plans it, every way to get capacity, every machine family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest

from tests.engine.comparison import different_inputs, different_options, different_outputs, missing
from tests.engine.workspace import MakeWorkspace, Preview
from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack
from training_platform.config.workspace import read_workspace

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

STACKS = read_workspace(ORGANISATION).stacks
ENVIRONMENTS = {name: stack.environment_name for name, stack in STACKS.items()}
TEAMS = [name for name, stack in STACKS.items() if stack.team]

Previews = Callable[[str], Preview]


@pytest.fixture(scope="module")
def previews(workspace: MakeWorkspace, deployed_outputs: Mapping[str, Mapping[str, Any]]) -> Previews:
    """Preview a stack with the policy pack, once; a team's environment is deployed before."""
    first = workspace("first")
    later = workspace("later")
    deploy = cache(lambda name: later.deploy(name, deployed_outputs[name]))

    @cache
    def preview(name: str) -> Preview:
        place = later if name in TEAMS else first
        if name in TEAMS:
            deploy(ENVIRONMENTS[name])
        place.init(name)
        return place.preview(name, "--policy-pack", "policies")

    return preview


@pytest.mark.parametrize("stack", STACKS)
def test_a_preview_succeeds_and_no_policy_objects(stack: str, previews: Previews) -> None:
    preview = previews(stack)

    assert (preview.code, preview.errors) == (0, [])
    assert preview.violations("mandatory") == []
    assert preview.violations("advisory") == []
    assert {"disks", "quota", "tpu"} <= preview.policies


@pytest.mark.parametrize("stack", STACKS)
def test_a_preview_has_the_types_and_names_that_check_planned(
    stack: str, previews: Previews, plans: dict[str, PlannedStack]
) -> None:
    assert len(plans[stack].resources) > 40
    assert missing(plans[stack], previews(stack)) == []


@pytest.mark.parametrize("stack", STACKS)
def test_every_planned_input_is_in_the_preview(stack: str, previews: Previews, plans: dict[str, PlannedStack]) -> None:
    assert different_inputs(plans[stack], previews(stack), deployed=stack in TEAMS) == []


@pytest.mark.parametrize("stack", STACKS)
def test_every_planned_option_is_in_the_preview(stack: str, previews: Previews, plans: dict[str, PlannedStack]) -> None:
    assert different_options(plans[stack], previews(stack)) == []


@pytest.mark.parametrize("stack", STACKS)
def test_the_exports_of_a_preview_are_those_that_check_planned(
    stack: str, previews: Previews, plans: dict[str, PlannedStack]
) -> None:
    assert plans[stack].outputs
    assert different_outputs(plans[stack], previews(stack)) == []


def test_an_environment_that_lacks_what_a_team_needs_ends_the_preview_with_one_sentence(
    workspace: MakeWorkspace, deployed_outputs: Mapping[str, Mapping[str, Any]]
) -> None:
    place = workspace("older")
    place.deploy("dev", {**deployed_outputs["dev"], "filestore": {}})
    place.init("dev-vision")

    preview = place.preview("dev-vision")

    assert preview.code != 0
    sentence = "Stack dev is deployed without Filestore instance scratch: run `pulumi up -s dev` first."
    assert any(sentence in error for error in preview.errors), preview.errors
    assert "Traceback" not in preview.text
