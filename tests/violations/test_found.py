"""Of violations that somebody refused first, the rules find 95 in 100, with resource, input and what is allowed."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

from tests.training_platform.rules.corpus import judged
from tests.violations.draw import FOLDER, Change, Json, damaged, load, valid
from training_platform.config.reading.finding import Finding

LEAST = 0.95
VALID = valid()
RECORDED: list[Json] = [row for name in ("recorded", "answers", "documented") for row in load(FOLDER / f"{name}.yaml")]


def change(row: Json) -> Change:
    return Change(row["of"], row["constraint"], row["values"])


def _findings(name: str, inputs: Json) -> list[Finding]:
    found = judged({"resources": {name: {"type": VALID[name]["type"], "inputs": inputs}}})
    return [each for each in found if each.severity in ("error", "warning")]


@cache
def _before(name: str) -> frozenset[tuple[Any, ...]]:
    return frozenset((each.rule, each.path, each.message) for each in _findings(name, VALID[name]["inputs"]))


def found(row: Json) -> list[Finding]:
    """Return what the rules find at the damaged inputs, or at the block that they stand in."""
    new = _findings(row["of"], damaged(VALID[row["of"]]["inputs"], change(row)))
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


def test_a_valid_object_of_every_kind_breaks_no_rule() -> None:
    errors = {name: [each for each in _findings(name, row["inputs"]) if each.severity == "error"]
              for name, row in VALID.items()}  # fmt: skip

    assert {name: rows for name, rows in errors.items() if rows} == {}


def test_the_record_has_300_violations_of_every_kind_of_constraint_and_object() -> None:
    kinds, refusers = Counter(row["constraint"] for row in RECORDED), Counter(row.get("by") for row in RECORDED)

    assert len(RECORDED) >= 300
    assert {kind for kind, count in kinds.items() if count >= 5} >= {
        "type", "enum", "required", "unknown", "range", "format", "count", "together", "order", "unique", "conflict",
    }  # fmt: skip
    assert refusers["server"] >= 100
    assert refusers["provider"] >= 100
    assert {row["of"] for row in RECORDED} >= VALID.keys() - {"board", "router"}


def test_95_in_100_violations_are_found_where_they_are() -> None:
    missed = [row for row in RECORDED if not found(row)]
    said = "\n".join(f"{row['of']} {row['values']}: {row.get('says', row.get('fact'))}" for row in missed)

    assert len(missed) <= (1 - LEAST) * len(RECORDED), said


def test_what_is_found_names_resource_input_and_what_is_allowed() -> None:
    for row in RECORDED:
        for each in found(row):
            assert each.resource == f"{VALID[row['of']]['type']} {row['of']}"
            assert each.path, each
            assert each.allowed, each
            assert each.message, each
