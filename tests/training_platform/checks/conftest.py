"""A small repository under git, on a branch for changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.training_platform.checks.repository import ENVIRONMENT, TEAM, Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a repository with one environment and one of its teams."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = tmp_path / "repository"
    (root / "stacks").mkdir(parents=True)
    shutil.copy(ROOT / "Pulumi.yaml", root)
    work_tree = Repository(root)
    work_tree.path("small").write_text(ENVIRONMENT, encoding="utf-8")
    work_tree.path("small-vision").write_text(TEAM, encoding="utf-8")
    work_tree.git("init", "--quiet", "--initial-branch", "main")
    work_tree.commit()
    work_tree.git("switch", "--quiet", "--create", "change")
    return work_tree
