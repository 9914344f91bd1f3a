"""Images: what they are called, and which programs build them, by stand-ins on PATH that write down what they get."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.training_platform.jobs.conftest import ENVIRONMENT
from training_platform.cli.main import app

IMAGE = "us-central1-docker.pkg.dev/example-lab/lab-images/trainer"
PROGRAM = '#!/bin/sh\nprintf "%s\\n" "$(basename "$0") $*" >> "$CALLS"\nexit "${ENDS:-0}"\n'


@pytest.fixture
def root(new_lab: Callable[..., Path]) -> Path:
    return new_lab(lab=ENVIRONMENT.replace("    labels:", "    images: {location: us-central1}\n    labels:", 1))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "trainer"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM scratch\n")
    return folder


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put stand-ins for all programs on PATH; returns the file with their calls."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("gcloud", "docker", "buildah"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def build(root: Path, source: Path, *arguments: str) -> Result:
    command = ["image", "build", str(source), "--environment", "lab", "--root", str(root), *arguments]
    return CliRunner().invoke(app, command)


def test_cloud_build_gets_the_folder_and_the_environment_s_repository(root: Path, source: Path, calls: Path) -> None:
    result = build(root, source, "--tag", "1")

    assert result.exit_code == 0, result.output
    assert result.stdout == f"{IMAGE}:1\n"
    assert calls.read_text() == f"gcloud builds submit {source} --tag {IMAGE}:1 --project example-lab\n"


@pytest.mark.parametrize("program", ["docker", "buildah"])
def test_an_image_that_is_built_here_is_pushed(program: str, root: Path, source: Path, calls: Path) -> None:
    result = build(root, source, "--tag", "1", "--with", program, "--format", "json")

    assert json.loads(result.stdout)["image"] == f"{IMAGE}:1"
    built, pushed = calls.read_text().splitlines()
    assert built == f"{program} build --platform linux/amd64 --tag {IMAGE}:1 {source}"
    assert pushed == f"{program} push {IMAGE}:1"


def test_a_dry_run_shows_the_commands_and_runs_none(root: Path, source: Path, calls: Path) -> None:
    result = build(root, source, "--tag", "1", "--with", "docker", "--dry-run")

    assert result.stdout.splitlines()[1] == f"docker push {IMAGE}:1"
    assert not calls.exists()


def test_an_image_that_is_not_built_is_not_pushed(
    root: Path, source: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDS", "3")

    result = build(root, source, "--tag", "1", "--with", "docker")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "docker build --platform ended with 3" in result.stderr
    assert len(calls.read_text().splitlines()) == 1


def test_the_tag_is_the_commit_and_changes_are_in_none(root: Path, source: Path, calls: Path) -> None:
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True)

    assert build(root, source).stdout == f"{IMAGE}:{commit.stdout}"
    (source / "new").touch()
    assert "changes that are in no commit" in build(root, source).stderr
    assert len(calls.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--environment", "lap"], "There is no environment lap. Nearest: lab."),
        (["--name", "Trainer"], "'Trainer' is not a name of an image"),
        (["--tag", "a b"], "'a b' is not a tag of an image"),
        ([], "is not in a git repository with a commit"),
    ],
)
def test_what_cannot_be_built_is_one_sentence(
    arguments: list[str], sentence: str, root: Path, source: Path, calls: Path
) -> None:
    tag = [] if not arguments or arguments[0] == "--tag" else ["--tag", "1"]

    result = build(root, source, *tag, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert not calls.exists()


def test_a_folder_that_is_not_there_is_said_before_its_commit_is_looked_for(root: Path, source: Path) -> None:
    assert "gone is not a folder." in build(root, source / "gone").stderr


def test_an_environment_without_a_repository_is_said(new_lab: Callable[..., Path], source: Path, calls: Path) -> None:
    assert "lab has no repository of images" in build(new_lab(), source, "--tag", "1").stderr


def test_a_machine_without_any_builder_is_said(
    root: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "None of gcloud, docker, buildah is on PATH" in build(root, source, "--tag", "1").stderr
