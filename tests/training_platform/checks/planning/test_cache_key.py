"""Whatever can change an outcome changes its digest; what is applied to outcomes afterwards does not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.places import ORGANISATION
from training_platform.checks.planning.cache import CODE, program_digest, stack_digest
from training_platform.config.workspace import read_workspace

STACK = read_workspace(ORGANISATION).stacks["prod-vision"]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for package in ("training_platform", "modules"):
        shutil.copytree(CODE / package, tmp_path / "code" / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "code"


def append(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")


Digest = Callable[[], str]


@pytest.fixture
def digest(copy: Path, code: Path) -> Digest:
    return lambda: stack_digest(program_digest(copy, code), copy, STACK, inputs=False)


MATTERS = {
    "its own file": "copy/stacks/Pulumi.prod-vision.yaml",
    "its environment's file": "copy/stacks/Pulumi.prod.yaml",
    "the project file": "copy/Pulumi.yaml",
    "the program": "copy/__main__.py",
    "a component": "code/modules/gke.py",
    "the catalogue": "code/training_platform/catalog/data/h100.yaml",
    "a rule": "code/training_platform/rules/storage.py",
    "the recorder": "code/training_platform/checks/planning/recorder.py",
}


@pytest.mark.parametrize("name", MATTERS)
def test_a_change_misses(name: str, digest: Digest, tmp_path: Path) -> None:
    before = digest()
    append(tmp_path / MATTERS[name])

    assert digest() != before


def test_a_new_file_of_the_code_misses(digest: Digest, code: Path) -> None:
    before = digest()
    (code / "training_platform" / "catalog" / "data" / "new.yaml").write_text("", encoding="utf-8")

    assert digest() != before


def test_components_count_where_the_program_finds_them(digest: Digest, copy: Path, code: Path) -> None:
    """Installed from a wheel, the package has no components beside it: they are the clone's."""
    shutil.move(code / "modules", copy / "modules")
    before = digest()
    append(copy / "modules" / "gke.py")

    assert digest() != before


def test_a_deleted_environment_misses(digest: Digest, copy: Path) -> None:
    before = digest()
    (copy / "stacks" / "Pulumi.prod.yaml").unlink()

    assert digest() != before


def test_another_python_misses(digest: Digest, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    monkeypatch.setattr(sys, "version", "3.99.0")

    assert digest() != before


@pytest.mark.parametrize(
    ("folder", "file"),
    [("invented-10.2.0.dist-info", "METADATA"), ("invented.egg-info", "PKG-INFO"), (".", "invented.egg-info")],
)
def test_another_version_of_a_package_misses(
    digest: Digest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str, file: str
) -> None:
    site = tmp_path / "site"
    metadata = site / folder / file
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: invented\nVersion: 10.2.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    before = digest()
    metadata.write_text("Metadata-Version: 2.1\nName: invented\nVersion: 10.2.1\n", encoding="utf-8")

    assert digest() != before


def test_an_outcome_with_inputs_is_another_than_one_without(copy: Path, code: Path) -> None:
    program = program_digest(copy, code)

    assert stack_digest(program, copy, STACK, inputs=True) != stack_digest(program, copy, STACK, inputs=False)


UNRELATED = ("stacks/Pulumi.dev.yaml", "stacks/Pulumi.prod-nlp.yaml", "stacks/clock.yaml", "stacks/exemptions.yaml",
             "stacks/quotas/example-train-prod.yaml")  # fmt: skip


@pytest.mark.parametrize("file", UNRELATED)
def test_what_is_applied_to_outcomes_afterwards_hits(file: str, digest: Digest, copy: Path) -> None:
    before = digest()
    append(copy / file)

    assert digest() == before


def test_byte_code_hits(digest: Digest, code: Path) -> None:
    before = digest()
    (code / "modules" / "__pycache__").mkdir()
    (code / "modules" / "__pycache__" / "team.cpython-311.pyc").write_bytes(b"1")

    assert digest() == before
