"""The report of a run: failed, refuted, undecided and proven by stage, each with its evidence, as text, JSON or a page.

It is made to be sent: addresses of people and groups, the project, billing accounts and tokens are replaced, and
Secrets are never read. Facts that a run found different are in ``facts.py``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.checks.reports.sections import ReportRow, ReportSection
from training_platform.parts.verify.probes import STAGES, VERDICTS, Answer, Asked, Probe, Verdict, probes

FORMATS: Final = ("text", "json", "html")
WORDS: Final[Mapping[Verdict, str]] = {
    "failed": "failed",
    "refuted": "refuted",
    "undecided": "not decided",
    "proven": "proven",
}
_ADDRESS: Final = re.compile(r"[\w.+-]+@(?![\w.-]*gserviceaccount\.com)[\w-]+(?:\.[\w-]+)+")
_TOKEN: Final = re.compile(r"ya29\.[\w.-]+|eyJ[\w-]{8,}\.[\w.-]+|(?i:bearer) [\w.~+/-]+=*|-----BEGIN[^-]+-----")
_BILLING: Final = re.compile(r"\b[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}\b")


def document(head: Mapping[str, Any], done: Mapping[str, Json], *, ended: bool) -> Json:
    """Return a run as one document, fit to be sent; ``done`` are the ledger's records by probe."""
    known = probes()
    rows = [
        {
            "probe": name,
            "stage": known[name].stage if name in known else "",
            "proves": known[name].proves if name in known else "",
            "verdict": Asked(name, tuple(Answer(*row) for row in record["answers"])).verdict,
            "seconds": record["seconds"],
            "answers": [{"verdict": row[0], "says": row[1], "evidence": row[2]} for row in record["answers"]],
        }
        for name, record in done.items()
    ]
    counts = Counter(row["verdict"] for row in rows)
    fields = ("run", "began", "where", "version", "versions", "stages")
    body = {
        **{field: head[field] for field in fields if field in head},
        "complete": ended,
        "summary": {WORDS[verdict]: counts[verdict] for verdict in VERDICTS},
        "probes": sorted(rows, key=lambda row: STAGES.index(row["stage"]) if row["stage"] else 99),
    }
    project, environment = str(head.get("project", "")), str(head.get("environment", ""))
    return {"environment": environment, **json.loads(redacted(json.dumps(body), project))}


def redacted(text: str, project: str = "") -> str:
    """Return a text without addresses of people, tokens, billing accounts and the project's id."""
    for pattern, word in ((_TOKEN, "TOKEN"), (_BILLING, "BILLING-ACCOUNT"), (_ADDRESS, "ADDRESS")):
        text = pattern.sub(word, text)
    text = re.sub(r"projects/\d+", "projects/PROJECT", text)  # as Vertex AI names its resources
    return re.sub(rf"(?<![\w-]){re.escape(project)}(?![\w-])", "PROJECT", text) if project else text


def rendered(report: Json, to: str, width: int = 120) -> str:
    """Return a report in one format."""
    if to == "json":
        return json.dumps(report, indent=2) + "\n"
    return _page(report) if to == "html" else _text(report, width)


def headline(report: Json) -> str:
    """Return the counts, behind a line for each bug of ours and one for what was let in that isolation refuses."""
    counts = ", ".join(f"{count} {word}" for word, count in report["summary"].items())
    unfinished = "" if report["complete"] else "; the run is not complete"
    where = report.get("where", "")
    line = f"{report['environment']} on {where}, {str(report.get('began', ''))[:10]}: {counts}{unfinished}"
    broken = [row for row in report["probes"] if row["stage"] == "tenancy" and row["verdict"] == "refuted"]
    let_in = [one["says"] for row in broken for one in row["answers"] if one["verdict"] == "refuted"]
    bugs = [one["says"] for row in report["probes"] for one in row["answers"] if one["verdict"] == "failed"]
    errors = [*bugs, *(["; ".join(let_in)] if let_in else [])]
    return "\n".join([*(f"error: {text}" for text in errors), line])


def sections(report: Json) -> Iterator[ReportSection]:
    """Yield a table for each stage, what does not hold first."""
    columns = ("probe", "verdict", "answer", "evidence")
    for stage in STAGES:
        rows = [
            ReportRow((row["probe"], WORDS[one["verdict"]], one["says"], one["evidence"]), _state(one["verdict"]))
            for row in report["probes"]
            if row["stage"] == stage
            for one in sorted(row["answers"], key=lambda one: VERDICTS.index(one["verdict"]))
        ]
        if rows:
            yield ReportSection(title=stage, columns=columns, rows=rows, grouped=True, noted=True)


def plan_section(chosen: Sequence[Probe]) -> ReportSection:
    """Return the plan of a run: its probes, the objects that they make, and below the roles of all."""
    rows = [ReportRow((one.stage, one.name, f"{one.minutes:g}", one.makes or "only reads")) for one in chosen]
    roles = sorted({role for one in chosen for role in one.roles})
    return ReportSection(
        title="plan",
        columns=("stage", "probe", ">minutes", "creates"),
        rows=rows,
        subject=1,
        grouped=True,
        noted=True,
        note=f"fewest roles: {', '.join(roles)}",
    )


def _state(verdict: Verdict) -> Any:
    return {"failed": "over", "refuted": "over", "undecided": "unknown", "proven": "fits"}[verdict]


def _text(report: Json, width: int) -> str:
    from training_platform.checks.reports.text import section_lines  # noqa: PLC0415 # it loads rich

    tables = [section_lines(section, width) for section in sections(report)]
    return "\n".join([*tables, *_versions(report), headline(report)]) + "\n"


def _versions(report: Json) -> list[str]:
    versions = report.get("versions", {})
    return [", ".join(f"{name} {version}" for name, version in versions.items())] if versions else []


def _page(report: Json) -> str:
    from training_platform.checks.reports.html import el, joined, section_table, whole_page  # noqa: PLC0415

    title = "training-platform verify"
    parts = [
        (
            section.title,
            section.title[:1].upper() + section.title[1:],
            section_table(section.title, section),
        )
        for section in sections(report)
    ]
    verdict = joined(*(el("p", line) for line in headline(report).splitlines()))
    return whole_page(title, verdict, parts, " ".join(_versions(report)))
