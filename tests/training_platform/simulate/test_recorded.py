"""The model beside what real Kueue did: every recorded scenario, step by step."""

from __future__ import annotations

import pytest

from tests.training_platform.simulate.record import expand, is_played, kueue_version, read_record, record_path
from tests.training_platform.simulate.scenarios import Json

ROWS = read_record(record_path())


def test_there_is_a_record_of_the_version_in_the_catalogue() -> None:
    assert ROWS, f"record scenarios for Kueue {kueue_version()}: python -m tests.training_platform.simulate.record"


OPEN = {"fair-29", "fair-36"}
"""Scenarios that the model plays otherwise, for a reason that is not known: a difference, or a step taken too early."""


@pytest.mark.parametrize("scenario", ROWS, ids=[row["name"] for row in ROWS])
def test_the_model_does_what_kueue_did(scenario: Json) -> None:
    assert (scenario["name"] not in OPEN) == all(is_played(scenario, list(expand(rows))) for rows in scenario["plays"])
