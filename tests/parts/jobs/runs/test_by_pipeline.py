"""``--by-pipeline``, with programs in place of `gh` and `glab` that answer as the services' APIs do."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.parts.jobs.runs.vertex_cloud import write_repository
from training_platform.cli.main import app

JOB = "jobs/vision/train.yaml"
# Answers in order, by the end of the path; the last body is kept.
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys

folder = pathlib.Path({folder!r})
file = folder / "answers.json"
if "--input" in sys.argv:
    body = sys.stdin.read()
    (folder / "body.json").write_text(body)
    file.write_text(file.read_text().replace("REQUEST", json.loads(body)["inputs"].get("request", "")))
answers = json.loads(file.read_text())
path = sys.argv[-1]
key = max((key for key in answers if path.endswith(key)), key=len, default=None)
if key is None:
    sys.exit("HTTP 404: Not Found (" + path + ")")
answer = answers[key][0]
if len(answers[key]) > 1:
    file.write_text(json.dumps({{**answers, key: answers[key][1:]}}))
sys.stdout.write(answer if isinstance(answer, str) else json.dumps(answer))
"""
GITHUB_LOG = """\
\ufeff2026-11-29T03:00:00.1234567Z ##[group]Run pipelines/job
2026-11-29T03:00:01.1234567Z == job submit
2026-11-29T03:00:02.1234567Z train-abcde
2026-11-29T03:00:02.1234567Z == exit code 0
2026-11-29T03:00:02.1234567Z # a line of the program's log may look like ours
2026-11-29T03:00:03.1234567Z == exit code 1
2026-11-29T03:00:04.1234567Z ##[error]Process completed with exit code 1.
"""
PRINTED = "train-abcde\n== exit code 0\n# a line of the program's log may look like ours\n"
GITLAB_LOG = (
    "2026-11-29T03:00:00.123456Z 00O \x1b[0;m$ pipelines/job\r\n"
    "2026-11-29T03:00:01.123456Z 01O == job cancel\n"
    "2026-11-29T03:00:02.123456Z 01O train-abcde is being stopped.\n"
    "2026-11-29T03:00:03.123456Z 01O == exit code 0\n"
)
RUN = {"id": 7, "html_url": "https://github.com/example/platform/actions/runs/7", "display_title": "job submit REQUEST"}
OTHER = {"id": 6, "html_url": "https://github.com/", "display_title": "job submit 0000"}
GITHUB: dict[str, list[Any]] = {
    "/dispatches": [""],
    "/runs?event=workflow_dispatch": [{"workflow_runs": [OTHER]}, {"workflow_runs": [RUN, OTHER]}],
    "/runs/7": [{"status": "queued"}, {"status": "completed"}],
    "/runs/7/jobs": [{"jobs": [{"id": 9}]}],
    "/jobs/9/logs": [GITHUB_LOG],
}
GITLAB: dict[str, list[Any]] = {
    "/pipeline": [{"id": 7, "web_url": "https://gitlab.example.com/example/platform/-/pipelines/7"}],
    "/pipelines/7": [{"status": "running"}, {"status": "success"}],
    "/pipelines/7/jobs": [[{"id": 8, "name": "other"}, {"id": 9, "name": "job"}]],
    "/jobs/9/trace": [GITLAB_LOG],
}


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a repository with a job; waiting takes no time."""
    origin = tmp_path / "github.com" / "platform"
    origin.mkdir(parents=True)
    write_repository(origin)
    git(origin, "init", "--quiet", "--initial-branch", "main")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "--message", "First")
    git(tmp_path, "clone", "--quiet", str(origin), "clone")
    monkeypatch.setattr("time.sleep", lambda _: None)
    return tmp_path / "clone"


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, answers: dict[str, list[Any]]) -> None:
    """Put a program on PATH that answers requests from a table."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "answers.json").write_text(json.dumps(answers))
    (folder / name).write_text(PROGRAM.format(folder=str(folder)))
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def body(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "bin" / "body.json").read_text())


def job(clone: Path, command: str, *arguments: str) -> Result:
    paths = [str(clone / text) if text == JOB else text for text in arguments]
    return CliRunner().invoke(app, ["job", command, *paths, "--by-pipeline", "--root", str(clone)])


def test_github_runs_it_on_main_and_the_command_ends_as_it_did_there(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, "gh", GITHUB)

    result = job(clone, "submit", JOB)

    assert (result.exit_code, result.stdout) == (1, PRINTED), result.output
    assert result.stderr == f"# {RUN['html_url']}\n"
    sent = body(tmp_path)
    assert sent["ref"] == "main"
    assert sent["inputs"] == {"command": "submit", "file": JOB, "run": "", "request": sent["inputs"]["request"]}


