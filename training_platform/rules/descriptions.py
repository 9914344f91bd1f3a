"""Descriptions of declared rules for people, for ``explain``, reports and the pages of the reference.

``descriptions.yaml`` contains the titles of rule sets and groups. ``coverage.yaml`` lists what Google Cloud and others
are known to refuse, each with the rules that find it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from training_platform.catalog.reading import read_file
from training_platform.config.reading.declaration import RULES, Rule
from training_platform.config.reading.finding import Finding, Severity
from training_platform.resources.plan import OWN_RESOURCES
from training_platform.rules.foreign_access import FOREIGN_ACCESS

_WORDS = read_file(Path(__file__).with_name("descriptions.yaml"))
TITLES: Mapping[str, str] = _WORDS["rulesets"]
"""The title of each rule set in the policy pack. An organisation can enable and disable rule sets."""
GROUPS: Mapping[str, str] = {**TITLES, **_WORDS["groups"]}
"""The title of each group of rules: rule sets, and groups that only checks report."""
REFUSED_BY: Mapping[str, str] = _WORDS["refused_by"]
"""Who refuses what a rule finds, keyed by the rule's owner or else by its group. Notes are refused by nobody."""


def describe(rule_id: str) -> Rule:
    """Return a declared rule. If the id is not declared, the id is also the title."""
    return RULES.get(rule_id) or Rule(id=rule_id, title=rule_id, ruleset="other")


def rule_link(rule_id: str) -> str:
    """Return the path of a rule's heading in the reference, relative to the folder of the reference.

    An id without a description has no heading. The path then leads to the list of all rules.
    """
    group = describe(rule_id).ruleset
    return f"rules/{group}.md#{rule_id}" if group in GROUPS else "rules.md"


@dataclass(frozen=True, kw_only=True)
class RuleSheet:
    """A rule as shown to users. ``details`` are the paragraphs below its summary.

    ``facts`` are the ids of the known refusals that the rule covers.
    """

    id: str
    group: str
    severity: Severity
    summary: str
    refused_by: str
    exemptible: bool
    source: str | None = None
    details: str = ""
    facts: tuple[str, ...] = ()

    @property
    def looks_for(self) -> str:
        """The summary without its verb, so that it can continue a sentence."""
        return self.summary.removeprefix("Find ")


def rule_sheets() -> tuple[RuleSheet, ...]:
    """Return all rules that are declared so far, sorted by group and name; ``checks.every_rule`` has all rules."""
    order = tuple(GROUPS)
    return tuple(sorted(map(rule_sheet, RULES), key=lambda sheet: (order.index(sheet.group), sheet.id)))


def rule_sheet(rule_id: str) -> RuleSheet:
    """Return a rule as shown to users. If the id is not declared, the id is also the title."""
    rule = describe(rule_id)
    refuser = "note" if rule.severity == "note" else rule.owner or rule.ruleset
    return RuleSheet(
        id=rule_id,
        group=rule.ruleset,
        severity=rule.severity,
        summary=rule.title,
        refused_by=rule.refused_by or REFUSED_BY[refuser],
        exemptible=rule.excuse == "exemption",
        source=rule.source,
        details=rule.details,
        facts=tuple(_facts_by_rule().get(rule_id, ())),
    )


def exemption(rule_id: str, finding: Finding | None = None) -> str:
    """Return an entry of ``stacks/exemptions.yaml`` for a finding, with placeholders for reason and owner."""
    stack = (finding.stack if finding else None) or "dev"
    subject = f"path: {(finding.path if finding else '') or '...'}"
    if finding and finding.file == OWN_RESOURCES:
        subject = f"resource: {json.dumps(finding.resource)}"
    if finding and finding.amount is not None:
        quota = f"\n    quota: {json.dumps(finding.about)}" if finding.about else ""
        subject += f"{quota}\n    up_to: {finding.amount:g}"
    if finding and finding.rule == FOREIGN_ACCESS.id:
        subject += f"\n    grant: {json.dumps(finding.about)}"
    return (
        f"exemptions:\n  - rule: {rule_id}\n    stack: {stack}\n    {subject}\n"
        '    reason: ""  # why the rule may be broken here\n    owner: ""  # an address\n    expires: "YYYY-MM-DD"'
    )


def acknowledgement(finding: Finding) -> str:
    """Return an entry of ``stacks/exemptions.yaml`` that acknowledges the losses that a decision causes.

    It is not accepted until somebody signs it.
    """
    subject = f"resource: {json.dumps(finding.resource)}" if finding.resource else f"path: {finding.path or '.'}"
    taken = ""
    from_others: list[str] = []
    for stack, kinds in finding.takes:
        if stack == finding.stack:
            taken = f"    takes: [{', '.join(kinds)}]\n"
        else:
            from_others.append(f"{stack}: [{', '.join(kinds)}]")
    if from_others:
        taken += f"    from_others: {{{', '.join(from_others)}}}\n"
    return (
        f"acknowledged:\n  - stack: {finding.stack}\n    {subject}\n"
        f"    becomes: {json.dumps(finding.becomes)}\n{taken}"
        '    reason: ""  # why the change is right\n    owner: ""  # an address\n    expires: "YYYY-MM-DD"'
    )


@cache
def _facts_by_rule() -> Mapping[str, Sequence[str]]:
    """Return the ids of known refusals by the rules that cover them, in the order of ``coverage.yaml``."""
    facts: dict[str, list[str]] = {}
    for fact, row in read_file(Path(__file__).with_name("coverage.yaml")).items():
        for rule_id in row.get("rules", ()):
            facts.setdefault(rule_id, []).append(fact)
    return facts
