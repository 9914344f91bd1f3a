"""Who says no: an error is what a server, a document or an answer refuses; what is inferred is a warning."""

from __future__ import annotations

import re

from training_platform.rules import view_rules
from training_platform.rules.descriptions import rule_sheet

PROVED_BY_OWNER = ("provider", "kubernetes", "kueue", "documents")  # asked, or read in what they publish


def test_an_error_without_a_row_is_proved_by_its_owner_or_read_in_google_s_documents() -> None:
    without = [rule for rule in view_rules() if rule.severity == "error" and not rule_sheet(rule.id).facts]

    for rule in without:
        assert rule.owner in (*PROVED_BY_OWNER, "house") or re.search(r"docs|API|googleapis", rule.source or ""), (
            rule.id
        )
