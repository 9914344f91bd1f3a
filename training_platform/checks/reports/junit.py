"""The report as JUnit XML: a suite for each stack, and a case for each rule that ran on it.

An error fails its rule's case; a warning is the case's output; what is exempt, not decided, or follows from another
finding skips it. What could not be checked is a case with an error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree as Xml

from training_platform.checks.report import Report, folded, ordered
from training_platform.checks.reports.conclusion import more_about
from training_platform.checks.reports.wording import following, place
from training_platform.config.reading.finding import Finding
from training_platform.rules import RULES
from training_platform.rules.descriptions import LEDGER
from training_platform.rules.exemptions import Exempted

# XML 1.0 has no way to write these, not even as references.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Following = Mapping[Finding, Sequence[Finding]]  # the consequences of each finding that follows from no other
_RULES = (*RULES, *(rule.id for rule in LEDGER))


def junit_report(report: Report) -> str:
    """Return the report as XML text."""
    root = Xml.Element("testsuites", name="training-platform")
    more = dict(folded(report.all_findings()))
    for stack in report.stacks:
        rules = () if stack.kind == "rejected" else _RULES
        _suite(root, stack.name, rules, stack.findings, stack.exempted, more=more)
    if report.findings:
        _suite(root, "repository", (), report.findings, (), more=more)
    if report.failures:
        suite = Xml.SubElement(root, "testsuite", name="not checked")
        for number, failure in enumerate(report.failures, start=1):
            case = Xml.SubElement(suite, "testcase", classname="not checked", name=str(number))
            Xml.SubElement(case, "error", message=_text(failure))
    for counted in (*root, root):
        counted.set("tests", str(len(list(counted.iter("testcase")))))
        for name, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            counted.set(name, str(len(list(counted.iter(element)))))
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}'


def _suite(
    root: Xml.Element,
    stack: str,
    rules: Iterable[str],
    findings: Iterable[Finding],
    exempted: Iterable[Exempted],
    *,
    more: Following,
) -> None:
    suite = Xml.SubElement(root, "testsuite", name=_text(stack))
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in ordered(findings):
        by_rule[finding.rule].append(finding)
    exempt: dict[str, list[Exempted]] = defaultdict(list)
    for exemption in exempted:
        exempt[exemption.finding.rule].append(exemption)
    for rule in dict.fromkeys((*by_rule, *exempt, *rules)):
        case = Xml.SubElement(suite, "testcase", classname=_text(stack), name=rule)
        _fill(case, rule, by_rule[rule], exempt[rule], more)


def _fill(case: Xml.Element, rule: str, findings: list[Finding], exempted: list[Exempted], more: Following) -> None:
    """Add the outcome of one rule to its case."""
    errors = [finding for finding in findings if finding.severity == "error" and finding in more]
    warnings = [finding for finding in findings if finding.severity == "warning"]
    notes = [finding for finding in findings if finding.severity == "note"]
    skipped = [f"follows from {finding.follows}" for finding in findings if finding not in more]
    skipped += ["not decided before deployment"] * bool(notes) + [str(exemption) for exemption in exempted]
    if findings:
        position = place(findings[0])
        case.set("file", _text(position.file))
        case.set("line", str(position.line))
    if errors:
        lines = [line for error in errors for line in (str(error), following(more[error])) if line]
        failure = Xml.SubElement(case, "failure", type=rule, message=_text(errors[0].message))
        failure.text = _text("\n".join((*lines, more_about(errors[0]))))
    elif skipped:
        Xml.SubElement(case, "skipped", message=_text(skipped[0]))
    output = [*map(str, (*warnings, *notes)), *(f"{exemption.finding}\n  {exemption}" for exemption in exempted)]
    if output:
        Xml.SubElement(case, "system-out").text = _text("\n".join(output))


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
