"""Known findings: written, honoured, out of date, unreadable."""

from __future__ import annotations

import re
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.places import ORGANISATION, ROOT
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.cli.main import app

RULE = "quota-no-snapshot"


def check(repository: Any, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", "--today", "2026-11-21", *arguments, "--root", str(repository.root)])


def entries(repository: Any) -> list[dict[str, str]]:
    text = (repository.root / "stacks" / "baseline.yaml").read_text(encoding="utf-8")
    rows: list[dict[str, str]] = yaml.safe_load(text)["findings"]
    return rows


def test_written_findings_are_known_from_then_on_and_shown(repository: Any) -> None:
    assert check(repository).exit_code == 1

    written = check(repository, "--write-baseline")
    again = check(repository)

    assert (written.exit_code, again.exit_code) == (0, 0)
    assert {(entry["rule"], entry["stack"], entry["since"]) for entry in entries(repository)} == {
        (RULE, "small", "2026-11-21"),
        (RULE, "small-vision", "2026-11-21"),
        ("filestore-range-given", "small", "2026-11-21"),
    }
    assert "3 known findings: in stacks/baseline.yaml since 2026-11-21" in again.stdout
    assert again.stdout.rstrip().endswith("2 stacks: clean, 3 known")


def test_a_finding_beside_those_that_are_known_fails(repository: Any) -> None:
    check(repository, "--write-baseline")
    repository.edit("small", "capacity_gib: 1024", "capacity_gib: 1025")

    done = check(repository)

    assert done.exit_code == 1
    assert "[filestore-capacity]" in done.stdout


def test_writing_again_changes_nothing_and_keeps_the_day(repository: Any) -> None:
    check(repository, "--write-baseline")
    file = repository.root / "stacks" / "baseline.yaml"
    before = file.read_bytes()

    CliRunner().invoke(app, ["check", "--write-baseline", "--today", "2026-12-24", "--root", str(repository.root)])

    assert file.read_bytes() == before


def test_writing_for_one_stack_keeps_what_is_known_of_the_others(repository: Any) -> None:
    check(repository, "--write-baseline")
    before = entries(repository)

    check(repository, "small", "--write-baseline")

    assert entries(repository) == before


def test_an_entry_that_is_no_longer_found_warns_at_its_line_and_is_dropped_by_the_next_writing(repository: Any) -> None:
    repository.edit("small", "capacity_gib: 1024", "capacity_gib: 1025")
    check(repository, "--write-baseline")
    repository.edit("small", "capacity_gib: 1025", "capacity_gib: 1024")

    done = check(repository)

    assert done.exit_code == 0
    stale = (
        r"warning stacks/baseline.yaml:\d+:3: filestore-capacity of filestore.homes\S*: the finding no longer occurs"
    )
    assert re.search(stale, done.stdout)
    assert check(repository, "--strict").exit_code == 1
    check(repository, "--write-baseline")
    assert {entry["rule"] for entry in entries(repository)} == {RULE, "filestore-range-given"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("findings: [", "is not YAML"),
        ("findings:\n  - {rule: labels}\n", "findings[0].fingerprint: is missing"),
        (f"findings:\n  - {{fingerprint: {'0' * 64}, rule: labelz, since: '2026-11-21'}}\n", "Nearest: labels"),
    ],
)
def test_an_unreadable_baseline_is_exit_code_2_and_is_not_overwritten(repository: Any, text: str, message: str) -> None:
    file = repository.root / "stacks" / "baseline.yaml"
    file.write_text(text, encoding="utf-8")

    done = check(repository)
    writing = check(repository, "--write-baseline")

    assert (done.exit_code, writing.exit_code) == (2, 2)
    assert "not checked: stacks/baseline.yaml" in done.stdout
    assert message in " ".join(done.stdout.split())
    assert file.read_text(encoding="utf-8") == text


def test_where_something_cannot_be_checked_no_baseline_is_written(repository: Any) -> None:
    (repository.root / "stacks" / "Pulumi.broken.yaml").write_text("a: [", encoding="utf-8")

    assert check(repository, "--write-baseline").exit_code == 2
    assert not (repository.root / "stacks" / "baseline.yaml").exists()


def test_a_file_that_the_model_rejects_cannot_be_known(repository: Any) -> None:
    repository.edit("small-vision", "nominal_quota: 8", "nominal_quota: -8")

    assert check(repository, "--write-baseline").exit_code == 1
    assert "stack-model" not in {entry["rule"] for entry in entries(repository)}


TODAY = date(2026, 11, 21)
EXEMPTION = """\
exemptions:
  - rule: boot-disk-size
    stack: dev
    path: clusters.us-central1.node_pools.h100
    reason: moves to Filestore
    owner: ml@example.com
    expires: "2026-11-21"
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks" / "exemptions.yaml").write_text(EXEMPTION)
    return tmp_path


def plant(root: Path) -> None:
    """Give dev's h100 pool a boot disk that is smaller than GKE takes."""
    path = root / "stacks" / "Pulumi.dev.yaml"
    text = path.read_text()
    pool = "          h100:\n"
    assert pool in text
    path.write_text(text.replace(pool, f"{pool}            boot_disk: {{size_gb: 9}}\n", 1))


def test_an_exempt_error_is_shown_and_not_counted(copy: Path) -> None:
    plant(copy)

    report = run_check(copy, CheckOptions(today=TODAY), selected=["dev"])

    assert report.all_findings() == []
    (exempted,) = report.all_exempted()
    assert (exempted.finding.rule, exempted.finding.severity) == ("boot-disk-size", "error")
    assert report.exit_code(strict=True) == 0


def test_the_day_after_it_counts_again_and_the_exemption_fails_too(copy: Path) -> None:
    plant(copy)

    report = run_check(copy, CheckOptions(today=date(2026, 11, 22)), selected=["dev"])

    assert {finding.rule for finding in report.all_findings()} == {"boot-disk-size", "exemption-expired"}
    assert report.all_exempted() == []
    assert report.exit_code() == 1


def test_an_exemption_of_a_stack_whose_file_is_no_yaml_is_not_called_unused(copy: Path) -> None:
    (copy / "stacks" / "Pulumi.dev.yaml").write_text("a: [")

    report = run_check(copy, CheckOptions(today=TODAY))

    assert report.exit_code() == 2
    assert "exemption-unused" not in {finding.rule for finding in report.all_findings()}


def test_an_exemption_without_a_reason_is_exit_code_2_and_exempts_nothing(copy: Path) -> None:
    plant(copy)
    file = copy / "stacks" / "exemptions.yaml"
    file.write_text(EXEMPTION.replace("    reason: moves to Filestore\n", ""))

    done = CliRunner().invoke(app, ["check", "--root", str(copy)])

    assert done.exit_code == 2
    assert "not checked: stacks/exemptions.yaml:2:5: exemptions[0].reason: is missing" in done.stdout
    assert "error stacks/Pulumi.dev.yaml" in done.stdout
