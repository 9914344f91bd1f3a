"""What findings mean that no registered rule makes, of files, ledgers, changes and jobs, and the titles of rule sets.

The words are data, ``descriptions.yaml``. ``describe`` says of any rule id what it is about; reports show it beside
what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from training_platform.catalog.reading import read_file
from training_platform.config.reading.finding import Severity
from training_platform.rules.registry import RULES


class Description(NamedTuple):
    """What a rule looks for, the group that it belongs to, and where its facts come from."""

    id: str
    group: str
    summary: str
    severity: Severity = "error"
    source: str | None = None


_WORDS = read_file(Path(__file__).parent / "descriptions.yaml")
TITLES: Mapping[str, str] = _WORDS["rulesets"]
"""The title of each rule set in the policy pack, where an organisation switches sets on and off."""
GROUPS: Mapping[str, str] = {**TITLES, **_WORDS["groups"]}
"""What each group of rules is about: the rule sets, and what only a check reports."""
REFUSED_BY: Mapping[str, str] = _WORDS["refused_by"]
"""Who says no, by the owner of a rule, else by its group."""
_PARTS = {
    part: tuple(
        Description(name, **{"source": _WORDS["sources"].get(row["group"]), **row})
        for name, row in _WORDS[part].items()
    )
    for part in ("ledger", "files", "changes", "jobs", "pack")
}
LEDGER = _PARTS["ledger"]
UNREGISTERED = {each.id: each for part in _PARTS.values() for each in part}


def describe(rule_id: str) -> Description:
    """Return what a rule is about; one that nobody described has its id for a summary."""
    rule = RULES.get(rule_id)
    if rule is None:
        return UNREGISTERED.get(rule_id, Description(rule_id, "other", rule_id))
    return Description(rule.id, rule.ruleset, rule.summary, rule.severity, rule.source)
