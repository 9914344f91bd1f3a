"""SIGTERM and SIGHUP during a check: it ends quietly with the shell's exit code, and leaves no process and no file."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import ROOT

SIGNALS = {signal.SIGTERM: 143, signal.SIGHUP: 129}


def _unheard(number: signal.Signals) -> pytest.MarkDecorator:
    """Return the mark that skips a signal ignored by the process of these tests, whose children inherit that."""
    return pytest.mark.skipif(
        signal.getsignal(number) is signal.SIG_IGN, reason=f"{number.name} is ignored, as by nohup"
    )


def marked(mark: str) -> Iterator[int]:
    """Yield the processes with a text in their environment, as those that a check starts."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (folder / "environ").read_bytes():
                yield int(folder.name)
        except OSError:
            continue


def ended(root: Path, number: signal.Signals, *arguments: str) -> tuple[int, str, list[int]]:
    """Send a signal to a check that plans forever, and return its exit and the processes that outlived it."""
    temporary = root.parent / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "training_platform.cli.main", "check", *arguments]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    check = subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True)
    (root.parent / "pids").read_text(encoding="utf-8")  # waits for a process that plans
    check.send_signal(number)
    _, errors = check.communicate(timeout=60)
    until = time.monotonic() + 10
    while (survivors := list(marked(f"TMPDIR={temporary}"))) and time.monotonic() < until:
        time.sleep(0.1)
    return check.returncode, errors, survivors


def never_ends(root: Path) -> None:
    """Write own resources that wait forever and signal through a pipe that they do."""
    pipe = root.parent / "pids"
    os.mkfifo(pipe)
    program = f"import os, signal\nopen({str(pipe)!r}, 'w').write(str(os.getpid()))\nsignal.pause()\n"
    (root / "own_resources.py").write_text(program, encoding="utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM])  # the one that a pipeline sends
def test_the_base_s_process_and_files_end_with_the_check(number: signal.Signals, repository: Any) -> None:
    root = repository.root
    shutil.copytree(
        ROOT / "training_platform", root / "training_platform", ignore=shutil.ignore_patterns("__pycache__")
    )
    never_ends(root)
    repository.commit()
    repository.git("branch", "--force", "main")
    (root / "own_resources.py").unlink()

    code, errors, survivors = ended(root, number, "small", "--base", "main")

    assert (code, survivors) == (SIGNALS[number], [])
    assert "Traceback" not in errors
    assert list((root.parent / "temporary").iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [pytest.param(number, marks=_unheard(number)) for number in SIGNALS])
def test_a_check_ends_with_the_exit_code_of_its_signal(number: signal.Signals, repository: Any) -> None:
    never_ends(repository.root)

    code, errors, survivors = ended(repository.root, number, "small")

    assert (code, survivors) == (SIGNALS[number], [])
    assert "Traceback" not in errors
