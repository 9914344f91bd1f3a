"""Each branch of the model is held by a recorded scenario: a mutation of it fails there."""

from __future__ import annotations

import json

import pytest

from tests.parts.simulate.mutations import KILLED, MUTATIONS, Mutation, differs, untied
from tests.parts.simulate.record import read_record, record_path

SCENARIOS = {row["name"]: row for row in read_record(record_path())}
HELD: dict[str, str] = json.loads(KILLED.read_text(encoding="utf-8"))


def test_every_mutation_fails_a_scenario() -> None:
    assert HELD.keys() == MUTATIONS.keys()


def test_a_copy_without_a_mutation_plays_like_the_model() -> None:
    assert not [name for name in set(HELD.values()) if differs(SCENARIOS[name], Mutation("quotas", "", ""))]


@pytest.mark.parametrize("name", HELD)
def test_a_mutation_fails_a_scenario_that_the_model_plays_as_kueue_did(name: str) -> None:
    (scenario,) = untied([SCENARIOS[HELD[name]]])

    assert differs(scenario, MUTATIONS[name])
