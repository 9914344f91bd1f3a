"""The report as SARIF 2.1.0 for code scanning: errors and warnings, without notes and exempt findings.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0 with errata 01. ``primaryLocationLineHash`` is the only
fingerprint that GitHub compares (GitHub docs, SARIF support for code scanning).
"""

from __future__ import annotations

import json
from urllib.parse import quote

from training_platform.catalog.types import Json
from training_platform.checks.report import FindingGroup, Report, finding_groups
from training_platform.checks.reports.wording import conclusion, field_message, place, sentences
from training_platform.config.reading.declaration import Rule
from training_platform.config.reading.finding import Finding
from training_platform.rules.descriptions import describe

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"


def sarif_report(report: Report) -> str:
    """Return the report as SARIF text; paths are relative to the repository's root."""
    groups = finding_groups([finding for finding in report.all_findings() if finding.severity != "note"])
    rules = sorted({group.finding.rule for group in groups})
    failures = [{"level": "error", "message": {"text": failure}} for failure in report.failures]
    run = {
        "tool": {"driver": {"name": "training-platform", "rules": [_rule(describe(rule_id)) for rule_id in rules]}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [{"executionSuccessful": not failures, "toolExecutionNotifications": failures}],
        "properties": {"verdict": str(conclusion(report))},
        "results": [_result(group, rules.index(group.finding.rule)) for group in groups],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: Rule) -> Json:
    source = f"Source: {rule.source}." if rule.source else ""
    more = f"`training-platform explain {rule.id}` says how to fix it and how to exempt it."
    paragraphs = [part for part in (rule.title, source, more) if part]
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.title},
        "help": {"text": " ".join(paragraphs), "markdown": "\n\n".join(paragraphs)},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": [rule.ruleset], "precision": "very-high"},
    }


def _result(group: FindingGroup, rule_index: int) -> Json:
    finding, more, fingerprint = group
    result: Json = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": "\n".join(sentences(finding, more))},
        "locations": [_location(finding)],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
    }
    if more:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": field_message(other)}, **_location(other)}
            for number, other in enumerate(more, start=1)
        ]
    if finding.source:
        result["properties"] = {"source": finding.source}
    return result


def _location(finding: Finding) -> Json:
    position = place(finding)
    file = {"uri": quote(position.file), "uriBaseId": _ROOT}
    region = {"startLine": position.line, "startColumn": position.column}
    names = (("member", finding.path), ("resource", finding.resource))
    logical = [{"fullyQualifiedName": name, "kind": kind} for kind, name in names if name]
    location: Json = {"physicalLocation": {"artifactLocation": file, "region": region}}
    if logical:
        location["logicalLocations"] = logical
    return location
