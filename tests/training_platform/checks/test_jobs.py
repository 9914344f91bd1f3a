"""Job files are part of every check: in each format, with a base, and with an unreadable file."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.places import ORGANISATION
from training_platform.checks.output import FORMATS
from training_platform.cli.main import app

RIGHT = "environment: prod\nimage: a:1\ngke: {cluster: us-central1, flavor: h100-reservation, nodes: 1}\n"
FILE = "jobs/vision/train.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the organisation without findings, for a test to spoil."""
    for folder in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / folder, tmp_path / "copy" / folder)
    shutil.copy(ORGANISATION / "Pulumi.yaml", tmp_path / "copy")
    return tmp_path / "copy"


def check(root: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["check", "--root", str(root), *options])


def write(root: Path, text: str) -> None:
    (root / FILE).write_text(text)


@pytest.mark.parametrize("form", FORMATS)
def test_an_error_of_a_job_fails_the_check_in_every_format(root: Path, form: str) -> None:
    write(root, RIGHT)
    before = check(root, "--format", form)
    write(root, RIGHT.replace("nodes: 1", "nodes: 900"))
    after = check(root, "--format", form)

    assert (before.exit_code, after.exit_code) == (0, 1), before.output
    assert FILE not in before.stdout
    assert FILE in after.stdout
    assert "7,200" in after.stdout  # 900 * 8 GPUs


def test_a_finding_of_a_job_has_its_line(root: Path) -> None:
    write(root, RIGHT.replace("flavor: h100", "flavor: h10"))

    (finding,) = json.loads(check(root, "--format", "json").stdout)["findings"]

    assert (finding["rule"], finding["file"], finding["line"]) == ("job-model", FILE, 3)


def test_notes_about_a_job_are_for_its_owner(root: Path) -> None:
    write(root, RIGHT + "sweep: {parameters: {lr: {values: [1, 2]}}}\n")

    owners = CliRunner().invoke(app, ["job", "check", str(root / FILE), "--root", str(root)])

    assert "sweep: starts 2 runs" in owners.stdout
    assert "sweep" not in check(root).stdout


def test_a_job_escapes_no_check_of_single_stacks(root: Path) -> None:
    write(root, RIGHT.replace("h100", "h200"))

    assert check(root, "prod-nlp").exit_code == 1


def test_a_job_that_is_in_the_wrong_place_or_no_yaml_is_not_checked(root: Path) -> None:
    write(root, "environment: [")
    misplaced = check(root)
    write(root, RIGHT)
    (root / "jobs" / "loose.yml").write_text(RIGHT)
    loose = check(root)

    assert (misplaced.exit_code, loose.exit_code) == (2, 2)
    assert FILE in misplaced.output
    assert "jobs are jobs/<team>/<job>.yaml" in loose.output


def test_a_warning_of_a_job_counts_when_all_do(root: Path) -> None:
    spot = (
        "environment: dev\nimage: a:1\ngke: {cluster: us-central1, flavor: a100-40-spot, nodes: 1, grace_seconds: 30}\n"
    )
    write(root, spot)

    assert (check(root).exit_code, check(root, "--strict").exit_code) == (0, 1)


def test_a_finding_that_the_base_has_too_is_not_new(root: Path) -> None:
    write(root, RIGHT.replace("nodes: 1", "nodes: 900"))
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message=base")
    old = check(root, "--base", "main", "--new-only")
    (root / "jobs" / "vision" / "more.yaml").write_text(RIGHT.replace("nodes: 1", "nodes: 901"))
    new = check(root, "--base", "main", "--new-only")

    assert (old.exit_code, new.exit_code) == (0, 1), old.output
    assert "more.yaml" in new.output


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Lab", "-c", "user.email=lab@example.com"]
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True)
