"""The map of who reviews what is judged by ``check`` too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION
from tests.training_platform.checks.repository import TODAY
from training_platform.checks.stacks import read_files
from training_platform.config.owners import FILE

OWNERS = 'platform: "@example-org/ml-platform"\nteams: {nlp: "@example-org/nlp"}\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("", "", []),
        ("nlp:", "npl:", ["teams.npl: is no team"]),
        ('"@example-org/nlp"', "nlp", ["teams.nlp: 'nlp' cannot own files"]),
    ],
)
def test_names_that_are_no_team_and_no_owner_are_found(root: Path, old: str, new: str, messages: list[str]) -> None:
    (root / FILE).write_text(OWNERS.replace(old, new), encoding="utf-8")

    findings = [row for row in read_files(root, TODAY).findings if row.file == FILE]

    assert [f"{row.path}: {row.message}" for row in findings] == messages
    assert {row.rule for row in findings} <= {"owners"}


def test_a_team_is_not_missing_because_its_file_is_rejected(root: Path) -> None:
    (root / FILE).write_text(OWNERS, encoding="utf-8")
    stack = root / "stacks" / "Pulumi.prod-nlp.yaml"
    stack.write_text(stack.read_text(encoding="utf-8").replace("name: nlp", "naem: nlp"), encoding="utf-8")

    assert [row for row in read_files(root, TODAY).findings if row.rule == "owners"] == []
