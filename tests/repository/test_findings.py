"""A finding is born in one way: only ``finding`` makes a draft of it, only ``anchored`` makes it a finding."""

from __future__ import annotations

import ast
from pathlib import Path

from training_platform.checks.every_rule import every_rule
from training_platform.config.reading.declaration import RULES

ROOT = Path(__file__).parents[2]
DECLARING = ("declare", "job_rule", "gke_rule", "vertex_rule")


def test_every_rule_of_every_module_is_listed() -> None:
    declared = set()
    for path in (ROOT / "training_platform").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            declares = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DECLARING
            if declares and isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant):
                declared.add(node.args[0].value)

    assert len(declared) > 100
    assert declared <= {sheet.id for sheet in every_rule()} == RULES.keys()
