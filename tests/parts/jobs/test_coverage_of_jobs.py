"""Refusals of the fact sheet that job files can run into: what coverage.yaml names of them is tested here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tests.support.places import ROOT

TABLE: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "training_platform" / "rules" / "coverage.yaml").read_text(encoding="utf-8")
)
TESTS = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("test_*.py")))


def named(field: str) -> set[str]:
    return {name for row in TABLE.values() for name in row.get(field, ())}


def test_a_test_expects_each_rule_that_the_table_names() -> None:
    assert {rule for rule in named("jobs") if f'"{rule}"' not in TESTS} == set()


def test_refusals_that_rendering_rules_out_name_tests_that_exist() -> None:
    assert named("tests") - set(re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE)) == set()
