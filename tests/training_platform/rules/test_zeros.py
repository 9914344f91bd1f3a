"""No rule ends in a bug of ours over a zero, an empty text, list or block, wherever a user writes one."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.training_platform.rules.corpus import judged
from tests.training_platform.rules.foreign import planned
from tests.training_platform.rules.spoiled import ROWS, Row
from tests.violations.draw import valid
from training_platform.rules import RULES, evaluate, program, views_of_plan

NOTHING: Final[tuple[Any, ...]] = (0, -1, "", "0", [], {})
VALID: Final = valid()
SPOILED: Final = [row for row in ROWS if RULES[row.rule].owner != "documents"]  # those look at every valid object
MOST: Final = 700  # objects that are tried of one: pods of the largest are like those of others
AT_ONCE: Final = 25  # objects of one program: more than that compare each with each


def with_nothing(value: Any) -> Iterator[Any]:
    """Yield copies of a value, each with nothing in the place of one value inside."""
    rows: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        rows = list(value.items())
    elif isinstance(value, list):
        rows = list(enumerate(value))
    for key, inner in rows:
        for other in (*NOTHING, *with_nothing(inner)):
            changed = copy.copy(value)
            changed[key] = other
            yield changed


@pytest.mark.parametrize("name", VALID)
def test_no_rule_fails_on_an_object_with_nothing_in_the_place_of_a_value(name: str) -> None:
    rows = [{"type": VALID[name]["type"], "inputs": inputs} for inputs in with_nothing(VALID[name]["inputs"])]
    rows = rows[:: 1 + len(rows) // MOST]
    failed = []
    for start in range(0, len(rows), AT_ONCE):
        resources = {f"{name}-{place}": row for place, row in enumerate(rows[start : start + AT_ONCE])}
        failed += [finding.message for finding in judged({"resources": resources}) if finding.failed]

    assert rows
    assert failed == []


@pytest.mark.parametrize("row", SPOILED, ids=[f"{row.rule}-{place}" for place, row in enumerate(SPOILED)])
def test_a_rule_does_not_fail_on_its_program_with_nothing_in_the_place_of_a_value(row: Row) -> None:
    changed = {path.partition(".")[0] for path in (*row.besides, *row.spoiled)}
    resources = planned(row.besides, row.spoiled)
    views = {resource.name: views_of_plan([resource]) for resource in resources}
    failed = []
    for resource in (resource for resource in resources if resource.name in changed):
        for inputs in with_nothing(resource.inputs):
            views[resource.name] = views_of_plan([dataclasses.replace(resource, inputs=inputs)])
            every = [view for of_one in views.values() for view in of_one]
            whole = program(every, stack="dev", environment="dev", team=None, production=True)
            failed += [finding.message for finding in evaluate(whole, [RULES[row.rule]]) if finding.failed]
        views[resource.name] = views_of_plan([resource])

    assert failed == []
