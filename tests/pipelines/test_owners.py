"""``pipelines/owners.py`` writes who reviews which files, and says when a file is not up to date."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION, ROOT

GITHUB = Path(".github/CODEOWNERS")
GITLAB = Path(".gitlab/CODEOWNERS")
MAP = """\
platform: "@example-org/ml-platform"
teams:
  nlp: "@example-org/nlp"
  vision: "@example-org/vision"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    (tmp_path / "stacks" / "owners.yaml").write_text(MAP, encoding="utf-8")
    (tmp_path / "pipelines").mkdir()
    shutil.copy(ROOT / "pipelines" / "owners.py", tmp_path / "pipelines")
    return tmp_path


def owners(root: Path, *arguments: str) -> tuple[int, str]:
    script = str(root / "pipelines" / "owners.py")
    ran = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    assert ran.stdout == ""
    return ran.returncode, ran.stderr


def last_owner(lines: list[str], path: str) -> str:
    """Return the owner of a file by the last pattern that matches, as both services read a section."""
    owner = ""
    for pattern, name in (line.split() for line in lines if line and line[0] in "*/"):
        if pattern == "*" or path.startswith(pattern.lstrip("/")):
            owner = name
    return owner


def test_files_of_the_repository_are_up_to_date() -> None:
    assert owners(ROOT, "--check") == (0, "")


def test_a_team_owns_its_jobs_and_the_platform_all_else(root: Path) -> None:
    assert owners(root) == (0, "")

    lines = (root / GITHUB).read_text(encoding="utf-8").splitlines()
    assert last_owner(lines, "jobs/vision/train.yaml") == "@example-org/vision"
    for path in ("stacks/Pulumi.prod-vision.yaml", "stacks/exemptions.yaml", "own_resources.py", ".github/CODEOWNERS"):
        assert last_owner(lines, path) == "@example-org/ml-platform"


def test_on_gitlab_a_stack_file_needs_the_platform_and_its_team(root: Path) -> None:
    owners(root)

    _, platform, teams = (root / GITLAB).read_text(encoding="utf-8").split("\n[")
    path = "stacks/Pulumi.prod-vision.yaml"
    assert last_owner(platform.splitlines(), path) == "@example-org/ml-platform"
    assert last_owner(teams.splitlines(), path) == "@example-org/vision"
    assert last_owner(teams.splitlines(), "stacks/Pulumi.prod.yaml") == ""


def test_a_stale_file_is_named(root: Path) -> None:
    owners(root)
    assert owners(root, "--check") == (0, "")
    (root / GITHUB).write_text("* @somebody\n", encoding="utf-8")

    code, output = owners(root, "--check")

    assert (code, output.count("\n")) == (1, 1)
    assert ".github/CODEOWNERS is not up to date" in output


@pytest.mark.parametrize("arguments", [(), ("--check",)])
def test_files_written_from_a_map_that_is_gone_are_named(root: Path, arguments: tuple[str, ...]) -> None:
    owners(root)
    (root / "stacks" / "owners.yaml").unlink()

    code, output = owners(root, *arguments)

    assert (code, output.count("\n")) == (1, 2)
    assert ".gitlab/CODEOWNERS was written from stacks/owners.yaml, which does not exist" in output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nlp:", "npl:", "stacks/owners.yaml:3:3: teams.npl: is no team"),
        (
            '"@example-org/nlp"',
            "group:nlp@example.com",
            "stacks/owners.yaml:3:3: teams.nlp: 'group:nlp@example.com' cannot own files",
        ),
        ("platform:", "plattform:", "Nearest: platform"),
        ("teams:", "teams: [", "owners.yaml"),
    ],
)
def test_a_map_that_cannot_be_used_is_told_with_its_line(root: Path, old: str, new: str, message: str) -> None:
    path = root / "stacks" / "owners.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    code, text = owners(root)

    assert code == 2
    assert message in text
    assert "Traceback" not in text


@pytest.mark.parametrize(("owners_code", "check_code", "code"), [(0, 0, 0), (1, 0, 1), (1, 2, 2), (0, 1, 1)])
def test_the_check_of_pipelines_fails_for_stale_owners_too(
    tmp_path: Path, owners_code: int, check_code: int, code: int
) -> None:
    (tmp_path / "pipelines").mkdir()
    script = shutil.copy(ROOT / "pipelines" / "check", tmp_path / "pipelines")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    programs = {"make": 0, ".venv/bin/python": owners_code, ".venv/bin/training-platform": check_code}
    for name, ends_with in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {ends_with}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)

    ran = subprocess.run([script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False)

    assert ran.returncode == code
