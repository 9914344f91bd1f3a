"""Every refusal is carried by rules, or the table says why not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from training_platform.rules import RULES
from training_platform.rules.descriptions import rule_sheet

ROOT = Path(__file__).resolve().parents[3]
FACTS = ROOT.parent / "shared" / "facts" / "refusals.md"
SERIES = {
    "TPU": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16],
    "GPU": [1, 2, 4, 5, 6, 7, 8],
    "CON": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16],
    "PLC": [1, 2, 3, 4, 5, 6, 7],
    "CLU": [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14],
    "NET": [1, 2, 4],
    "DSK": [1, 2, 3, 4, 5, 6],
    "FST": [1, 2, 3, 4, 6, 7, 8, 9],
    "VPR": [1, 2, 3, 5, 6, 7],
    "VJB": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "KUE": [1, 2, 3, 5, 6, 7, 8, 9, 10, 11],
    "JBS": [1, 3, 4, 5, 6],
    "QTA": [1, 2, 3, 4, 5],
    "NAM": [2, 3],
    "IAM": [1, 2, 3, 4],
    "REG": [1, 2, 3, 4],
}


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, Any]]:
    text = (ROOT / "training_platform" / "rules" / "coverage.yaml").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return found


def test_table_has_every_refusal_once(table: dict[str, dict[str, Any]]) -> None:
    assert list(table) == [f"{name}-{number:02}" for name, numbers in SERIES.items() for number in numbers]


def test_table_is_of_the_fact_sheet(table: dict[str, dict[str, Any]]) -> None:
    if not FACTS.exists():
        pytest.skip("the fact sheet is not beside this checkout")
    ids = [row[1] for row in re.finditer(r"^\| ([A-Z]{3}-\d\d) \|", FACTS.read_text(encoding="utf-8"), re.MULTILINE)]

    assert list(table) == ids


def test_each_refusal_has_rules_or_a_reason(table: dict[str, dict[str, Any]]) -> None:
    for fact, row in table.items():
        assert row.keys() <= {"rules", "jobs", "tests", "left"}, fact
        assert row, fact
        assert all(row.values()), fact


def test_named_rules_exist(table: dict[str, dict[str, Any]]) -> None:
    assert {rule for row in table.values() for rule in row.get("rules", ())} <= RULES.keys()


def test_a_rule_carries_the_refusals_that_name_it() -> None:
    assert rule_sheet("placement-policy").facts == ("TPU-10", "PLC-05", "PLC-07")
    assert rule_sheet("labels").facts == ()
