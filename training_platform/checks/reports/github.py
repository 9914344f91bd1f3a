"""The report as GitHub annotations: one workflow command a line, errors first.

GitHub shows the first ten errors and the first ten warnings of a step, so a summary beside them has to hold the rest.
Source: GitHub docs, Workflow commands; escapes as in actions/toolkit, command.ts.
"""

from __future__ import annotations

from collections.abc import Sequence

from training_platform.checks.report import Report, folded
from training_platform.checks.reports.wording import place, sentences
from training_platform.config.reading.finding import Finding, printable

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github_report(report: Report) -> str:
    """Return the report as workflow commands; nothing where nothing was found."""
    lines = [_command("error", {"title": "not checked"}, failure) for failure in report.failures]
    found = folded(report.all_findings())
    lines += [_annotation(*each) for severity in _COMMANDS for each in found if each[0].severity == severity]
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
