"""The report as SARIF 2.1.0, for code scanning: errors and warnings; what is exempt or not decided is left out.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0 with errata 01. ``primaryLocationLineHash`` is the one
fingerprint that GitHub compares (GitHub docs, SARIF support for code scanning).
"""

from __future__ import annotations

import json
from urllib.parse import quote

from training_platform.catalog.types import Json
from training_platform.checks.report import Entry, Report, entries
from training_platform.checks.reports.wording import advice, following, place, said
from training_platform.config.reading.finding import Finding
from training_platform.rules.descriptions import Description, describe

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"


def sarif_report(report: Report) -> str:
    """Return the report as SARIF text; paths are relative to the repository's root."""
    failed = [finding for finding in report.all_findings() if finding.severity != "note"]
    results = list(entries(failed))
    rules = sorted({entry.finding.rule for entry in results})
    run = {
        "tool": {"driver": {"name": "training-platform", "rules": [_rule(describe(rule_id)) for rule_id in rules]}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [_invocation(report)],
        "results": [_result(entry, rules.index(entry.finding.rule)) for entry in results],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Description) -> Json:
    source = f"Source: {rule.source}." if rule.source else ""
    more = f"`training-platform explain {rule.id}` says how to fix it and how to exempt it."
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {
            "text": " ".join(part for part in (rule.summary, source, more) if part),
            "markdown": "\n\n".join(part for part in (rule.summary, source, more) if part),
        },
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": [rule.group], "precision": "very-high"},
    }


def _result(entry: Entry, rule_index: int) -> Json:
    finding, more, fingerprint = entry
    result: Json = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": "\n".join(part for part in (said(finding), advice(finding), following(more)) if part)},
        "locations": [{**_physical(finding), **_logical(finding)}],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
    }
    if more:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": said(other)}, **_physical(other), **_logical(other)}
            for number, other in enumerate(more, start=1)
        ]
    if finding.source:
        result["properties"] = {"source": finding.source}
    return result


def _physical(finding: Finding) -> Json:
    at = place(finding)
    file = {"uri": quote(at.file), "uriBaseId": _ROOT}
    return {"physicalLocation": {"artifactLocation": file, "region": {"startLine": at.line, "startColumn": at.column}}}


def _logical(finding: Finding) -> Json:
    names = [{"fullyQualifiedName": finding.path, "kind": "member"}] if finding.path else []
    if finding.resource:
        names.append({"fullyQualifiedName": finding.resource, "kind": "resource"})
    return {"logicalLocations": names} if names else {}


def _invocation(report: Report) -> Json:
    notes = [{"level": "error", "message": {"text": failure}} for failure in report.failures]
    return {"executionSuccessful": not notes, "toolExecutionNotifications": notes}
