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

ROOT = Path(__file__).parents[3]
SIGNALS = {signal.SIGTERM: 143, signal.SIGHUP: 129}


def _unheard(number: signal.Signals) -> pytest.MarkDecorator:
    """Return the mark that skips a signal which these tests were started to ignore, and so all that they start."""
    return pytest.mark.skipif(
        signal.getsignal(number) is signal.SIG_IGN, reason=f"{number.name} is ignored, as by nohup"
    )


def marked(mark: str) -> Iterator[int]:
    """Yield the processes that have a text in their environment, as those have that a check starts."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (folder / "environ").read_bytes():
                yield int(folder.name)
        except OSError:
            continue


def started(root: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a check that has its temporary files in a folder of its own, beside the repository."""
    temporary = root.parent / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "training_platform.cli.main", "check", "--no-cache", *arguments]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    return subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True)


def ended(root: Path, number: signal.Signals, *arguments: str) -> tuple[int, str, list[int]]:
    """Start a check whose program never ends, send it a signal once it runs; return its end and who outlived it."""
    temporary = root.parent / "temporary"
    check = started(root, *arguments)
    (root.parent / "pids").read_text(encoding="utf-8")  # waits for a process that plans
    check.send_signal(number)
    _, said = check.communicate(timeout=60)
    until = time.monotonic() + 10
    while (left := list(marked(f"TMPDIR={temporary}"))) and time.monotonic() < until:
        time.sleep(0.1)
    return check.returncode, said, left


def never_ends(root: Path) -> str:
    pipe = root.parent / "pids"
    os.mkfifo(pipe)
    return f"import os, signal\nopen({str(pipe)!r}, 'w').write(str(os.getpid()))\nsignal.pause()\n"


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM])  # the one that a pipeline sends; each takes ten seconds
def test_the_base_s_process_and_checkout_end_with_the_check(number: signal.Signals, repository: Any) -> None:
    root = repository.root
    for package in ("modules", "training_platform"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    main = (root / "__main__.py").read_text(encoding="utf-8")
    (root / "__main__.py").write_text(never_ends(root), encoding="utf-8")
    repository.commit()
    repository.git("branch", "--force", "main")
    (root / "__main__.py").write_text(main, encoding="utf-8")

    code, said, left = ended(root, number, "small", "--base", "main")

    assert (code, left) == (SIGNALS[number], [])
    assert "Traceback" not in said
    assert list((root.parent / "temporary").iterdir()) == []


def fast(root: Path) -> None:
    """Check without the program, beside what stands in the temporary folder."""
    command = [sys.executable, "-m", "training_platform.cli.main", "check", "small", "--fast", "--base", "main"]
    environment = {**os.environ, "TMPDIR": str(root.parent / "temporary")}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr  # there is no snapshot of the project's quotas


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_checkout_that_a_killed_check_left_goes_with_the_next_one(repository: Any) -> None:
    root = repository.root
    for package in ("modules", "training_platform"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "__main__.py").write_text(never_ends(root), encoding="utf-8")
    repository.commit()
    repository.git("branch", "--force", "main")
    (root / "__main__.py").write_text("", encoding="utf-8")
    temporary = root.parent / "temporary"

    check = started(root, "small", "--base", "main")
    (root.parent / "pids").read_text(encoding="utf-8")
    (tree,) = temporary.glob("training-platform-base-*/tree")
    fast(root)
    assert tree.exists()  # in use

    check.kill()
    check.communicate(timeout=60)
    for each in marked(f"TMPDIR={temporary}"):
        os.kill(each, signal.SIGKILL)
    assert tree.exists()  # left behind
    fast(root)
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [pytest.param(each, marks=_unheard(each)) for each in SIGNALS])
def test_processes_that_plan_end_with_the_check(number: signal.Signals, repository: Any) -> None:
    root = repository.root
    shutil.copy(repository.path("small"), repository.path("other"))
    (root / "__main__.py").write_text(never_ends(root), encoding="utf-8")

    code, said, left = ended(root, number, "small", "other", "--jobs", "2")

    assert (code, left) == (SIGNALS[number], [])
    assert "Traceback" not in said


def test_a_process_that_plans_ends_quietly_where_nobody_waits_any_more(repository: Any) -> None:
    code = """
import sys
from multiprocessing import Pipe
from pathlib import Path
from training_platform.checks.planning import workers
ours, theirs = Pipe()
workers.plan = lambda job: ours.close() or workers.Answer(None, "late")
ours.send(workers.PlanTask(Path(), "dev", {}, False, False))
workers.serve(theirs)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
