"""Writes ``rulesets.json``, the rule sets of the declared rules. ``make reference`` runs it."""

from __future__ import annotations

import json

from training_platform.config.workspace import EXISTING_RANGES_OVERLAP
from training_platform.policy.evaluation import FIXES
from training_platform.policy.settings import QUOTA, RULESETS_FILE
from training_platform.rules import view_rules
from training_platform.rules.descriptions import TITLES
from training_platform.rules.exemptions import EXEMPTIBLE

_QUOTA = "Quotas and capacity, with the demand of the other stacks of a checkout."


def text() -> str:
    """Return the file's text."""
    rows: dict[str, dict[str, object]] = {}
    for name in dict.fromkeys(rule.ruleset for rule in view_rules()):
        rules = [rule for rule in view_rules() if rule.ruleset == name]
        flags = {
            "across": any(rule.across for rule in rules),
            "house": any(rule.owner == "house" for rule in rules),
            "fixes": name in FIXES,
        }
        marks = {flag: True for flag, holds in flags.items() if holds}
        rows[name] = {"title": TITLES[name], **marks, "rules": sorted(rule.id for rule in rules)}
    rows[QUOTA] = {
        "title": _QUOTA,
        "rules": sorted(EXEMPTIBLE - {rule.id for rule in view_rules()} - {EXISTING_RANGES_OVERLAP.id}),
    }
    return json.dumps(rows, indent=1) + "\n"


if __name__ == "__main__":
    RULESETS_FILE.write_text(text(), encoding="utf-8")
