"""Who says no: an error is what a server, a document or an answer refuses; what is inferred is a warning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from training_platform.rules import RULES
from training_platform.rules.descriptions import rule_sheet
from training_platform.rules.registry import Rule

FACTS = Path(__file__).parents[4] / "shared" / "facts" / "refusals.md"
PROVED_BY_OWNER = ("provider", "kubernetes", "kueue", "documents")  # asked, or read in what they publish
REVIEWED = {  # errors whose rows of the sheet speak of silence or of inference, and why they are errors all the same
    "tpu-flavor-topology": "the sheet asks for an error: pods wait for ever for a slice that no pool makes",
    "subnet-region": "the API refuses a subnet of another region; only other zones are silent in that row",
    "key-location": "Cloud KMS refuses to encrypt in another location; only other zones are silent in that row",
    "disk-key-location": "as key-location",
    "filestore-key": "as key-location",
    "bucket-key-location": "as key-location",
}


@pytest.fixture(scope="module")
def rows() -> dict[str, tuple[str, str]]:
    """What happens and how certain that is, by the row of the fact sheet."""
    if not FACTS.exists():
        pytest.skip("the fact sheet is not beside this checkout")
    lines = [line.split(" | ") for line in FACTS.read_text(encoding="utf-8").splitlines()]
    return {cells[0].removeprefix("| "): (cells[2], cells[4]) for cells in lines
            if re.fullmatch(r"\| [A-Z]{3}-\d\d", cells[0]) and len(cells) >= 5}  # fmt: skip


def _refuses(rule: Rule, rows: dict[str, tuple[str, str]]) -> bool:
    """Whether one row that the rule carries is a refusal, or an end in an error or for ever, that somebody proved."""
    known = [rows[fact] for fact in rule_sheet(rule.id).facts if fact in rows]
    return any(
        re.search("REFUSED|PLAN|ERROR|STUCK|error", happens) and not re.fullmatch(r"I( .*)?", certainty)
        for happens, certainty in known
    )


def test_an_error_is_what_somebody_refuses(rows: dict[str, tuple[str, str]]) -> None:
    errors = [
        rule
        for rule in RULES.values()
        if rule.severity == "error" and rule.owner != "house" and rule_sheet(rule.id).facts
    ]
    doubtful = {rule.id for rule in errors if rule.owner not in PROVED_BY_OWNER and not _refuses(rule, rows)}

    assert doubtful <= REVIEWED.keys()
    assert REVIEWED.keys() & RULES.keys() <= {rule.id for rule in errors}


def test_an_error_without_a_row_is_proved_by_its_owner_or_read_in_google_s_documents() -> None:
    without = [rule for rule in RULES.values() if rule.severity == "error" and not rule_sheet(rule.id).facts]

    for rule in without:
        assert rule.owner in (*PROVED_BY_OWNER, "house") or re.search(r"docs|API|googleapis", rule.source), rule.id
