"""A check with exemptions, from the file to the exit code."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.places import ORGANISATION, ROOT
from training_platform.checks.run import run_check
from training_platform.checks.stacks import Options
from training_platform.cli.main import app

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
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "stacks" / "exemptions.yaml").write_text(EXEMPTION)
    return tmp_path


def plant(root: Path) -> None:
    """Give dev's h100 pool a boot disk that is smaller than GKE takes."""
    path = root / "stacks" / "Pulumi.dev.yaml"
    text = path.read_text()
    pool = "          h100:\n"
    assert pool in text
    path.write_text(text.replace(pool, f"{pool}            boot_disk: {{size_gb: 9}}\n", 1))


@pytest.mark.parametrize("fast", [False, True], ids=["planned", "fast"])
def test_an_exempt_error_is_shown_and_not_counted(copy: Path, fast: bool) -> None:
    plant(copy)

    report = run_check(copy, Options(today=TODAY, fast=fast))

    assert report.all_findings() == []
    (exempted,) = report.all_exempted()
    assert (exempted.finding.rule, exempted.finding.severity) == ("boot-disk-size", "error")
    assert report.exit_code(strict=True) == 0


def test_the_day_after_it_counts_again_and_the_exemption_fails_too(copy: Path) -> None:
    plant(copy)

    report = run_check(copy, Options(today=date(2026, 11, 22)))

    assert {each.rule for each in report.all_findings()} == {"boot-disk-size", "exemption-expired"}
    assert report.all_exempted() == []
    assert report.exit_code() == 1


def test_an_exemption_that_nothing_needs_is_a_warning_once_its_stack_is_planned(copy: Path) -> None:
    planned = run_check(copy, Options(today=TODAY))
    assert [each.rule for each in planned.all_findings()] == ["exemption-unused"]
    assert (planned.exit_code(), planned.exit_code(strict=True)) == (0, 1)

    assert run_check(copy, Options(today=TODAY, fast=True)).all_findings() == []
    assert run_check(copy, Options(today=TODAY), selected=["prod"]).all_findings() == []


def test_an_exemption_of_a_stack_whose_file_is_no_yaml_is_not_called_unused(copy: Path) -> None:
    (copy / "stacks" / "Pulumi.dev.yaml").write_text("a: [")

    report = run_check(copy, Options(today=TODAY, fast=True))

    assert report.exit_code() == 2
    assert "exemption-unused" not in {each.rule for each in report.all_findings()}


def test_an_exemption_without_a_reason_is_exit_code_2_and_exempts_nothing(copy: Path) -> None:
    plant(copy)
    file = copy / "stacks" / "exemptions.yaml"
    file.write_text(EXEMPTION.replace("    reason: moves to Filestore\n", ""))

    done = CliRunner().invoke(app, ["check", "--fast", "--root", str(copy)])

    assert done.exit_code == 2
    assert "not checked: stacks/exemptions.yaml:2:5: exemptions[0].reason: is missing" in done.stdout
    assert "error stacks/Pulumi.dev.yaml" in done.stdout


def test_what_is_wrong_with_the_file_is_a_sentence_before_what_is_allowed(copy: Path) -> None:
    (copy / "stacks" / "exemptions.yaml").write_text(EXEMPTION.replace("ml@example.com", "somebody"))

    (said,) = run_check(copy, Options(today=TODAY, fast=True)).failures

    assert said == (
        "stacks/exemptions.yaml:6:5: exemptions[0].owner: 'somebody' is not in the right form. "
        "Allowed: an address such as ml-platform@example.com."
    )


def test_the_text_report_lists_what_is_exempt_and_counts_it(copy: Path) -> None:
    plant(copy)

    done = CliRunner().invoke(app, ["check", "--fast", "--root", str(copy)])

    assert done.exit_code == 0
    assert "\n  exempt until 2026-11-21 by ml@example.com: moves to Filestore\n" in done.stdout
    assert done.stdout.rstrip().endswith("5 stacks: clean, 1 exempt")
