from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tools.release import UPGRADE_PAGE, add_upgrade_row, current_version, refusal, write_version

FILES = (
    "pyproject.toml",
    "policies/PulumiPolicy.yaml",
    "docs/reference/ci.md",
    str(UPGRADE_PAGE),
    "changelog.d/README.md",
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a repository with one commit of the files that a release writes, and one fragment."""
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "changelog.d" / "pools.added.md").write_text("Pools.\n", encoding="utf-8")
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Begin"]):
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True)
    return tmp_path


def test_a_release_writes_its_version_to_every_file_that_names_it(clone: Path) -> None:
    former = current_version(clone)

    write_version(clone, "97.3.1")

    assert current_version(clone) == "97.3.1"
    for file in ("policies/PulumiPolicy.yaml", "docs/reference/ci.md"):
        text = (clone / file).read_text(encoding="utf-8")
        assert "97.3.1" in text
        assert former not in text


def test_a_file_that_does_not_name_the_version_stops_the_release(clone: Path) -> None:
    (clone / "docs/reference/ci.md").write_text("# Pipelines\n", encoding="utf-8")

    with pytest.raises(LookupError, match=r"docs/reference/ci\.md: 0 lines contain the version"):
        write_version(clone, "97.3.1")


def test_the_page_on_upgrades_gets_a_row_above_the_others(clone: Path) -> None:
    add_upgrade_row(clone, "97.3.1")

    rows = [line for line in (clone / UPGRADE_PAGE).read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert rows[2] == "| 97.3.1 | nothing so far | |"
    assert rows[3].startswith("| 0.")


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("next", "VERSION: 'next' is not a version. Allowed: three numbers, such as 0.3.0"),
        ("0.0.9", "VERSION: 0.0.9 is not later than"),
        (current_version(ROOT), f"VERSION: {current_version(ROOT)} is not later than {current_version(ROOT)}"),
    ],
)
def test_a_version_that_does_not_follow_the_current_one_is_refused(clone: Path, version: str, reason: str) -> None:
    assert (refusal(clone, version) or "").startswith(reason)


def test_a_release_without_fragments_is_refused(clone: Path) -> None:
    assert refusal(clone, "97.3.1") is None
    (clone / "changelog.d" / "pools.added.md").unlink()

    assert (refusal(clone, "97.3.1") or "").startswith("changelog.d: contains no fragments")


def test_a_release_of_changes_that_are_not_committed_is_refused(clone: Path) -> None:
    (clone / "pyproject.toml").touch()
    assert refusal(clone, "97.3.1") is None
    (clone / "notes.txt").write_text("x", encoding="utf-8")

    assert (refusal(clone, "97.3.1") or "").startswith("The checkout has changes")
