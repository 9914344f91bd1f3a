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
    found = judged({"resources": {name: {"type": VALID[name]["type"], "inputs": inputs}}})
    return [each for each in found if each.severity in ("error", "warning")]


@cache
def _before(name: str) -> frozenset[tuple[Any, ...]]:
    return frozenset((each.rule, each.path, each.message) for each in findings_of(name, VALID[name]["inputs"]))


def found(row: Json) -> list[Finding]:
    """Return what the rules find at the damaged inputs, or at the block that they stand in."""
    new = findings_of(row["of"], damaged(VALID[row["of"]]["inputs"], change(row)))
    return [
        each
        for each in new
        if (each.rule, each.path, each.message) not in _before(row["of"])
        and any(_is_at(each.path or "", path) for path in row["values"])
    ]


def _is_at(path: str, damage: str) -> bool:
    """Whether a path is in the block of a damaged input, or above it; places in lists are left aside."""
    path, damage = re.sub(r"\[\d+\]", "", path), re.sub(r"\.\d+\b", "", damage.replace("\\.", "."))
    block = damage.rpartition(".")[0]
    return path.startswith(block) or damage.startswith(path)
