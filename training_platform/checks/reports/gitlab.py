"""The report as a GitLab code quality artifact: errors and warnings.

Source: GitLab docs, Code Quality, "Code Quality report format": description, check_name, fingerprint, location and one
of five severities.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from training_platform.checks.report import Report, fingerprinted, folded
from training_platform.checks.reports.wording import place, sentences
from training_platform.config.reading.finding import Finding

_SEVERITIES = {"error": "critical", "warning": "minor"}


def gitlab_report(report: Report) -> str:
    """Return the report as a JSON list; it has no way to say what was not checked, which the exit code does."""
    failed = [finding for finding in report.all_findings() if finding.severity in _SEVERITIES]
    more = dict(folded(failed))
    marked = [(finding, mark) for finding, mark in fingerprinted(failed) if finding in more]
    return json.dumps([_entry(finding, mark, more[finding]) for finding, mark in marked], indent=2)


def _entry(finding: Finding, fingerprint: str, more: Sequence[Finding]) -> dict[str, object]:
    at = place(finding)
    return {
        "description": ". ".join(sentences(finding, more)),
        "check_name": finding.rule,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {"path": at.file, "lines": {"begin": at.line}},
    }
