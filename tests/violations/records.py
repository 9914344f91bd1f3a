"""Violations that somebody refused first, and what the rules find of them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tests.training_platform.rules.corpus import judged
from tests.violations.draw import FOLDER, Change, Json, damaged, load, valid
from training_platform.config.reading.finding import Finding

VALID = valid()
RECORDED: list[Json] = [row for name in ("recorded", "answers", "documented") for row in load(FOLDER / f"{name}.yaml")]


def change(row: Json) -> Change:
    return Change(row["of"], row["constraint"], row["values"])


def findings_of(name: str, inputs: Json) -> list[Finding]:
    findings = judged({"resources": {name: {"type": VALID[name]["type"], "inputs": inputs}}})
    return [finding for finding in findings if finding.severity in ("error", "warning")]


@cache
def _before(name: str) -> frozenset[tuple[Any, ...]]:
    return frozenset(
        (finding.rule, finding.path, finding.message) for finding in findings_of(name, VALID[name]["inputs"])
    )


def found(row: Json) -> list[Finding]:
    """Return the findings at the damaged inputs, or at the block that contains them."""
    new = findings_of(row["of"], damaged(VALID[row["of"]]["inputs"], change(row)))
    return [
        finding
        for finding in new
        if (finding.rule, finding.path, finding.message) not in _before(row["of"])
        and any(_is_at(finding.path or "", path) for path in row["values"])
    ]


def _is_at(path: str, damage: str) -> bool:
    """Whether a path is in the block of a damaged input, or above it; places in lists are left aside."""
    path, damage = re.sub(r"\[\d+\]", "", path), re.sub(r"\.\d+\b", "", damage.replace("\\.", "."))
    block = damage.rpartition(".")[0]
    return path.startswith(block) or damage.startswith(path)
