"""Stacks of the last version come up by its own program, and are brought up again by the present one.

Both run under the providers of this checkout: what another version of a provider replaces is its own matter.
"""

from __future__ import annotations

import fnmatch
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.parts.sandbox.run.repositories import Sandbox, without_stacks
from tests.support.places import ROOT
from tests.support.releases import commit_of, releases

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

STACKS = ["dev", "dev-vision"]  # of that version's own samples: an environment, and a team in it
DRASTIC = {"delete", "replace", "create-replacement", "delete-replaced", "discard-replaced"}


class Announced(NamedTuple):
    """What docs/upgrade.md says of resources that an update replaces or deletes; both may hold ``*``."""

    type: str
    name: str


def announced(version: str) -> list[Announced]:
    """Return what the guide says is replaced or deleted after a version."""
    page = (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| {re.escape(version)} \| (.*?) \|", page, re.MULTILINE)
    assert rows, f"docs/upgrade.md says nothing of what follows {version}"
    return [Announced(*name) for row in rows for name in re.findall(r"`(\S+) (\S+)`", row)]


def checkout(version: str, folder: Path) -> Path:
    """Lay out the tree of a version."""
    commit = os.environ.get("TRAINING_PLATFORM_UPGRADE_FROM") or commit_of(version)
    if commit is None:
        pytest.skip(f"git has no commit of version {version} here: fetch the whole history")
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        file.extractall(folder, filter="data")
    return folder


def steps(sandbox: Sandbox, stack: str) -> dict[tuple[str, str], set[str]]:
    """Bring a stack up, and return what that did to each resource, by type and name."""
    sandbox.steps("up", stack)
    operations: dict[tuple[str, str], set[str]] = {}
    for step in json.loads(sandbox.folder.summary(stack).read_text())["steps"]:
        operations.setdefault((step["type"], step["name"]), set()).add(step["op"])
    return operations


class Upgraded(NamedTuple):
    """The names that stacks had before, and what the present program did to each resource."""

    before: dict[str, set[str]]
    steps: dict[str, dict[tuple[str, str], set[str]]]


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Upgraded:
    version, _ = releases()[0]
    folder = tmp_path_factory.mktemp("upgrade")
    old = Sandbox(checkout(version, folder / "old"), program=folder / "old")
    for stack in STACKS:
        old.steps("up", stack)
    before = {stack: {resource["urn"] for resource in old.folder.resources(stack)} for stack in STACKS}

    new = without_stacks(folder / "new")
    root = new.folder.root
    shutil.copytree(old.folder.root / "stacks", root / "stacks", dirs_exist_ok=True)
    old.folder.path.rename(new.folder.path)
    return Upgraded(before, {stack: steps(new, stack) for stack in STACKS})


def test_the_last_version_brings_its_samples_up(upgraded: Upgraded) -> None:
    kinds = {urn.split("::")[2].rpartition("$")[2] for urns in upgraded.before.values() for urn in urns}

    assert {"gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool", "gcp:storage/bucket:Bucket"} <= kinds
    assert "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue" in kinds


def test_the_present_version_replaces_and_deletes_nothing_but_what_the_guide_says(upgraded: Upgraded) -> None:
    rows = announced(releases()[0].version)
    drastic = {
        key: done & DRASTIC
        for operations in upgraded.steps.values()
        for key, done in operations.items()
        if done & DRASTIC
    }

    def said(row: Announced, key: tuple[str, str]) -> bool:
        return fnmatch.fnmatchcase(key[0], row.type) and fnmatch.fnmatchcase(key[1], row.name)

    assert {key: done for key, done in drastic.items() if not any(said(row, key) for row in rows)} == {}
    assert [row for row in rows if not any(said(row, key) for key in drastic)] == []
