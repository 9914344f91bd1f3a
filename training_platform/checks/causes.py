"""Finds consequences: findings that disappear when another finding is fixed. Each names its cause and gives no advice.

The code that reports a finding sets which places of stack files it makes unreliable (``spoils``), and on which places
it depends (``rests_on``). This module connects them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from training_platform.checks.report import Report, following, ordered
from training_platform.config.reading.finding import Finding, Place


def with_causes(report: Report, unread: Mapping[str, str]) -> Report:
    """Return the report in which every finding that follows from another one names it as its cause; takes linear time.

    ``unread`` contains, for each file that cannot be read, the report's failure about it.
    """
    report = _below_failures(report, unread)
    errors = [finding for finding in report.all_findings() if finding.severity == "error"]
    every = _spoilers(errors)  # only a finding that follows from no other is named as a cause
    roots = _spoilers(error for error in errors if not error.follows and _cause(error, every) is None)

    def settled(finding: Finding) -> Finding:
        cause = _cause(finding, roots)
        if cause is None:
            return finding
        return replace(finding, follows=cause.place, root=cause.mark, allowed=None, nearest=None)

    stacks = tuple(replace(stack, findings=tuple(map(settled, stack.findings))) for stack in report.stacks)
    return replace(report, stacks=stacks, findings=tuple(map(settled, report.findings)))


def _spoilers(errors: Iterable[Finding]) -> dict[Place, Finding]:
    """Return the first error that makes each place unreliable, preferably one that does not depend on that place."""
    spoilers: dict[Place, Finding] = {}
    resting: dict[Place, Finding] = {}
    for error in errors:
        for place in error.spoils:
            (resting if place in error.rests_on else spoilers).setdefault(place, error)
    return {**resting, **spoilers}


def _cause(finding: Finding, spoilers: Mapping[Place, Finding]) -> Finding | None:
    """Return the error from which a finding follows, or None. A finding is never its own cause."""
    causes = (spoilers.get(place, finding) for place in finding.rests_on)
    return next((cause for cause in causes if cause != finding), None)


def _below_failures(report: Report, unread: Mapping[str, str]) -> Report:
    """Return the report in which the consequences of an unreadable file are part of the failure about that file."""
    unread = {file: sentence for file, sentence in unread.items() if sentence in report.failures}
    behind: dict[str, list[Finding]] = {}
    for finding in ordered(report.all_findings()):
        files = (file for file, *keys in finding.rests_on if not keys and file in unread)
        if file := next(files, None):
            behind.setdefault(unread[file], []).append(finding)
    dropped = {finding for findings in behind.values() for finding in findings}

    def kept(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(finding for finding in findings if finding not in dropped)

    stacks = tuple(replace(stack, findings=kept(stack.findings)) for stack in report.stacks)
    failures = tuple(
        f"{failure.removesuffix('.')}.\n  {following(behind[failure])}." if failure in behind else failure
        for failure in report.failures
    )
    return replace(report, stacks=stacks, findings=kept(report.findings), failures=failures)
