"""Programs of ``examples/jobs/`` as processes of the Python that has their libraries."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer

import pytest

from tests.examples.jobs.data_sets import MAKE_ARRAYS
from tests.support.places import ROOT

EXAMPLES = ROOT / "examples" / "jobs"
PYTHON = "TRAINING_PLATFORM_EXAMPLES_PYTHON"
SECONDS = 150
Start = Callable[..., "Program"]


class Program:
    """A process and its children; its output is read line by line."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._limit = Timer(SECONDS, self.kill)
        self._limit.start()

    def until(self, pattern: str) -> str:
        """Read until a line matches; the test fails where the program ends before."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())
            if re.fullmatch(pattern, self.lines[-1]):
                return self.lines[-1]
        pytest.fail(f"ended without {pattern}:\n" + "\n".join(self.lines[-30:]))

    def terminate(self) -> None:
        """Send SIGTERM as a kubelet does: only to the container's first process."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL to the process and all that it started, as the loss of a VM does."""
        if self._process.poll() is not None:
            return
        for pid in self._tree():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _tree(self) -> list[int]:
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True).stdout
        parents = [tuple(map(int, line.split())) for line in listed.splitlines()]
        tree = [self._process.pid]
        for above in tree:
            tree += [pid for pid, parent in parents if parent == above]
        return tree

    def ended(self) -> int:
        """Read to the end; return the exit code."""
        assert self._process.stdout is not None
        if not self._process.stdout.closed:
            self.lines += [line.rstrip() for line in self._process.stdout]
            self._process.stdout.close()
        self._limit.cancel()
        return self._process.wait()

    def ends_well(self) -> list[str]:
        """Read to the end, which has to be a good one; return all lines."""
        code = self.ended()
        assert code == 0, "\n".join(self.lines[-30:])
        return self.lines


@pytest.fixture
def python() -> str:
    """Return the Python that has the examples' libraries; without one a test is skipped."""
    named = os.environ.get(PYTHON)
    if named is None:
        pytest.skip("only `make test-examples` installs and uses the examples' libraries, gigabytes")
    return named


@pytest.fixture
def arrays(tmp_path: Path, python: str) -> Path:
    """Return a file of three classes that a linear classifier tells apart."""
    path = tmp_path / "data.npz"
    subprocess.run([python, "-c", MAKE_ARRAYS, str(path)], check=True, capture_output=True)
    return path


@pytest.fixture
def start(python: str, tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a program of an example; all of them have ended after the test."""
    started: list[Program] = []
    home = {"HOME": str(tmp_path), "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"}
    quiet = {"HF_HUB_OFFLINE": "1", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    local = {"GLOO_SOCKET_IFNAME": "lo", "TP_SOCKET_IFNAME": "lo", "PYTHONUNBUFFERED": "1"}

    def begin(*command: str | Path, module: str = "", **environment: str) -> Program:
        run = [python, *map(str, command)]
        if module:
            run[1:1] = ["-m", module]
        started.append(Program(run, {**home, **quiet, **local, **environment}))
        return started[-1]

    yield begin
    for program in started:
        program.kill()
        program.ended()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


def last(lines: list[str], word: str) -> str:
    """Return the last line that begins with a word."""
    return [line for line in lines if line.startswith(f"{word} ")][-1]
