"""Sets findings aside that were there before: in the base of a change, or in the baseline of the repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from training_platform.checks.report import Known, Report
from training_platform.checks.reports.fingerprints import fingerprinted
from training_platform.config.reading.finding import Finding


def set_aside(report: Report, known: Mapping[str, str]) -> Report:
    """Return the report in which findings with these fingerprints do not count; each has the reason."""
    reasons = {id(finding): known[mark] for finding, mark in fingerprinted(report.all_findings()) if mark in known}
    stacks = []
    for stack in report.stacks:
        counted, aside = _split(stack.findings, reasons)
        stacks.append(replace(stack, findings=counted, known=(*stack.known, *aside)))
    counted, aside = _split(report.findings, reasons)
    return replace(report, stacks=tuple(stacks), findings=counted, known=(*report.known, *aside))


def _split(findings: Iterable[Finding], reasons: Mapping[int, str]) -> tuple[tuple[Finding, ...], tuple[Known, ...]]:
    findings = tuple(findings)
    counted = tuple(finding for finding in findings if id(finding) not in reasons)
    aside = tuple(Known(finding, reasons[id(finding)]) for finding in findings if id(finding) in reasons)
    return counted, aside