def test_gitlab_runs_it_on_main(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, "glab", GITLAB)
    git(clone, "remote", "set-url", "origin", "git@gitlab.example.com:example/platform.git")

    result = job(clone, "cancel", "train-abcde")

    assert (result.exit_code, result.stdout) == (0, "train-abcde is being stopped.\n"), result.output
    assert body(tmp_path) == {"ref": "main", "inputs": {"command": "cancel", "file": "", "run": "train-abcde"}}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("submit", JOB, "--args=a"), "excludes --args"),
        (("submit", JOB, "--env=A=b", "--nodes=2"), "excludes --env and --nodes"),
        (("submit", JOB, "--wherever=5"), "excludes --wherever"),
        (("submit", JOB, "--target=gke"), "is for Vertex AI"),
        (("logs", "train-abcde", "--follow"), "excludes --follow"),
        (("status", "train-abcde", "--format=json"), "excludes --format"),
    ],
    ids=str,
)
def test_what_a_pipeline_does_not_take_is_refused_before_a_request(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], why: str
) -> None:
    program(tmp_path, monkeypatch, "gh", {})

    result = job(clone, *arguments)

    assert result.exit_code == 2
    assert why in result.stderr


def changed_file(clone: Path) -> None:
    with (clone / JOB).open("a") as file:
        file.write("retries: 1\n")


def committed_file(clone: Path) -> None:
    changed_file(clone)
    git(clone, "commit", "--quiet", "--all", "--message", "Not merged")


@pytest.mark.parametrize("change", [changed_file, committed_file], ids=lambda change: change.__name__)
def test_a_file_that_differs_from_main_is_refused(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    program(tmp_path, monkeypatch, "gh", GITHUB)
    change(clone)

    result = job(clone, "submit", JOB)

    assert result.exit_code == 2
    assert f"{JOB} differs from the main branch of origin" in result.stderr
    assert not (tmp_path / "bin" / "body.json").exists()


def test_a_file_that_main_lacks_is_refused(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, "gh", GITHUB)
    (clone / "jobs/vision/other.yaml").write_bytes((clone / JOB).read_bytes())

    result = job(clone, "submit", str(clone / "jobs/vision/other.yaml"))

    assert result.exit_code == 2
    assert "jobs/vision/other.yaml is not on the main branch of origin" in result.stderr


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("folder: code, image: a/b:1", "train.py"),
        ("folder: code, image: a/b:1", "more.py"),
        ("package: code, module: train", "train.py"),
        ("file: code/train.py", "train.py"),
    ],
)
def test_source_that_is_uploaded_has_to_be_that_of_main(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, file: str
) -> None:
    program(tmp_path, monkeypatch, "gh", GITHUB)
    origin = tmp_path / "github.com" / "platform"
    (origin / "code").mkdir()
    (origin / "code" / "train.py").write_text("print(1)\n")
    (origin / JOB).write_text((origin / JOB).read_text() + f"source: {{{source}}}\n")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "--message", "Second")
    git(clone, "pull", "--quiet")
    (clone / "code" / file).write_text("print(2)\n")

    result = job(clone, "submit", JOB)

    assert result.exit_code == 2
    assert f"code/{file} differs from the main branch of origin" in result.stderr


@pytest.mark.parametrize(
    ("remote", "name"), [("git@github.com:a/b.git", "gh"), ("https://git.example.com/a/b.git", "glab")]
)
def test_a_missing_program_is_named_with_what_to_do(
    clone: Path, monkeypatch: pytest.MonkeyPatch, remote: str, name: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    git(clone, "remote", "set-url", "origin", remote)

    result = job(clone, "status", "train-abcde")

    assert result.exit_code == 2
    assert f"--by-pipeline needs {name}" in result.stderr
    assert f"{name} auth login" in result.stderr


def test_a_refused_request_is_one_sentence(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, "gh", {})

    result = job(clone, "status", "train-abcde")

    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "gh api: HTTP 404: Not Found" in result.stderr


def test_a_pipeline_that_fails_before_the_command_is_named(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, "gh", {**GITHUB, "/jobs/9/logs": ["2026-11-29T03:00:00Z no credentials\n"]})

    result = job(clone, "submit", JOB)

    assert result.exit_code == 2
    assert f"The pipeline ended before it ran the command: {RUN['html_url']}" in result.stderr
