"""Sentences about findings, stacks and prices that all report formats share, so the formats never disagree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import PurePath
from typing import NamedTuple

from training_platform.catalog.prices import EXAMPLES, LEFT_OUT, Cost
from training_platform.checks.change_report import Consequence
from training_platform.checks.effect_kinds import HEADLINES, LOSS_RULES, EffectKind
from training_platform.checks.report import Report, folded, following
from training_platform.checks.reports.conclusion import Conclusion, VerdictState, counted_kinds, of_severities
from training_platform.config.model.stack import stack_name
from training_platform.config.reading.finding import Finding, Position
from training_platform.config.reading.section import counted, listed
from training_platform.config.workspace import stack_file

_MOST_NAMES = 2  # of those who lose something


def conclusion(report: Report) -> Conclusion:
    """Return the conclusion of a check. Failures are counted separately, and consequences are not counted."""
    causes = [finding for finding, _ in folded(report.all_findings())]
    parts = of_severities(causes)
    if exempt := len(report.all_exempted()):
        parts.append(f"{exempt:,} exempt")
    if in_baseline := len(report.all_known()):
        parts.append(f"{in_baseline:,} known")
    if report.failures:
        parts.append(f"{counted(len(report.failures), 'thing')} not checked")
    unread = {stack_name(PurePath(failure.partition(":")[0])) for failure in report.failures} - {None}
    names = unread.union(stack.name for stack in report.stacks)
    if report.comparison:
        names.update(stack.name for stack in report.comparison.stacks if stack.kind == "left")
    stacks = counted(len(names), "stack")
    if not report.known_stacks:
        stacks = "no stack in stacks/ yet"
    elif report.comparison and not names:
        stacks = "no stack is affected"  # jobs and other files are judged
    losses = losses_headline(report)
    failing = losses or any(finding.severity == "error" for finding in causes)
    unjudged = counted_kinds(report.unjudged())
    state: VerdictState = "clean"
    if report.failures:
        state = "unchecked"
    elif failing:
        state = "findings"
    elif unjudged:
        state = "partial"
    return Conclusion(state, stacks, counts=", ".join(parts), losses=losses, unjudged=unjudged)


def losses_headline(report: Report) -> str:
    """Return a summary of what a change takes from whom, the most serious kind of effect first.

    If there is only one kind of effect, the summary names two affected things. Otherwise it names one for the first
    kind, and gives numbers for the others. Withdrawn access is included: it is not a finding, but the result is not
    clean. Acknowledged losses are marked.
    """
    acts = report.comparison.acts if report.comparison else ()
    told: dict[EffectKind, list[Consequence]] = {kind: [] for kind in (*LOSS_RULES, "revokes")}
    for act in acts:
        for consequence in act.consequences:
            if consequence.kind in told:
                told[consequence.kind].append(consequence)
    effects = {kind: losses for kind, losses in told.items() if losses}
    names_of_each = _MOST_NAMES if len(effects) == 1 else 1
    parts = []
    for number, (kind, losses) in enumerate(effects.items()):
        subjects = [subject.partition(" (")[0] for loss in losses for subject in loss.subjects]  # without sizes
        shown = f"{len(subjects):,}" if number else listed(subjects, names_of_each)
        acknowledged = sum(loss.acknowledged for loss in losses)
        note = " (acknowledged)" if acknowledged == len(losses) else ""
        if 0 < acknowledged < len(losses):
            note = f" ({acknowledged} of {len(losses)} acknowledged)"
        parts.append(f"{HEADLINES[kind]}: {shown}{note}")
    return "; ".join(parts)


class FindingPosition(NamedTuple):
    """The position of a finding in a report. Without a line, it is the start of the file."""

    file: str
    line: int
    column: int


def place(finding: Finding) -> FindingPosition:
    """Return the position of a finding: its own, or else its stack's file, or else the folder of all stacks."""
    file = finding.file or (stack_file(finding.stack) if finding.stack else "stacks")
    position = finding.position or Position(1, 1)
    return FindingPosition(file, line=position.line, column=position.column)


def sentences(finding: Finding, more: Sequence[Finding]) -> list[str]:
    """Return the message, the advice and the consequences of a finding; empty sentences are left out."""
    return [sentence for sentence in (field_message(finding), finding.advice, following(more)) if sentence]


def field_message(finding: Finding) -> str:
    """Return the field and its problem, without the position."""
    return ": ".join(part for part in (finding.path, finding.message) if part)


def price(cost: Cost) -> str:
    """Return the hourly cost of a stack and the machines without a price; empty if no price is known.

    If most VMs have no price, no sum is given.
    """
    if not cost.sums_up:
        return (
            f"no sum: {cost.vms_without:,} of {counted(cost.vms, 'VM')} without a price: {listed(cost.machines, 4)}; "
            "add your prices to stacks/prices.yaml"
        )
    if not cost.read:
        return ""
    without = (
        f"; {counted(cost.vms_without, 'VM')} without a price: {', '.join(cost.machines)}" if cost.machines else ""
    )
    return f"at least ${cost.minimum:,.2f} to ${cost.maximum:,.2f} per hour{without}"


def price_note(cost: Cost, today: date) -> str:
    """Return a note on what a price is based on and what it does not include."""
    parts = [f"oldest price read {cost.read}, without {', '.join(LEFT_OUT)}"] if cost.read else []
    if cost.is_example(today):
        parts.append(EXAMPLES)
    if cost.unverified:
        parts.append(f"prices not verified: {', '.join(cost.unverified)}")
    if cost.unpriced:
        parts.append(f"no price known: {', '.join(cost.unpriced)}")
    return "; ".join(parts)
