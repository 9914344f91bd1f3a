"""Every refusal is carried by rules, or the table says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from training_platform.rules import RULES
from training_platform.rules.descriptions import REFUSED_BY, rule_sheet

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, Any]]:
    text = (ROOT / "training_platform" / "rules" / "coverage.yaml").read_text(encoding="utf-8")
    rows: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return rows


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
    assert rule_sheet("placement-policy").refused_by == REFUSED_BY["google"]


def test_a_rule_is_explained_by_what_follows_its_summary() -> None:
    assert (
        rule_sheet("vm-local-ssds").details
        == "This applies to VMs and reservations. Bundled local SSDs may be left out."
    )
