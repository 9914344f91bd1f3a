"""Every rule by name, for ``explain``, ``rules list``, reports and the pages of the reference.

``descriptions.yaml`` has the titles of rule sets, and the summaries of findings without a declared rule: of files,
ledgers, changes and jobs. ``coverage.yaml`` has the known refusals, each with its rules.
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
    """A rule's summary, its group, and the source of its facts."""

    id: str
    group: str
    summary: str
    severity: Severity = "error"
    source: str | None = None


_WORDS = read_file(Path(__file__).with_name("descriptions.yaml"))
TITLES: Mapping[str, str] = _WORDS["rulesets"]
"""The title of each rule set in the policy pack, which an organisation can switch on and off."""
GROUPS: Mapping[str, str] = {**TITLES, **_WORDS["groups"]}
"""The title of each group of rules: the rule sets, and groups that only a check reports."""
REFUSED_BY: Mapping[str, str] = _WORDS["refused_by"]
"""Who refuses: by a rule's id, else nobody for a note, else by its owner, else by its group."""
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
"""Rules about losses by a change, which an acknowledgement in ``stacks/exemptions.yaml`` may name."""
UNREGISTERED = {row.id: row for part in _PARTS.values() for row in part}


def describe(rule_id: str) -> Description:
    """Return the description of a rule; without one, its id is the summary."""
    rule = RULES.get(rule_id)
    if rule is None:
        return UNREGISTERED.get(rule_id, Description(rule_id, "other", rule_id))
    return Description(rule.id, rule.ruleset, rule.summary, rule.severity, rule.source)


def rule_link(rule_id: str) -> str:
    """Return the path of a rule's heading in the reference, from the folder of the reference.

    An id without a description has no heading: the path is that of the list of all rules.
    """
    group = describe(rule_id).group
    return f"rules/{group}.md#{rule_id}" if group in GROUPS else "rules.md"


@dataclass(frozen=True, kw_only=True)
class RuleSheet:
    """A rule as users read it; ``details`` are the paragraphs below its summary, ``facts`` ids of known refusals."""

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
        """The summary without its verb, to continue a sentence."""
        return self.summary.removeprefix("Find ")


def rule_sheets() -> tuple[RuleSheet, ...]:
    """Return every rule, sorted by group and name."""
    names = (*RULES, *UNREGISTERED)
    order = tuple(GROUPS)
    return tuple(sorted(map(rule_sheet, names), key=lambda sheet: (order.index(sheet.group), sheet.id)))


def rule_sheet(rule_id: str) -> RuleSheet:
    """Return a rule as users read it; without a description, its id is the summary."""
    rule = RULES.get(rule_id)
    described = describe(rule_id)
    paragraphs = ((rule.check.__doc__ if rule else None) or "").strip().split("\n\n")[1:]
    if described.severity == "note":
        refuser = "note"
    elif rule:
        refuser = rule.owner
    else:
        refuser = described.group
    return RuleSheet(
        id=rule_id,
        group=described.group,
        severity=described.severity,
        summary=described.summary,
        refused_by=REFUSED_BY.get(rule_id) or REFUSED_BY[refuser],
        source=described.source,
        details="\n\n".join(" ".join(text.split()) for text in paragraphs),
        facts=tuple(fact for fact, row in _refusals().items() if rule_id in row.get("rules", ())),
    )


def exemption(rule_id: str, *, stack: str = "dev", path: str = "...") -> str:
    """Return an entry of ``stacks/exemptions.yaml`` for a section, with placeholders for reason and owner."""
    return (
        f"exemptions:\n  - rule: {rule_id}\n    stack: {stack}\n    path: {path}\n"
        '    reason: why it holds here\n    owner: who@example.com\n    expires: "YYYY-MM-DD"'
    )


def acknowledgement(finding: Finding) -> str:
    """Return an entry of ``stacks/exemptions.yaml`` for a loss, with placeholders for reason and owner."""
    subject = f"resource: {json.dumps(finding.resource)}" if finding.resource else f"path: {finding.path or '.'}"
    return (
        f"acknowledged:\n  - effect: {finding.rule}\n    stack: {finding.stack}\n    {subject}\n"
        f"    becomes: {json.dumps(finding.becomes)}\n"
        '    reason: why it is right\n    owner: who@example.com\n    expires: "YYYY-MM-DD"'
    )


@cache
def _refusals() -> Mapping[str, Mapping[str, Sequence[str]]]:
    return read_file(Path(__file__).with_name("coverage.yaml"))
