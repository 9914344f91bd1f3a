"""Shares with which nothing can run, and teams that can run nothing."""

from __future__ import annotations

import pytest

from tests.training_platform.checks.repository import TODAY, Repository
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.finding import Finding

SHARE = "        a100-40: {nominal_quota: 8}\n"
SHARES = f"    shares:\n      c:\n{SHARE}"
VERTEX = (
    "    vertex:\n      persistent_resources:\n        tuning: {region: us-central1, machine_type: a2-highgpu-1g}\n"
)


def found(repository: Repository) -> list[Finding]:
    findings = run_check(repository.root, CheckOptions(today=TODAY)).all_findings()
    return [row for row in findings if row.rule in ("share-empty", "team-without-share")]


@pytest.mark.parametrize(
    ("share", "rules"),
    [
        ("{nominal_quota: 0, borrowing_limit: 0}", ["share-empty"]),
        ("{nominal_quota: 0, borrowing_limit: 8}", []),
        ("{nominal_quota: 0}", []),
        ("{nominal_quota: 8, borrowing_limit: 0}", []),
    ],
)
def test_a_share_without_anything_to_use_or_to_borrow_runs_nothing(
    repository: Repository, share: str, rules: list[str]
) -> None:
    repository.edit("small-vision", "{nominal_quota: 8}", share)

    findings = found(repository)

    assert [(row.rule, row.severity) for row in findings] == [(rule, "warning") for rule in rules]


def test_a_team_without_a_share_and_without_vertex_runs_nothing(repository: Repository) -> None:
    repository.edit("small-vision", SHARES, "")
    with_vertex = found(repository)
    repository.edit("small-vision", VERTEX, "")

    assert with_vertex == []
    assert [row.rule for row in found(repository)] == ["team-without-share"]
