"""Reports findings for code review: as GitLab's code quality artifact, and as GitHub's annotations.

Sources: GitLab docs, Code Quality, "Code Quality report format": description, check_name, fingerprint, location and one
of five severities. GitHub docs, Workflow commands, with escapes as in actions/toolkit, command.ts. GitHub shows only
the first ten errors and the first ten warnings of a step, so a summary has to contain the others.
"""

from __future__ import annotations

import hashlib
import json

from training_platform.checks.report import Report, finding_groups, folded
from training_platform.checks.reports.conclusion import more_about
from training_platform.checks.reports.wording import conclusion, place, sentences
from training_platform.config.reading.finding import printable
from training_platform.config.workspace import STACKS_FOLDER

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_SEVERITIES = {"error": "critical", "warning": "minor"}


def gitlab_report(report: Report) -> str:
    """Return the report as a JSON list. If something could not be evaluated, the last item is the conclusion.

    If something was not checked, only the exit code shows it.
    """
    failed = [finding for finding in report.all_findings() if finding.severity in _SEVERITIES]
    issues = []
    for finding, more, fingerprint in finding_groups(failed):
        position = place(finding)
        issues.append(
            {
                "description": ". ".join([*sentences(finding, more), more_about(finding)]),
                "check_name": finding.rule,
                "fingerprint": fingerprint,
                "severity": _SEVERITIES[finding.severity],
                "location": {"path": position.file, "lines": {"begin": position.line}},
            }
        )
    if report.unjudged():
        verdict = str(conclusion(report))
        issues.append(
            {
                "description": verdict,
                "check_name": "verdict",
                "fingerprint": hashlib.sha256(b"verdict").hexdigest(),
                "severity": "info",
                "location": {"path": STACKS_FOLDER, "lines": {"begin": 1}},
            }
        )
    return json.dumps(issues, indent=2)


def github_report(report: Report) -> str:
    """Return the report as workflow commands, errors first. The conclusion is last if something was not evaluated."""
    lines = [_command("error", {"title": "not checked"}, failure) for failure in report.failures]
    groups = sorted(folded(report.all_findings()), key=lambda group: list(_COMMANDS).index(group[0].severity))
    for finding, more in groups:
        position = place(finding)
        properties = {
            "file": position.file,
            "line": str(position.line),
            "col": str(position.column),
            "title": finding.rule,
        }
        text = "\n".join([*sentences(finding, more), more_about(finding)])
        lines.append(_command(_COMMANDS[finding.severity], properties, text))
    if report.unjudged():
        lines.append(_command("notice", {"title": "verdict"}, str(conclusion(report))))
    return "\n".join(lines)


def _command(name: str, properties: dict[str, str], text: str) -> str:
    fields = ",".join(f"{key}={_escaped(value, more=':,')}" for key, value in properties.items())
    return f"::{name} {fields}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return printable(text)
