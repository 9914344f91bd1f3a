"""Each module of rules has a test file of its own, which names every rule of the module."""

from __future__ import annotations

from pathlib import Path

import pytest

from training_platform.rules import RULES

ROOT = Path(__file__).parents[2]
MODULES = sorted({rule.check.__module__ for rule in RULES.values()})


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_rules_has_a_test_file_that_names_each_rule(module: str) -> None:
    *folders, name = module.split(".")
    tests = ROOT.joinpath("tests", *folders, f"test_{name}.py").read_text(encoding="utf-8")

    missing = [rule.id for rule in RULES.values() if rule.check.__module__ == module and f'"{rule.id}"' not in tests]

    assert missing == []
