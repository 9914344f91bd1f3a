"""Sentences about findings, stacks and prices that every format of a report shares, so that no two of them disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from training_platform.catalog.prices import LEFT_OUT, Cost
from training_platform.checks.report import Report
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import listed


class Verdict(NamedTuple):
    """What a whole check comes to; ``said`` are counts such as ``2 errors``, joined by commas."""

    state: Literal["clean", "findings", "unchecked"]
    stacks: str
    said: str

    def __str__(self) -> str:
        """Return the verdict as one line."""
        if self.state == "clean":
            return f"{self.stacks}: clean" + (f", {self.said}" if self.said else "")
        return f"{self.stacks}: {self.said}"


class Place(NamedTuple):
    """Where a finding is shown; a finding that knows no line stands at the start of its file."""

    file: str
    line: int
    column: int


def verdict(report: Report) -> Verdict:
    """Return what a check comes to."""
    counts = {"error": 0, "warning": 0, "note": 0}
    for finding in report.all_findings():
        counts[finding.severity] += 1
    parts = [counted(count, severity) for severity, count in counts.items() if count]
    if exempt := len(report.all_exempted()):
        parts.append(f"{exempt:,} exempt")
    if known := len(report.all_known()):
        parts.append(f"{known:,} known")
    stacks = counted(len(report.stacks), "stack") if report.known_stacks else "no stack in stacks/ yet"
    if report.failures:
        return Verdict(
            "unchecked", stacks, ", ".join([f"{counted(len(report.failures), 'thing')} not checked", *parts])
        )
    return Verdict("findings" if counts["error"] else "clean", stacks, ", ".join(parts))


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def place(finding: Finding) -> Place:
    """Return where to show a finding: its own place, else its stack's file, else the folder of all stacks."""
    file = finding.file or (f"stacks/Pulumi.{finding.stack}.yaml" if finding.stack else "stacks")
    return Place(file, *(finding.position or (1, 1)))


def following(findings: Sequence[Finding], most: int = 3) -> str:
    """Return what follows from a finding, by place; empty where nothing does."""
    places = list(dict.fromkeys(each.place for each in findings))
    verb = "follows" if len(findings) == 1 else "follow"
    return f"and {len(findings):,} more that {verb} from it: {listed(places, most=most)}" if findings else ""


def advice(finding: Finding) -> str:
    """Return what is allowed and the nearest value that passes, empty where the rule names neither."""
    parts = []
    if finding.allowed:
        parts.append(f"Allowed: {finding.allowed}.")
    if finding.nearest:
        parts.append(f"Nearest: {finding.nearest}")
    return " ".join(parts)


def more_about(finding: Finding) -> str:
    """Return the command that says of a finding's rule what it is, why, how to fix it and how to exempt it."""
    return f"More about it: training-platform explain {finding.rule}"


def sentences(finding: Finding, more: Sequence[Finding]) -> list[str]:
    """Return what a report without columns says of a finding and of what follows from it."""
    every = (said(finding), advice(finding), following(more), more_about(finding))
    return [each for each in every if each]


def said(finding: Finding) -> str:
    """Return the field and what is wrong with it, without the place."""
    return ": ".join(part for part in (finding.path, finding.message) if part)


def price(cost: Cost) -> str:
    """Return what a stack costs per hour, empty where no price is known; ``price_note`` says what is not in it."""
    return f"at least ${cost.least:,.2f} to ${cost.most:,.2f} per hour" if cost.read else ""


def price_note(cost: Cost) -> str:
    """Return what a price rests on and what it leaves out."""
    parts = [f"at prices of {cost.read}, without {', '.join(LEFT_OUT)}"] if cost.read else []
    if cost.unverified:
        parts.append(f"prices not verified: {', '.join(cost.unverified)}")
    if cost.unpriced:
        parts.append(f"no price known: {', '.join(cost.unpriced)}")
    return "; ".join(parts)
