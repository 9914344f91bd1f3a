"""Hostile keys, values and file names: they are shown, and never act on a terminal or a pipeline."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.training_platform.checks.reports.hostile import DOES, HOSTILE, SHOWN
from training_platform.cli.main import app
from training_platform.config.reading.finding import printable

ROOT = Path(__file__).parents[4]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a repository whose stack, job and names of files are hostile."""
    (tmp_path / "Pulumi.yaml").write_bytes((ROOT / "Pulumi.yaml").read_bytes())
    (tmp_path / "stacks").mkdir()
    key = json.dumps(HOSTILE)
    section = f"{{project: example-a, {key}: {key}, clusters: {{{key}: 1}}}}"
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text(f"config:\n  training-platform:environment: {section}\n")
    (tmp_path / "jobs" / "vision").mkdir(parents=True)
    (tmp_path / "jobs" / "vision" / "train.yaml").write_text(f"{key}: {key}\n")
    (tmp_path / "jobs" / "vision" / "\n::error::c.yaml").write_text("a: [")
    return tmp_path


@pytest.mark.parametrize("to", ["text", "markdown"])
def test_a_report_does_nothing_that_a_stack_says(to: str, folder: Path) -> None:
    done = CliRunner().invoke(app, ["check", "--format", to, "--root", str(folder)])

    assert done.exit_code == 2, done.output  # a job file that is not YAML
    assert "gone" in done.stdout
    assert DOES.findall(done.stdout + done.stderr) == []


def test_an_annotation_holds_no_control_character_and_no_second_command(folder: Path) -> None:
    done = CliRunner().invoke(app, ["check", "--format", "github", "--root", str(folder)])

    assert [line for line in done.stdout.splitlines() if not re.match("::(error|warning|notice) ", line)] == []
    assert not set(re.findall("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", done.stdout)) - {"\n"}


def test_checking_jobs_does_nothing_that_a_job_says(folder: Path) -> None:
    done = CliRunner().invoke(app, ["job", "check", "--root", str(folder)])

    assert "gone" in done.stdout
    assert SHOWN in done.stdout
    assert DOES.findall(done.stdout + done.stderr) == []


def test_a_refusal_does_nothing_that_its_argument_says(folder: Path) -> None:
    done = CliRunner().invoke(app, ["check", "a\n::error::b", "--root", str(folder)])

    assert done.exit_code == 2
    assert DOES.findall(done.stderr) == []


@pytest.mark.parametrize("kept", ["a: b::c", "10.0.0.0/8, 2001:db8::/32", "# [x]", "über\tlang\n日本語", "std::vector"])
def test_text_without_a_command_stays_as_it_is(kept: str) -> None:
    assert printable(kept) == kept


def test_what_is_printable_stays_so() -> None:
    assert printable(printable(HOSTILE)) == printable(HOSTILE)
