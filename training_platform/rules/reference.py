"""What is known of every rule by name, for ``explain``, ``rules list`` and the pages of the reference."""

from __future__ import annotations

from dataclasses import dataclass

from training_platform.config.reading.finding import Severity
from training_platform.rules import RULES
from training_platform.rules.descriptions import GROUPS, REFUSED_BY, UNREGISTERED, Description, describe
from training_platform.rules.exemptions import EXEMPTIBLE


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
    return tuple(sorted(map(rule_sheet, names), key=lambda each: (order.index(each.group), each.id)))


def rule_sheet(rule_id: str) -> RuleSheet:
    """Return what is known of a rule; one that nobody described has its id for a summary."""
    told: Description = describe(rule_id)
    rule = RULES.get(rule_id)
    return RuleSheet(
        id=rule_id,
        group=told.group,
        severity=told.severity,
        summary=told.summary,
        refused_by=REFUSED_BY[rule.owner if rule else told.group],
        source=told.source,
        details=_details(rule.check.__doc__) if rule else "",
        facts=rule.facts if rule else (),
    )


def exemption(rule_id: str, *, stack: str = "dev", path: str = "...") -> str:
    """Return the entry of ``stacks/exemptions.yaml`` for a section of a stack; reason, owner and day are to fill in."""
    return (
        f"exemptions:\n  - rule: {rule_id}\n    stack: {stack}\n    path: {path}\n"
        '    reason: why it holds here\n    owner: who@example.com\n    expires: "YYYY-MM-DD"'
    )


def _details(docstring: str | None) -> str:
    paragraphs = (docstring or "").strip().split("\n\n")[1:]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
