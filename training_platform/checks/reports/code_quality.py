"""Findings where a change is reviewed: GitLab's code quality artifact, and GitHub's annotations.

Sources: GitLab docs, Code Quality, "Code Quality report format": description, check_name, fingerprint, location and one
of five severities. GitHub docs, Workflow commands; escapes as in actions/toolkit, command.ts. GitHub shows the first
ten errors and the first ten warnings of a step, so a summary beside them has to hold the rest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from training_platform.catalog.types import Json
from training_platform.checks.report import Entry, Report, entries, folded
from training_platform.checks.reports.wording import place, sentences
from training_platform.config.reading.finding import Finding, printable

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_SEVERITIES = {"error": "critical", "warning": "minor"}


def gitlab_report(report: Report) -> str:
    """Return the report as a JSON list; it has no way to say what was not checked, which the exit code does."""
    failed = [finding for finding in report.all_findings() if finding.severity in _SEVERITIES]
    return json.dumps([_issue(entry) for entry in entries(failed)], indent=2)


def _issue(entry: Entry) -> Json:
    at = place(entry.finding)
    return {
        "description": ". ".join(sentences(entry.finding, entry.more)),
        "check_name": entry.finding.rule,
        "fingerprint": entry.fingerprint,
        "severity": _SEVERITIES[entry.finding.severity],
        "location": {"path": at.file, "lines": {"begin": at.line}},
    }


def github_report(report: Report) -> str:
    """Return the report as workflow commands, one a line, errors first; nothing where nothing was found."""
    lines = [_command("error", {"title": "not checked"}, failure) for failure in report.failures]
    groups = folded(report.all_findings())
    lines += [_annotation(*group) for severity in _COMMANDS for group in groups if group[0].severity == severity]
    return "\n".join(lines)


def _annotation(finding: Finding, more: Sequence[Finding]) -> str:
    at = place(finding)
    properties = {"file": at.file, "line": str(at.line), "col": str(at.column), "title": finding.rule}
    return _command(_COMMANDS[finding.severity], properties, "\n".join(sentences(finding, more)))


def _command(name: str, properties: dict[str, str], text: str) -> str:
    given = ",".join(f"{key}={_escaped(value, more=':,')}" for key, value in properties.items())
    return f"::{name} {given}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return printable(text)
