"""What descriptions of Google's types say of inputs together: a value that breaks it is found, its neighbour is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ROOT
from tests.training_platform.rules.corpus import load
from training_platform.rules import documents
from training_platform.rules.documents.constraints import Constraint, constraint
from training_platform.rules.documents.problems import BrokenConstraint
from training_platform.rules.documents.shapes import check_of

FOLDER = Path(documents.__file__).parent
GOOGLE = json.loads((FOLDER / "google.json").read_text(encoding="utf-8"))
ROWS = load(ROOT / "tools/documents/described.yaml")["types"]
CASES = load(Path(__file__).with_name("described_cases.yaml"))


@pytest.mark.parametrize("case", CASES)
def test_what_descriptions_refuse_is_found(case: dict[str, Any]) -> None:
    assert case["path"] in [problem.path for problem in _errors(case["of"], case["wrong"])]
    assert case["path"] not in [problem.path for problem in _errors(case["of"], case["right"])]


def test_every_input_that_a_row_names_is_one_of_a_type_that_it_is_of() -> None:
    missing = []
    for pattern, rows in ROWS.items():
        if not isinstance(rows, dict):
            continue
        for path, row in rows.items():
            if not isinstance(row, dict):
                continue
            for name in _names(constraint(row)):
                input_path = f"{path}.{name}".removeprefix(".")
                if not any(_has(token, input_path) for token in _tokens(pattern)):
                    missing.append(f"{pattern} {input_path}")

    assert missing == []


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ({"minimun": 1}, "minimun is not a word of a constraint"),
        ({"cases": [{"when": {}, "requires": ["a"]}]}, "requires is not a word of a case"),
        ({"orders": [{"smaller": "a", "larger": "b", "strict": True}]}, "strict is not a word of an order"),
    ],
)
def test_a_word_that_nothing_has_is_refused(row: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        constraint(row)


def test_every_pattern_of_types_is_of_one() -> None:
    assert [pattern for pattern in ROWS if not _tokens(pattern)] == []


def _tokens(pattern: str) -> list[str]:
    return [token for token in GOOGLE["types"] if fnmatchcase(token, pattern)]


def _errors(token: str, inputs: dict[str, Any]) -> list[BrokenConstraint]:
    problems = list[BrokenConstraint]()
    judge = check_of(token)
    assert judge

    judge(inputs, (), problems.append)

    return [problem for problem in problems if problem.severity == "error"]


def _names(row: Constraint) -> Iterator[str]:
    for group in (*row.exactly_one, *row.at_most_one, *row.at_least_one):
        yield from group
    for order in row.orders:
        yield from (order.smaller, order.larger)
    for case in row.cases:
        for names in case:
            yield from names


def _has(token: str, path: str) -> bool:
    shape = GOOGLE["shapes"][GOOGLE["types"][token]]
    for name in path.replace("[]", "").split("."):
        while shape["is"] == "list":
            shape = GOOGLE["shapes"][shape["of"]]
        if shape["is"] != "block":
            return bool(shape["is"] in ("map", "any"))
        if name not in shape["fields"]:
            return False
        shape = GOOGLE["shapes"][shape["fields"][name]]
    return True
