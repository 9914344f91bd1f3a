"""Fingerprints of findings: the same while a finding is the same, wherever in its file it stands.

By them findings are set aside that were there before: in the base of a change, or in the baseline of the repository.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from training_platform.checks.report import Known, Report, ordered
from training_platform.config.reading.finding import Finding

# What a message names before these words tells two findings of one field apart; what follows are amounts, which change.
_SUBJECT_ENDS = {"quota-exceeded": " needs ", "quota-unknown": ", which "}


def fingerprinted(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Yield findings in order of place, each with a fingerprint that no other has: 64 hexadecimal digits.

    It rests on rule, file, path and resource, so neither a moved line nor a changed amount makes a finding new. Of
    several findings that agree in all of these the fingerprints differ by their order.
    """
    found = ordered(findings)
    yield from zip(found, fingerprints(map(identity, found)), strict=True)


def fingerprints(identities: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the fingerprint of each identity; of equal ones each has another."""
    seen: Counter[tuple[str, ...]] = Counter()
    for each in identities:
        seen[each] += 1
        yield hashlib.sha256("\0".join((*each, str(seen[each]))).encode()).hexdigest()


def identity(finding: Finding) -> tuple[str, ...]:
    """Return what stays of a finding while it is the same: rule, file or stack, path, resource, and its subject."""
    end = _SUBJECT_ENDS.get(finding.rule)
    subject = finding.message.partition(end)[0] if end else ""
    return (finding.rule, finding.file or finding.stack or "", finding.path, finding.resource or "", subject)


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
