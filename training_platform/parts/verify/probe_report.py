"""The report of a run: the verdicts of each stage with their evidence, as text, JSON or an HTML page.

The report can be sent to others, since addresses of people and groups, the project, billing accounts and tokens are
replaced, and Secrets are never read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.checks.reports.tables import Fullness, ReportRow, ReportSection
from training_platform.parts.verify.probe_table import PROBES
from training_platform.parts.verify.probes import STAGES, VERDICTS, Answer, Probe, ProbeResult, Verdict

FORMATS: Final = ("text", "json", "html")
WORDS: Final[Mapping[Verdict, str]] = {
    "failed": "failed",
    "refuted": "refuted",
    "undecided": "not decided",
    "proven": "proven",
}
_FULLNESS: Final[Mapping[Verdict, Fullness]] = {
    "failed": "over",
    "refuted": "over",
    "undecided": "unknown",
    "proven": "fits",
}
_ADDRESS: Final = re.compile(r"[\w.+-]+@(?![\w.-]*gserviceaccount\.com)[\w-]+(?:\.[\w-]+)+")
_TOKEN: Final = re.compile(r"ya29\.[\w.-]+|eyJ[\w-]{8,}\.[\w.-]+|(?i:bearer) [\w.~+/-]+=*|-----BEGIN[^-]+-----")
_BILLING: Final = re.compile(r"\b[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}\b")


def document(head: Mapping[str, Any], done: Mapping[str, Json], *, ended: bool) -> Json:
    """Return a run as one document that can be sent to others. ``done`` has its recorded results, keyed by probe."""
    rows: list[Json] = []
    for name, entry in done.items():
        probe = PROBES.get(name)
        answers = tuple(map(Answer._make, entry["answers"]))
        row = {
            "probe": name,
            "stage": probe.stage if probe else "",
            "proves": probe.proves if probe else "",
            "verdict": ProbeResult(name, answers).verdict,
            "seconds": entry["seconds"],
            "answers": [answer._asdict() for answer in answers],
        }
        rows.append(row)
    rows.sort(key=lambda row: STAGES.index(row["stage"]) if row["stage"] else len(STAGES))
    counts = Counter(row["verdict"] for row in rows)
    fields = ("run", "began", "where", "version", "versions", "stages")
    body = {
        **{field: head[field] for field in fields if field in head},
        "complete": ended,
        "summary": {WORDS[verdict]: counts[verdict] for verdict in VERDICTS},
        "probes": rows,
    }
    project = str(head.get("project", ""))
    return {"environment": str(head.get("environment", "")), **json.loads(redacted(json.dumps(body), project))}


def redacted(text: str, project: str = "") -> str:
    """Return a text without addresses of people, tokens, billing accounts and the project's id."""
    for pattern, word in ((_TOKEN, "TOKEN"), (_BILLING, "BILLING-ACCOUNT"), (_ADDRESS, "ADDRESS")):
        text = pattern.sub(word, text)
    text = re.sub(r"projects/\d+", "projects/PROJECT", text)  # as Vertex AI names its resources
    return re.sub(rf"(?<![\w-]){re.escape(project)}(?![\w-])", "PROJECT", text) if project else text


def rendered(report: Json, file_format: str, width: int = 120) -> str:
    """Return a report in the requested format."""
    if file_format == "json":
        return json.dumps(report, indent=2) + "\n"
    if file_format == "html":
        return _html(report)
    return _text(report, width)


def headline(report: Json) -> str:
    """Return how many probes have each verdict, after lines about bugs in this program and failures of isolation."""
    errors: list[str] = []
    breaches: list[str] = []
    for row in report["probes"]:
        for answer in row["answers"]:
            if answer["verdict"] == "failed":
                errors.append(answer["says"])
            elif answer["verdict"] == "refuted" and row["stage"] == "tenancy" and row["verdict"] == "refuted":
                breaches.append(answer["says"])
    if breaches:
        errors.append("; ".join(breaches))
    counts = ", ".join(f"{count} {word}" for word, count in report["summary"].items())
    date = str(report.get("began", ""))[:10]
    line = f"{report['environment']} on {report.get('where', '')}, {date}: {counts}"
    if not report["complete"]:
        line += "; the run is not complete"
    return "\n".join([*(f"error: {error}" for error in errors), line])


def sections(report: Json) -> Iterator[ReportSection]:
    """Yield a table for each stage. The worst verdicts of a probe come first."""
    columns = ("probe", "verdict", "answer", "evidence")
    for stage in STAGES:
        rows: list[ReportRow] = []
        for probe in report["probes"]:
            if probe["stage"] != stage:
                continue
            for answer in sorted(probe["answers"], key=lambda answer: VERDICTS.index(answer["verdict"])):
                verdict: Verdict = answer["verdict"]
                cells = (probe["probe"], WORDS[verdict], answer["says"], answer["evidence"])
                rows.append(ReportRow(cells, _FULLNESS[verdict]))
        if rows:
            yield ReportSection(title=stage, columns=columns, rows=rows, grouped=True, noted=True)


def plan_section(chosen: Sequence[Probe]) -> ReportSection:
    """Return the plan of a run: its probes, the objects that they create, and the minimum roles that they need."""
    rows = [ReportRow((probe.stage, probe.name, f"{probe.minutes:g}", probe.makes or "only reads")) for probe in chosen]
    roles = sorted({role for probe in chosen for role in probe.roles})
    return ReportSection(
        title="plan",
        columns=("stage", "probe", ">minutes", "creates"),
        rows=rows,
        subject=1,
        grouped=True,
        noted=True,
        note=f"fewest roles: {', '.join(roles)}",
    )


def _text(report: Json, width: int) -> str:
    from training_platform.checks.reports.terminal_tables import section_lines  # noqa: PLC0415 # loads rich

    tables = [section_lines(section, width) for section in sections(report)]
    return "\n".join([*tables, *_versions(report), headline(report)]) + "\n"


def _versions(report: Json) -> list[str]:
    versions = report.get("versions", {})
    if not versions:
        return []
    return [", ".join(f"{name} {version}" for name, version in versions.items())]


def _html(report: Json) -> str:
    from training_platform.checks.reports.markup import el, joined, section_table, whole_page  # noqa: PLC0415 # as above

    title = "training-platform verify"
    parts = [
        (section.title, section.title.capitalize(), section_table(section.title, section))
        for section in sections(report)
    ]
    verdict = joined(*(el("p", line) for line in headline(report).splitlines()))
    return whole_page(title, verdict, parts, " ".join(_versions(report)))
