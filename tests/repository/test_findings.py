"""A finding is born in one way: only ``finding`` makes a draft of it, only ``anchored`` makes it a finding."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from training_platform.checks.every_rule import every_rule
from training_platform.config.reading.declaration import RULES

ROOT = Path(__file__).parents[2]
BIRTHS = {
    "Draft": {"training_platform/config/reading/declaration.py:finding"},
    "Finding": {"training_platform/config/reading/declaration.py:anchored"},
    "Rule": {
        "training_platform/config/reading/declaration.py:declare",
        "training_platform/config/reading/declaration.py:decorate",
        "training_platform/checks/comparison/acts.py:",  # of lines that are no findings
        "training_platform/rules/descriptions.py:describe",  # of an id from elsewhere, such as a report's
    },
}
"""The functions that may call each class, by file."""
DECLARING = ("declare", "job_rule", "gke_rule", "vertex_rule")


def _calls() -> dict[str, set[str]]:
    """Return the files and functions that call each class of ``BIRTHS``."""
    calls: dict[str, set[str]] = defaultdict(set)
    for package in ("training_platform", "kueue_model", "local_google_cloud"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "rich.rule" not in text:  # whose Rule draws a line
                _add_calls(calls, ast.parse(text), path.relative_to(ROOT).as_posix(), "")
    return calls


def _add_calls(calls: dict[str, set[str]], node: ast.AST, file: str, function: str) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in BIRTHS:
            calls[child.func.id].add(f"{file}:{function}")
        _add_calls(calls, child, file, child.name if isinstance(child, ast.FunctionDef) else function)


def test_drafts_findings_and_rules_are_made_in_one_place_each() -> None:
    assert _calls() == BIRTHS


@pytest.mark.parametrize("word", ["Flaw", "Conflict", "Promise"])
def test_no_other_class_carries_what_is_wrong(word: str) -> None:
    classes = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in (ROOT / "training_platform").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name == word
    ]

    assert classes == []


def test_every_rule_of_every_module_is_listed() -> None:
    declared = set()
    for path in (ROOT / "training_platform").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            declares = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DECLARING
            if declares and isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant):
                declared.add(node.args[0].value)

    assert len(declared) > 100
    assert declared <= {sheet.id for sheet in every_rule()} == RULES.keys()
