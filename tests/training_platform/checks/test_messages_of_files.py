"""Mistakes that only several files together show: reported once, in the right file, with a next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training_platform.checks.changed_organisation import NLP, QUOTAS, VISION, report
from tests.training_platform.checks.repository import TODAY, Repository
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions

JOB = "jobs/vision/finetune.yaml"
SHARE = "nominal_quota: 24, borrowing_limit: 40"


@pytest.mark.parametrize(
    ("file", "change", "expected", "nearest"),
    [
        (QUOTAS, ("taken:", "taking: a\ntaken:"), [(QUOTAS, "is not a field of this section")], ["taken"]),
        (QUOTAS, ("{limit: 200,", "{limit: 200, limits: 2,"), [(QUOTAS, "is neither a field")], ["limit"]),
        (NLP, ("name: nlp", "name: vision"), [
            (NLP, f"'vision' is also the name of the team at {VISION}:5"),
            (VISION, f"'vision' is also the name of the team at {NLP}:5"),
        ], ["nlp", None]),
        (VISION, (SHARE, "nominal_quota: 2400"), [(VISION, "h100-reservation in us-central1 of prod is")], ["24"]),
        (JOB, ("image:", "env: {X: true}\nimage:"), [(JOB, "(not shown) is not a string")], [None]),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_in_its_file(
    file: str, change: tuple[str, str], expected: list[tuple[str, str]], nearest: list[str | None], tmp_path: Path
) -> None:
    errors = [finding for finding in report(tmp_path, file, *change).all_findings() if finding.severity == "error"]

    causes = [finding for finding in errors if finding.file in {name for name, _ in expected}]
    assert [finding.file for finding in causes] == [name for name, _ in expected]
    assert all(finding.message.startswith(start) for finding, (_, start) in zip(causes, expected, strict=True))
    assert [finding.nearest for finding in causes] == nearest
    assert all(finding.position for finding in causes)


def test_rejected_limits_are_to_be_fixed_and_not_pulled_again(tmp_path: Path) -> None:
    findings = report(tmp_path, QUOTAS, "taken:", "taking: a\ntaken:").all_findings()

    (finding,) = [finding for finding in findings if finding.rule == "quota-no-snapshot"]
    assert finding.message.endswith(f"{QUOTAS} is rejected")
    assert finding.follows == f"{QUOTAS}:5:1: taking"
    assert finding.nearest is None


def test_a_rule_of_an_input_names_the_choice_of_the_field(repository: Repository) -> None:
    """The API says PRIVATE_SERVICE_ACCESS."""
    network = "    project: example-small\n    network: {name: shared, project: host-project-1}\n"
    repository.edit("small", "    project: example-small\n", network)
    repository.edit("small", "subnet: {nodes", "subnet: {name: nodes-c, nodes")

    findings = run_check(repository.root, CheckOptions(today=TODAY)).all_findings()

    (row,) = [row for row in findings if row.rule == "filestore-shared-vpc"]
    assert (row.allowed, row.nearest) == ("private-service-access", "private-service-access")
