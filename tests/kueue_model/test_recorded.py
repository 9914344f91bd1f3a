"""The model compared with real Kueue: every recorded scenario, step by step."""

from __future__ import annotations

import pytest

from tests.kueue_model.recorded_plays import expand, is_played, kueue_version, read_record, record_path
from tests.kueue_model.scenarios import Json
from tests.support.places import ROOT

ROWS = read_record(record_path())


def test_there_is_a_record_of_the_version_in_the_catalogue() -> None:
    assert ROWS, f"record scenarios for Kueue {kueue_version()}: python -m tests.kueue_model.record"


@pytest.mark.parametrize("scenario", ROWS, ids=[row["name"] for row in ROWS])
def test_the_model_does_what_kueue_did(scenario: Json) -> None:
    assert all(is_played(scenario, list(expand(rows))) for rows in scenario["plays"])


def test_the_page_on_what_is_proven_counts_what_is_recorded() -> None:
    jobs = sum(len(row["jobs"]) for row in ROWS)
    plays = [list(expand(rows)) for row in ROWS for rows in row["plays"]]
    evictions = sum(len(step.evicted) for steps in plays for step in steps)
    counts = (
        f"{len(ROWS)} recorded scenarios, {jobs:,} jobs, {evictions:,} evictions; all {sum(map(len, plays)):,} steps"
    )

    assert counts in (ROOT / "docs" / "development" / "status.md").read_text(encoding="utf-8")
