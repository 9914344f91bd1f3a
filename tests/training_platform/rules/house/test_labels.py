"""Rules about labels: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_names_the_nearest_that_passes,
    test_rule_finds_what_is_spoiled_and_nothing_else,
    test_rule_that_meets_an_unknown_value_says_so,
)
from tests.training_platform.rules.tables import Alone, AloneNearest
from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import View

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


ALONE: list[Alone] = [
    ("label-form", "labelled", {}, 0),
    ("label-form", "labelled", {"labels": {"a" * 63: "b" * 63}}, 0),
    ("label-form", "labelled", {"labels": {"a" * 64: "b"}}, 1),
    ("label-form", "labelled", {"labels": {"a": "b" * 64}}, 1),
    ("label-form", "labelled", {"labels": {"A": "b"}}, 1),
    ("label-form", "labelled", {"labels": {"1a": "b"}}, 1),
    ("label-form", "labelled", {"labels": {"a": "x.y"}}, 1),
    ("label-form", "labelled", {"labels": {"a": ""}}, 0),
    ("label-form", "labelled", {"labels": {f"k{index}": "v" for index in range(64)}}, 0),
    ("label-form", "labelled", {"labels": {f"k{index}": "v" for index in range(65)}}, 1),
]


NEAREST: list[AloneNearest] = [
    ("label-form", "labelled", {"labels": {"a": "X.y"}}, "x-y"),
]


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ({"environment": "dev", "team": "vision", "more": "x"}, []),
        ({"environment": "dev"}, ["team: vision"]),
        ({"team": "vision"}, ["environment: dev"]),
        ({"environment": "prod", "team": "vision"}, ["environment: dev"]),
        ({}, ["environment: dev", "team: vision"]),
        (None, ["environment: dev", "team: vision"]),
    ],
)
def test_resource_carries_environment_and_team(
    check: Check, labelled: Make, labels: dict[str, str] | None, missing: list[str]
) -> None:
    found = check("labels", labelled(labels=labels))

    assert [finding.nearest for finding in found] == missing
    assert {finding.path for finding in found} <= {"labels"}


def test_one_resource_with_unknown_labels_hides_no_other(check: Check, labelled: Make) -> None:
    found = check("labels", labelled(labels=UNKNOWN), labelled(labels={"environment": "dev"}))

    assert [finding.severity for finding in found] == ["note", "error"]
