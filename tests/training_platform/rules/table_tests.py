"""The tests of a table of rows, for test modules to import beside the tables that they have.

``conftest.py`` gives each test a row at a time, of the table in the importing module that ``TABLES`` names: ``ALONE``,
``TOGETHER``, ``UNKNOWNS``, ``NEAREST``, ``NEAREST_TOGETHER``.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.training_platform.rules.tables import Alone, AloneNearest, Holds, Together, TogetherNearest

TABLES: Mapping[str, str] = {
    "alone": "ALONE",
    "spoiled_alone": "ALONE",
    "together": "TOGETHER",
    "unknown": "UNKNOWNS",
    "nearest": "NEAREST",
    "nearest_together": "NEAREST_TOGETHER",
}
"""The table whose rows a test is given, by the name of its argument."""


def test_rule_finds_what_is_spoiled_and_nothing_else(alone: Alone, finds_alone: Holds) -> None:
    finds_alone(*alone)


def test_rule_that_meets_an_unknown_value_says_so(spoiled_alone: Alone, notes_alone: Holds) -> None:
    notes_alone(*spoiled_alone)


def test_rule_finds_what_does_not_go_together(together: Together, finds_together: Holds) -> None:
    finds_together(*together)


def test_rule_across_resources_that_meets_an_unknown_value_says_so(
    unknown: tuple[str, str, str], notes_together: Holds
) -> None:
    notes_together(*unknown)


def test_finding_names_the_nearest_that_passes(nearest: AloneNearest, names_nearest: Holds) -> None:
    names_nearest(*nearest)


def test_finding_across_resources_names_the_nearest_that_passes(
    nearest_together: TogetherNearest, names_nearest_together: Holds
) -> None:
    names_nearest_together(*nearest_together)
