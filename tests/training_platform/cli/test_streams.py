"""Every command, with standard streams that are unwritable, closed, or without a reader."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support.places import ORGANISATION
from training_platform.cli import main

COMMANDS = [
    pytest.param(["check"], id="check"),
    pytest.param(["job", "render", "jobs/nlp/pretrain.yaml", "--target", "gke"], id="job"),
    pytest.param(["--help"], id="help"),
]
FULL = "training-platform: standard output cannot be written: No space left on device."


def run(arguments: list[str], redirection: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = [
        "sh",
        "-c",
        f'exec "$@" {redirection}',
        "sh",
        sys.executable,
        "-m",
        "training_platform.cli.main",
        *arguments,
    ]
    variables = {**os.environ, **environment}
    return subprocess.run(
        command, cwd=ORGANISATION, env=variables, capture_output=True, text=True, timeout=60, check=False
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_output_that_cannot_be_written_is_one_sentence_and_exit_code_2(arguments: list[str]) -> None:
    done = run(arguments, ">/dev/full")

    assert (done.returncode, last_line(done)) == (2, FULL)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_reader_who_has_gone_is_no_error(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "training_platform.cli.main", *arguments]
    done = subprocess.run(
        command, cwd=ORGANISATION, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writing)

    assert done.returncode == 141
    notes = ("# requests ", "# each pod has", "# runs ")
    assert [line for line in done.stderr.splitlines() if not line.startswith(notes)] == []


def test_findings_that_nobody_could_be_shown_do_not_end_with_their_exit_code(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\n", encoding="utf-8")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text("config: {}\n", encoding="utf-8")
    arguments = ["check", "--root", str(tmp_path)]

    assert run(arguments).returncode == 1
    assert run(arguments, ">/dev/full").returncode == 2


def test_standard_output_that_is_closed_is_said_before_anything_is_done() -> None:
    done = run(["check"], ">&-")

    assert done.returncode == 2
    assert done.stderr.startswith("training-platform: standard output is closed")


@pytest.mark.parametrize(("redirection", "code"), [("2>&-", 0), ("2>/dev/full", 2)])
def test_a_full_standard_error_fails_a_run_and_a_closed_one_does_not(redirection: str, code: int) -> None:
    done = run(["job", "render", "jobs/nlp/pretrain.yaml", "--target", "gke"], redirection)

    assert (done.returncode, done.stderr) == (code, "")


def test_a_character_that_the_terminal_has_not_is_a_question_mark() -> None:
    done = run(["check", "--verbose"], PYTHONIOENCODING="ascii")

    assert done.returncode == 0
    assert "???" in done.stdout


def broken() -> None:
    raise KeyError("a value\udcff of a file")


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> object:
    """Return the exit code of a command that fails."""
    capsys.readouterr()  # what the test reads was written since
    monkeypatch.setenv("TRAINING_PLATFORM_TRACEBACK", getattr(request, "param", ""))
    monkeypatch.setattr(main, "app", broken)
    monkeypatch.setattr(main, "standard_streams", nullcontext)
    with pytest.raises(SystemExit) as ended:
        main.main()
    return ended.value.code


def test_a_mistake_of_our_own_is_one_sentence_and_exit_code_2(code: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert code == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(
        "training-platform: failed and checked nothing because of a bug in training-platform: KeyError in"
    )
    assert sentence.endswith("TRAINING_PLATFORM_TRACEBACK=1 shows more.")
    assert "a value" not in sentence


@pytest.mark.parametrize("code", ["1"], indirect=True)
def test_who_asks_is_shown_where(code: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert code == 2
    assert Path(__file__).name in capsys.readouterr().err
