"""What descriptions of Google's types say of inputs together: a value that breaks it is found, its neighbour is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.places import ROOT
from tests.training_platform.rules.corpus import load
from training_platform.rules import documents
from training_platform.rules.documents.problems import Problem
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
            for name in _names(row):
                input_path = f"{path}.{name}".removeprefix(".")
                if not any(_has(token, input_path) for token in _tokens(pattern)):
                    missing.append(f"{pattern} {input_path}")

    assert missing == []


def test_the_page_explains_every_word_of_a_row() -> None:
    page = (ROOT / "docs/development/documents.md").read_text(encoding="utf-8")
    rows = [row for part in ("additions", "described") for row in _rows(_yaml(part))]
    words = {word for row in rows for word in row}
    for row in rows:
        for group in (*row.get("cases", ()), *row.get("groups", ())):
            words |= set(group)

    assert {"cases", "when", "span", "least", "keys_like"} <= words
    assert {word for word in words if f"`{word}`" not in page} == set()


def _yaml(name: str) -> Any:
    return load(ROOT / f"tools/documents/{name}.yaml")


def _rows(content: Any) -> list[dict[str, Any]]:
    """Return the rows of a file: of its types and parts by their inputs, of its forms as they are."""
    below = [rows for part in ("types", "parts") for rows in content.get(part, {}).values() if isinstance(rows, dict)]
    all_rows = [row for rows in below for row in rows.values()] + list(content.get("forms", {}).values())
    return [row for row in all_rows if isinstance(row, dict)]


def test_every_pattern_of_types_is_of_one() -> None:
    assert [pattern for pattern in ROWS if not _tokens(pattern)] == []


def _tokens(pattern: str) -> list[str]:
    return [token for token in GOOGLE["types"] if fnmatchcase(token, pattern)]


def _errors(token: str, inputs: dict[str, Any]) -> list[Problem]:
    problems = list[Problem]()
    judge = check_of(token)
    assert judge

    judge(inputs, (), problems.append)

    return [problem for problem in problems if problem.severity == "error"]


def _names(row: dict[str, Any]) -> Iterator[str]:
    for group in row.get("groups", ()):
        yield from group["of"]
    for first, second, *_ in row.get("orders", ()):
        yield from (first, second)
    for case in row.get("cases", ()):
        for word in ("when", "only", "never", "within", "few", "each", "required", "without", "some"):
            yield from case.get(word, ())


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
