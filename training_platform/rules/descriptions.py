"""Every rule by name, for ``explain``, ``rules list``, reports and the pages of the reference.

``descriptions.yaml`` has the titles of rule sets, and the words for findings that no registered rule makes: of files,
ledgers, changes and jobs. ``coverage.yaml`` has the known refusals, each with the rules that carry it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from training_platform.catalog.reading import read_file
from training_platform.config.reading.finding import Finding, Severity
from training_platform.rules import RULES


class Description(NamedTuple):
    """What a rule looks for, the group that it belongs to, and where its facts come from."""

    id: str
    group: str
    summary: str
    severity: Severity = "error"
    source: str | None = None


_WORDS = read_file(Path(__file__).with_name("descriptions.yaml"))
TITLES: Mapping[str, str] = _WORDS["rulesets"]
"""The title of each rule set in the policy pack, where an organisation switches sets on and off."""
GROUPS: Mapping[str, str] = {**TITLES, **_WORDS["groups"]}
"""What each group of rules is about: the rule sets, and what only a check reports."""
REFUSED_BY: Mapping[str, str] = _WORDS["refused_by"]
"""Who says no, by a rule's id, else nobody to a note, else by its owner, else by its group."""
_PARTS = {
    part: tuple(
        Description(name, **{"source": _WORDS["sources"].get(row["group"]), **row})
        for name, row in _WORDS[part].items()
    )
    for part in ("ledger", "files", "losses", "changes", "jobs", "pack")
}
LEDGER = _PARTS["ledger"]
EXEMPTIBLE = frozenset({*RULES, *(row.id for row in LEDGER)})
"""Rules that ``stacks/exemptions.yaml`` may name."""
LOSSES = frozenset(row.id for row in _PARTS["losses"])
"""Rules of what a change takes from somebody, which an acknowledgement in ``stacks/exemptions.yaml`` may name."""
UNREGISTERED = {row.id: row for part in _PARTS.values() for row in part}


def describe(rule_id: str) -> Description:
    """Return what a rule is about; one that nobody described has its id for a summary."""
    rule = RULES.get(rule_id)
    if rule is None:
        return UNREGISTERED.get(rule_id, Description(rule_id, "other", rule_id))
    return Description(rule.id, rule.ruleset, rule.summary, rule.severity, rule.source)


@dataclass(frozen=True, kw_only=True)
class RuleSheet:
    """One rule as people read it; ``details`` are the paragraphs below its summary, ``facts`` ids of known refusals."""

    id: str
    group: str
    severity: Severity
    summary: str
    refused_by: str
    source: str | None = None
    details: str = ""
    facts: tuple[str, ...] = ()

    @property
    def exemptible(self) -> bool:
        """Whether ``stacks/exemptions.yaml`` may name it."""
        return self.id in EXEMPTIBLE

    @property
    def looks_for(self) -> str:
        """The summary as the rest of a sentence: what the rule looks for."""
        return self.summary.removeprefix("Find ")


def rule_sheets() -> tuple[RuleSheet, ...]:
    """Return every rule: by group, and in a group by name."""
    names = (*RULES, *UNREGISTERED)
    order = tuple(GROUPS)
    return tuple(sorted(map(rule_sheet, names), key=lambda sheet: (order.index(sheet.group), sheet.id)))


def rule_sheet(rule_id: str) -> RuleSheet:
    """Return what is known of a rule; one that nobody described has its id for a summary."""
    rule, described = RULES.get(rule_id), describe(rule_id)
    paragraphs = ((rule.check.__doc__ if rule else None) or "").strip().split("\n\n")[1:]
    who = "note" if described.severity == "note" else rule.owner if rule else described.group
    return RuleSheet(
        id=rule_id,
        group=described.group,
        severity=described.severity,
        summary=described.summary,
        refused_by=REFUSED_BY.get(rule_id) or REFUSED_BY[who],
        source=described.source,
        details="\n\n".join(" ".join(text.split()) for text in paragraphs),
        facts=tuple(fact for fact, row in _refusals().items() if rule_id in row.get("rules", ())),
    )


def exemption(rule_id: str, *, stack: str = "dev", path: str = "...") -> str:
    """Return the entry of ``stacks/exemptions.yaml`` for a section of a stack; reason, owner and day are to fill in."""
    return (
        f"exemptions:\n  - rule: {rule_id}\n    stack: {stack}\n    path: {path}\n"
        '    reason: why it holds here\n    owner: who@example.com\n    expires: "YYYY-MM-DD"'
    )


def acknowledgement(finding: Finding) -> str:
    """Return the entry of ``stacks/exemptions.yaml`` that lets a loss through; reason, owner and day are to fill in."""
    return (
        f"acknowledged:\n  - effect: {finding.rule}\n    stack: {finding.stack}\n    path: {finding.path or '.'}\n"
        f"    becomes: {json.dumps(finding.becomes)}\n"
        '    reason: why it is right\n    owner: who@example.com\n    until: "YYYY-MM-DD"'
    )


@cache
def _refusals() -> Mapping[str, Mapping[str, Sequence[str]]]:
    return read_file(Path(__file__).with_name("coverage.yaml"))
