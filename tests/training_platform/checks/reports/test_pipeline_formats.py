"""JUnit, GitLab code quality and GitHub annotations, as their readers take them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as Xml

from training_platform.checks.report import Report
from training_platform.checks.reports.code_quality import github_report, gitlab_report
from training_platform.checks.reports.junit import junit_report
from training_platform.rules import RULES

Build = Callable[..., Any]


def junit(report: Report) -> Xml.Element:
    return Xml.fromstring(junit_report(report).encode())  # noqa: S314 # our own


def case(root: Xml.Element, stack: str, rule: str) -> Xml.Element:
    (found,) = (each for each in root.iter("testcase") if (each.get("classname"), each.get("name")) == (stack, rule))
    return found


def test_every_stack_is_a_suite_with_a_case_for_every_rule(clean: Report) -> None:
    root = junit(clean)

    assert [suite.get("name") for suite in root] == [stack.name for stack in clean.stacks]
    assert all({each.get("name") for each in suite} >= set(RULES) for suite in root)
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "0")
    assert int(root.get("tests", 0)) == sum(int(suite.get("tests", 0)) for suite in root) >= 5 * len(RULES)


def test_an_error_fails_its_rule_with_all_its_findings(spoiled: Report) -> None:
    root = junit(spoiled)

    failed = case(root, "prod", "boot-disk-size")
    text = failed.findtext("failure") or ""
    assert failed.get("file") == "stacks/Pulumi.prod.yaml"
    assert text.count("700,000 GB") == sum(each.rule == "boot-disk-size" for each in spoiled.all_findings()) >= 2
    assert case(root, "prod", "tpu-topology").find("failure") is None
    assert int(root.get("failures", 0)) == len(list(root.iter("failure")))


def test_a_warning_passes_and_is_said(one: Build, found: Build) -> None:
    passed = case(junit(one(found(severity="warning"))), "prod", "boot-disk-size")

    assert passed.find("failure") is None
    assert "is 9 GB" in (passed.findtext("system-out") or "")


def test_what_is_not_decided_or_exempt_is_skipped(one: Build, found: Build, spoiled: Report) -> None:
    undecided = case(junit(one(found(severity="note"))), "prod", "boot-disk-size")
    assert undecided.find("skipped") is not None

    exempt = case(junit(spoiled), "prod", "boot-disk-size")
    assert "exempt until 2027-01-31" in (exempt.findtext("system-out") or "")


def test_what_was_not_checked_is_an_error(spoiled: Report) -> None:
    root = junit(spoiled)

    assert root.get("errors") == "1"
    (error,) = root.iter("error")
    assert "Pulumi.broken.yaml" in error.get("message", "")


def test_no_character_of_a_message_breaks_the_xml(one: Build, found: Build) -> None:
    root = junit(one(found("a\x00b\x1b[31m<&>\ud800\U0001f600")))

    failure = case(root, "prod", "boot-disk-size").find("failure")
    assert failure is not None
    assert failure.get("message") == "a\ufffdb\ufffd[31m<&>\ufffd\U0001f600"


def test_gitlab_is_given_what_it_needs_of_every_error_and_warning(one: Build, found: Build) -> None:
    report = one(found(nearest="10"), found(severity="warning"), found(severity="note"))

    entries = json.loads(gitlab_report(report))

    assert [each["severity"] for each in entries] == ["critical", "minor"]
    assert entries[0]["location"] == {"path": "stacks/Pulumi.prod.yaml", "lines": {"begin": 14}}
    assert entries[0]["check_name"] == "boot-disk-size"
    assert entries[0]["description"].endswith(
        "is 9 GB. Nearest: 10. More about it: training-platform explain boot-disk-size"
    )
    assert all(re.fullmatch("[0-9a-f]{64}", each["fingerprint"]) for each in entries)
    assert len({each["fingerprint"] for each in entries}) == 2


def test_gitlab_is_given_an_empty_list_for_a_clean_check(clean: Report) -> None:
    assert json.loads(gitlab_report(clean)) == []


def test_an_annotation_stands_at_file_line_and_column(one: Build, found: Build) -> None:
    assert github_report(one(found(allowed="10 to 65,536 GB"))) == (
        "::error file=stacks/Pulumi.prod.yaml,line=14,col=7,title=boot-disk-size::"
        "clusters.main.node_pools.h100.boot_disk.size_gb: is 9 GB%0AAllowed: 10 to 65,536 GB."
        "%0AMore about it: training-platform explain boot-disk-size"
    )


def test_nothing_in_a_message_or_a_path_starts_a_command_of_its_own(one: Build, found: Build) -> None:
    text = github_report(one(found("100%\r\n::warning::x", file="stacks/a,b:c.yaml")))

    assert len(text.splitlines()) == 1
    assert "file=stacks/a%2Cb%3Ac.yaml," in text
    assert "100%25%0D%0A::warning::x%0AMore about it" in text


def test_errors_come_before_warnings_and_notes_as_github_shows_ten_of_each(one: Build, found: Build) -> None:
    report = one(found(severity="note"), found(severity="warning"), found(), failures=("no YAML",))

    commands = [line.split(" ")[0] for line in github_report(report).splitlines()]

    assert commands == ["::error", "::error", "::warning", "::notice"]


def test_a_clean_check_has_no_annotations(clean: Report) -> None:
    assert github_report(clean) == ""
