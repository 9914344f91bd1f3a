"""The core without a part: its commands work, and ``check`` reports what it could not check."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION, ROOT


@pytest.fixture(name="without_jobs")
def _without_jobs(tmp_path: Path) -> Path:
    """Return a folder with the package, but for the part of jobs."""
    package = ROOT / "training_platform"
    left_out = (package / "parts" / "jobs").as_posix()
    ignored = shutil.ignore_patterns("__pycache__")

    def ignore(folder: str, names: list[str]) -> set[str]:
        parts = {"jobs"} if f"{folder}/jobs" == left_out else set()
        return {*ignored(folder, names), *parts}

    shutil.copytree(package, tmp_path / "training_platform", ignore=ignore)
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    (tmp_path / "jobs").mkdir()
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "training_platform.cli.main", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        check=False,
        capture_output=True,
        text=True,
    )


def test_check_says_that_nobody_checked_the_jobs(without_jobs: Path) -> None:
    done = run(without_jobs, "check")

    assert done.returncode == 2, done.stderr
    sentence = "this installation lacks the part of training-platform that checks job files"
    assert f"not checked: jobs/: {sentence}" in done.stdout
    assert done.stdout.splitlines()[-1] == "5 stacks: 1 thing not checked"


def test_the_help_has_the_commands_of_the_parts_that_are_left(without_jobs: Path) -> None:
    done = run(without_jobs, "--help")

    assert done.returncode == 0, done.stderr
    core, parts = done.stdout.partition("\nCommands:\n")[2].split("\nCommands of parts:\n")
    assert {"check", "init"} <= named(core)
    assert {"sandbox", "adopt"} <= named(parts)
    assert named(core + parts).isdisjoint({"job", "image", "simulate", "verify"})


def named(section: str) -> set[str]:
    """Return the first word of each line in a section of the help."""
    return {line.split()[0] for line in section.splitlines() if line.startswith("  ")}
