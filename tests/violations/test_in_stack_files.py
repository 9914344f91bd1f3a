"""What ``check`` says of violations that a stack file can say: each at its line, with what is allowed."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import yaml

from tests.violations.records import RECORDED
from tests.violations.stack_files import TABLE, findings, model_field, moving, said, why_not, with_value
from training_platform.config.reading.declaration import RULES
from training_platform.config.reading.finding import Finding

_EVERY = [(row, said(row)) for row in RECORDED]
OTHER_FIELD = re.compile(r"machine type ")
"""Remedies that name another field in words."""
CASES = [(row, case) for row, case in _EVERY if case]


@pytest.fixture(scope="module")
def findings_of_cases(tmp_path_factory: pytest.TempPathFactory) -> list[list[Finding]]:
    return [findings(tmp_path_factory.mktemp("said"), case) for _, case in CASES]


def test_every_violation_that_a_stack_file_says_is_found_at_its_line(findings_of_cases: list[list[Finding]]) -> None:
    missed = [
        f"{row['of']} {row['values']}: {case}"
        for (row, case), rows in zip(CASES, findings_of_cases, strict=True)
        if not rows
    ]

    assert missed == []
    assert len(CASES) >= 100


def test_what_is_found_in_a_stack_file_says_what_is_allowed(findings_of_cases: list[list[Finding]]) -> None:
    assert [
        str(finding) for rows in findings_of_cases for finding in rows if not finding.allowed and not finding.follows
    ] == []


def test_every_violation_is_said_by_a_stack_file_or_has_a_reason() -> None:
    unsaid = [row for row in RECORDED if not said(row)]

    assert [row for row in unsaid if not why_not(row)] == []
    assert {"no field gives it a value", "put together by the program"} <= Counter(map(why_not, unsaid)).keys()


def test_a_field_of_the_table_moves_its_input() -> None:
    wrong = [
        (kind, path, field)
        for kind, fields in TABLE["fields"].items()
        for path, field in fields.items()
        if model_field(field) not in moving(kind, path)
    ]

    assert wrong == []


def test_the_nearest_value_is_in_the_words_of_the_stack_file(findings_of_cases: list[list[Finding]]) -> None:
    """A nearest value that the model rejects would be a second error; further remedies may name other fields."""
    rejected = []
    tried = set()
    for (_, case), rows in zip(CASES, findings_of_cases, strict=True):
        for row in rows:
            rule = RULES[row.rule]
            nearest = row.draft.nearest
            value = nearest[0] if isinstance(nearest, tuple) else nearest
            if rule.check is None or value is None or OTHER_FIELD.match(str(value)):
                continue
            tried.add(row.rule)
            stack = with_value(case, row.path, yaml.safe_load(str(value)))
            rejected += [f"{row.rule}: {value}: {other}" for other in stack.findings if other.path.startswith(row.path)]

    assert rejected == []
    assert len(tried) > 20
