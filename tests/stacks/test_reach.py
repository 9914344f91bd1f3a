"""Change any field of a stack's model, and some planned input, option or output changes.

The values before and after the changes are those of ``every_field``; a field of the model that is missing there fails.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import BaseModel

from tests.stacks.every_field import (
    BORROWED,
    BORROWED_CHANGES,
    ENVIRONMENT,
    ENVIRONMENT_CHANGES,
    FOR_TEAMS,
    PLAIN_TEAM,
    TEAM,
    TEAM_CHANGES,
    TEAM_WITHOUT_SHARES,
    Path,
    changed,
    planned,
    sections,
    stacks_of,
    steps,
)
from tests.support.plans import planned_stack
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.reading.finding import dotted


@pytest.mark.parametrize("path", ENVIRONMENT_CHANGES, ids=dotted)
def test_every_field_of_an_environment_is_planned(path: Path) -> None:
    other = changed(ENVIRONMENT, path, ENVIRONMENT_CHANGES[path])

    assert planned(other, TEAM_WITHOUT_SHARES, "env") != planned(ENVIRONMENT, TEAM_WITHOUT_SHARES, "env")


@pytest.mark.parametrize("path", BORROWED_CHANGES, ids=dotted)
def test_every_field_of_somebody_elses_network_and_cluster_is_planned(path: Path) -> None:
    other = changed(BORROWED, path, BORROWED_CHANGES[path])

    assert planned(other, PLAIN_TEAM, "env") != planned(BORROWED, PLAIN_TEAM, "env")


@pytest.mark.parametrize("path", FOR_TEAMS, ids=dotted)
def test_every_field_of_an_environment_that_is_for_teams_is_planned_in_theirs(path: Path) -> None:
    other = changed(ENVIRONMENT, path, FOR_TEAMS[path])

    assert planned(other, TEAM, "team") != planned(ENVIRONMENT, TEAM, "team")


@pytest.mark.parametrize("path", TEAM_CHANGES, ids=dotted)
def test_every_field_of_a_team_is_planned(path: Path) -> None:
    other = changed(TEAM, path, TEAM_CHANGES[path])

    assert planned(ENVIRONMENT, other, "team") != planned(ENVIRONMENT, TEAM, "team")


@pytest.mark.parametrize("stack", ["env", "team"])
def test_equal_sections_have_equal_plans(stack: str) -> None:
    workspace = stacks_of(copy.deepcopy(ENVIRONMENT), copy.deepcopy(TEAM))

    assert planned_stack(workspace.stacks[stack], workspace) == planned(ENVIRONMENT, TEAM, stack)


UNPLANNED = {
    ("BucketData", "location"),
    ("BucketSpec", "readers"),
    ("BucketSpec", "size_gib"),
    ("BucketSpec", "writers"),
    ("Environment", "production"),
    ("Environment", "renamed_from"),
    ("Environment", "retired"),
    ("ReservationSpec", "chips"),
    ("RetiredSpec", "keeps"),
    ("RetiredSpec", "paid_by"),
    ("RetiredSpec", "since"),
    ("Team", "monthly_chip_hours"),
    ("Team", "renamed_from"),
    ("Team", "retired"),
}
"""Fields that rules, jobs and ``check --base`` read, and no resource does; tests of retired stacks have theirs."""

ONE_VALUE = {("NodePoolSpec", "accelerator")}
"""Fields with one value that a pool cannot be without: no GPU but T4 is attached."""

CHANGED_IN_TEAMS = {("Destination", "host")}
"""Fields of sections that teams have as well: an environment's names of hosts want a policy of all of its clusters."""


@pytest.mark.parametrize(
    ("model", "changes"),
    [(Environment, {**ENVIRONMENT_CHANGES, **BORROWED_CHANGES, **FOR_TEAMS}), (Team, TEAM_CHANGES)],
    ids=["environment", "team"],
)
def test_the_table_has_every_field_of_the_model(model: type[BaseModel], changes: dict[Path, Any]) -> None:
    seen = {(type_.__name__, field) for path in changes for type_, field in steps(model, path)}
    seen |= UNPLANNED | ONE_VALUE | (CHANGED_IN_TEAMS if model is Environment else set())
    every = {(type_.__name__, field) for type_ in sections(model) for field in type_.model_fields}

    assert not every - seen
