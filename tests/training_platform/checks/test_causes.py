"""One cause, one finding: a consequence names its cause, comes after it, and gives no advice."""

from __future__ import annotations

import json
import re
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.places import ORGANISATION
from tests.training_platform.checks.changed_organisation import NLP, QUOTAS, VISION, report
from training_platform.checks.causes import with_causes
from training_platform.checks.output import render
from training_platform.checks.report import Report, ordered
from training_platform.checks.reports.json_report import finding_document
from training_platform.checks.reports.text import print_report
from training_platform.checks.stacks import CheckOptions, check_stacks
from training_platform.config.reading.finding import Finding

DEV = "stacks/Pulumi.dev.yaml"
PROD = "stacks/Pulumi.prod.yaml"
JOB = "jobs/vision/finetune.yaml"
ZONE = "zone: us-central1-a\n            capacity: spot"
CASES = {
    "a flavor is called after a wrong topology": (
        DEV, ("topology: 4x8", "topology: 4x9"), "tpu-topology", ["stacks/Pulumi.dev-vision.yaml"],
    ),
    "a flavor of slices on one VM is": (
        DEV, ("topology: 2x4", "topology: 2x3"), "tpu-flavor-topology", ["stacks/Pulumi.dev-vision.yaml"],
    ),
    "a job's flavor is": (
        PROD, ("topology: 4x8", "topology: 4x5"), "tpu-topology",
        ["jobs/nlp/pretrain.yaml", "stacks/Pulumi.prod-nlp.yaml", "stacks/Pulumi.prod-vision.yaml"],
    ),
    "a pool is charged in a zone that it cannot be in": (
        DEV, (ZONE, ZONE.replace("us-central1-a", "us-east1-b")), "pool-zone", [DEV],
    ),
    "limits are rejected": (QUOTAS, ("taken:", "read: a\ntaken:"), "quota-snapshot", [DEV]),
    "a team is called otherwise": (
        NLP, ("name: nlp", "name: vision"), "stack-model", ["jobs/nlp/pretrain.yaml", VISION],
    ),
    "an environment is rejected": (
        PROD, ("capacity: spot", "capacity: sport"), "stack-model", ["jobs/nlp/pretrain.yaml", JOB],
    ),
    "a field is misspelt": (VISION, ("nominal_quota: 24", "nominal_quoda: 24"), "stack-model", [JOB, VISION]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_follows_from_a_finding_names_it_and_advises_nothing(case: str, tmp_path: Path) -> None:
    file, change, rule, files = CASES[case]

    findings = ordered(report(tmp_path, file, *change).all_findings())

    following = [finding for finding in findings if finding.follows]
    (place,) = {finding.follows for finding in following}
    cause = next(finding for finding in findings if finding.place == place)
    assert (cause.file, cause.rule, cause.follows) == (file, rule, None)
    assert list(dict.fromkeys(finding.file for finding in following)) == files
    assert [(finding.allowed, finding.nearest) for finding in following] == [(None, None)] * len(following)
    start = findings.index(cause) + 1
    assert findings[start : start + len(following)] == following
    assert [finding_document(finding)["follows"] for finding in following] == [place] * len(following)


def test_too_much_that_is_promised_to_two_teams_of_one_name_follows_from_the_name(tmp_path: Path) -> None:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    (tmp_path / "stacks" / "Pulumi.prod-again.yaml").write_bytes((ORGANISATION / VISION).read_bytes())

    findings = check_stacks(tmp_path, None, CheckOptions(today=date(2026, 11, 21))).report.all_findings()

    exceeded = [finding for finding in findings if finding.rule.endswith("capacity-exceeded")]
    assert {finding.rule for finding in exceeded} == {"capacity-exceeded", "file-capacity-exceeded"}
    assert {finding.follows for finding in exceeded} == {"stacks/Pulumi.prod-again.yaml:5:5: name"}
    assert [finding.nearest for finding in exceeded] == [None] * len(exceeded)
    assert [finding.path for finding in findings if not finding.follows and finding.severity == "error"] == ["name"]


@pytest.mark.parametrize(
    ("file", "following"),
    [
        (PROD, [f"jobs/nlp/pretrain.yaml:3:1: environment, {JOB}:3:1: environment, {NLP}:4:5: environment", "4"]),
        (VISION, [f"{JOB}:3:1.", "1"]),
    ],
)
def test_findings_that_miss_an_unreadable_file_are_reported_only_with_it(
    file: str, following: list[str], tmp_path: Path
) -> None:
    checked = report(tmp_path, file, "config:", "config: [")

    (failure,) = checked.failures
    assert failure.startswith(f"{file}:")
    assert f".\n  Causes {following[1]} more finding" in failure
    assert following[0] in failure
    assert [finding for finding in checked.all_findings() if "is not" in finding.message] == []
    assert checked.exit_code() == 2


def test_a_snapshot_that_is_missing_is_found_once(tmp_path: Path) -> None:
    for folder in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / folder, tmp_path / folder)
    (tmp_path / "stacks" / "quotas" / "example-train-prod.yaml").unlink()

    findings = check_stacks(tmp_path, None, CheckOptions(today=date(2026, 11, 21))).report.all_findings()

    missing = [
        finding for finding in findings if finding.message.startswith("no quotas of example-train-prod are known")
    ]
    assert {finding.rule for finding in missing} == {"quota-no-snapshot", "job-quota-snapshot"}
    (cause,) = [finding for finding in missing if not finding.follows]
    assert cause.file == PROD
    assert {finding.follows for finding in missing if finding != cause} == {cause.place}
    assert cause.nearest == (
        "training-platform quota pull example-train-prod; or, without credentials, training-platform quota init"
    )


def test_another_mistake_of_a_team_does_not_follow_from_a_wrong_topology(tmp_path: Path) -> None:
    text = "tpu-v5e-2x4-spot: {nominal_quota: 16, borrowing_limit: 16}"
    findings = report(tmp_path, "stacks/Pulumi.dev-vision.yaml", text, text.replace("2x4", "2x5")).all_findings()

    assert [finding.follows for finding in findings if finding.path.startswith("shares.")] == [None]


@pytest.mark.parametrize("verbose", [False, True])
def test_a_terminal_shows_what_follows_in_one_line_and_all_of_it_with_verbose(verbose: bool, tmp_path: Path) -> None:
    checked = report(tmp_path, DEV, ZONE, ZONE.replace("us-central1-a", "us-east1-b"))
    console = Console(width=200, no_color=True)

    with console.capture() as capture:
        print_report(checked, console, verbose=verbose)

    printed = capture.get()
    follow = sum(finding.follows is not None for finding in checked.all_findings())
    assert follow == 4
    assert printed.count(f"Causes {follow} more findings: {DEV}:") == (not verbose)
    assert printed.count("[quota-exceeded]") == (follow if verbose else 0)
    assert printed.count("[pool-zone]") == 1


ENTRIES = {"github": "(?m)^::error", "markdown": r"(?m)^- \*\*error", "html": '<li class="error"'}


def entries(text: str, form: str) -> int:
    """Return the number of separate findings in a report."""
    if form in ("gitlab", "sarif"):
        document = json.loads(text)
        return len(document if form == "gitlab" else document["runs"][0]["results"])
    return len(re.findall(ENTRIES[form], text))


@pytest.mark.parametrize("form", ["markdown", "github", "gitlab", "sarif", "html"])
def test_what_follows_stands_within_its_cause_in_every_format(form: str, tmp_path: Path) -> None:
    checked = report(tmp_path, PROD, "topology: 4x8", "topology: 4x5")
    follow = [finding for finding in checked.all_findings() if finding.follows]

    text = render(checked, form)

    errors = [finding for finding in checked.all_findings() if finding.severity == "error"]
    assert len(follow) == 3
    assert entries(text, form) == len(errors) - len(follow)
    assert all(finding.path.replace("_", r"\_" if form == "markdown" else "_") in text for finding in follow)


@pytest.mark.parametrize("form", ["text", "json", "markdown", "github", "gitlab", "sarif", "html"])
def test_every_format_says_how_a_rule_is_explained(form: str, tmp_path: Path) -> None:
    text = render(report(tmp_path, PROD, "topology: 4x8", "topology: 4x5"), form)

    assert "training-platform explain tpu-topology" in text


def test_the_page_has_a_heading_for_each_file_with_findings_of_its_own(tmp_path: Path) -> None:
    text = render(report(tmp_path, PROD, "topology: 4x8", "topology: 4x5"), "html")

    findings = text.partition("<h2>Findings</h2>")[2].partition("</section>")[0]
    assert re.findall(r"<h3><code>(.*?)</code></h3>", findings) == [PROD]


class CountedFinding(Finding):
    """A finding that counts how often its fields are read."""

    reads = 0

    def __getattribute__(self, name: str) -> Any:
        CountedFinding.reads += 1
        return super().__getattribute__(name)


def reads_of(count: int) -> int:
    """Return how often findings are read in the search for causes of ``count`` findings of each sort."""
    findings = [
        CountedFinding(
            rule="stack-model",
            severity="error",
            message=f"is wrong for reason {reason}",
            file="stacks/Pulumi.dev.yaml",
            path=f"clusters.c{number}",
            spoils=tuple((place,) for place in spoils),
            rests_on=tuple((place,) for place in rests_on),
        )
        for number in range(count)
        for reason, (spoils, rests_on) in enumerate(
            (
                ((f"key{number}",), ()),
                ((), (f"key{number}", f"other{number}")),
                ((f"other{number}", "all"), (f"key{number}",)),
                ((), ("all", f"unread{number}")),
            )
        )
    ]
    unread = {f"unread{number}": f"unread{number} is not YAML." for number in range(count)}
    CountedFinding.reads = 0
    with_causes(Report(today=date(2026, 11, 21), findings=tuple(findings), failures=tuple(unread.values())), unread)
    return CountedFinding.reads


def test_twice_the_findings_are_read_twice_as_often() -> None:
    fewer = reads_of(50)
    more = reads_of(100)

    assert fewer > 0
    assert more < 2.2 * fewer
