"""The levels of a plan, and the names by which Pulumi knows its resources: they last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.organisation.inventories.names import current_names, former_names, snapshot, with_earlier
from tests.stacks import every_field as reach
from tests.support.places import ORGANISATION
from tests.support.stack_files import text_of
from training_platform.catalog.reading import read_file
from training_platform.config.component_arguments import COMPONENTS
from training_platform.config.workspace import read_workspace
from training_platform.resources.former_levels import FILE
from training_platform.resources.plan import Alias, Component, Plan, Resource, is_read
from training_platform.resources.stack_plan import plannable, stack_plan

PUBLISHED = "training-platform:index:"
NETWORK = "gcp:compute/network:Network"


def plans(root: Path) -> Iterator[Plan]:
    workspace = read_workspace(root)
    for stack in plannable(workspace, workspace.stacks):
        plan = stack_plan(stack, workspace)
        assert plan is not None
        yield plan


@pytest.fixture(scope="module")
def organisation() -> list[Plan]:
    return list(plans(ORGANISATION))


@pytest.fixture(scope="module")
def every_field(tmp_path_factory: pytest.TempPathFactory) -> list[Plan]:
    root = tmp_path_factory.mktemp("every-field")
    (root / "stacks").mkdir()
    sections: dict[str, tuple[str, Any]] = {
        "env": ("environment", reach.ENVIRONMENT), "team": ("team", reach.TEAM),
    }  # fmt: skip
    for stack, (kind, section) in sections.items():
        (root / "stacks" / f"Pulumi.{stack}.yaml").write_text(text_of({kind: section}), encoding="utf-8")
    return list(plans(root))


def levels(plans_of_stacks: list[Plan]) -> Iterator[Component]:
    return (node for plan in plans_of_stacks for node in plan.nodes() if isinstance(node, Component))


@pytest.mark.parametrize("stacks", ["organisation", "every_field"])
def test_a_level_is_a_published_component_or_has_two_children(stacks: str, request: pytest.FixtureRequest) -> None:
    unpublished = [level for level in levels(request.getfixturevalue(stacks)) if not level.type.startswith(PUBLISHED)]
    published = {level.type for level in levels(request.getfixturevalue(stacks))} - {row.type for row in unpublished}

    assert unpublished
    assert [(level.type, level.name) for level in unpublished if len(level.children) < 2] == []
    assert {token.removeprefix(PUBLISHED) for token in published} <= COMPONENTS.keys()


@pytest.mark.parametrize("stacks", ["organisation", "every_field"])
def test_no_level_repeats_its_parent(stacks: str, request: pytest.FixtureRequest) -> None:
    repeated = [level for level in levels(request.getfixturevalue(stacks)) if level.parent]

    assert [level.name for level in repeated if level.parent and level.name == level.parent.name] == []


def test_the_snapshot_has_every_name_and_each_of_it_is_a_name_or_an_alias(organisation: list[Plan]) -> None:
    names = {plan.name: current_names(plan) for plan in organisation}
    kept = {
        stack: {(types, name) for types, row in by_types.items() for name in row}
        for stack, by_types in snapshot().items()
    }

    assert [plan.name for plan in organisation if names[plan.name] - kept.get(plan.name, set())] == [], (
        "run `make inventories`"
    )
    gone = {plan.name: kept[plan.name] - names[plan.name] - former_names(plan) for plan in organisation}
    assert {stack: lost for stack, lost in gone.items() if lost} == {}, "add an alias of the former name"


def test_a_renamed_resource_fails_without_an_alias_and_passes_with_one() -> None:
    plan = Plan("dev")
    level = plan.component("test:index:New", "level")
    level.aliases.append(Alias(type="test:index:Old"))
    inner = level.add(Resource(type=NETWORK, name="new", inputs={}))
    old = (f"test:index:Old${NETWORK}", "old")

    assert old not in former_names(plan)
    inner.aliases.append(Alias(name="old"))
    assert old in former_names(plan)
    assert current_names(plan) == {("test:index:New", "level"), (f"test:index:New${NETWORK}", "new")}


def test_a_snapshot_loses_no_name() -> None:
    text = with_earlier({"dev": [("b", "two"), ("a", "one")]}, {"dev": {"a": ["gone"]}, "prod": {"a": ["x"]}})

    assert text.splitlines()[1:] == ["dev:", "  a: gone one", "  b: two", "prod:", "  a: x"]


def test_former_levels_are_of_what_is_planned(organisation: list[Plan], every_field: list[Plan]) -> None:
    planned = {types for plan in [*organisation, *every_field] for types, _ in current_names(plan)}
    rows = read_file(FILE)
    unused = {row for row in rows if not any(_matches(row, types) for types in planned)}

    assert unused <= {"gke:NightlyAccess", "index:GkeCluster > gcp:compute/resourcePolicy:ResourcePolicy"}
    assert bool(rows) == any(node.aliases for plan in organisation for node in plan.nodes())


def _matches(row: str, types: str) -> bool:
    return types.replace("training-platform:", "").replace("$", " > ") == row


def test_what_is_only_read_has_no_name() -> None:
    plan = Plan("dev")
    plan.add(Resource(type=NETWORK, name="theirs", inputs={}, read_id="theirs"))

    assert all(is_read(node) for node in plan.nodes())
    assert current_names(plan) == set()
