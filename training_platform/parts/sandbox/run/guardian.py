"""Ends an engine and its plugins when the process that started them has ended: ``python guardian.py MARK``.

The engine survives the process that started it, and plugins survive the engine. They would continue to create resources
that are not recorded. An environment variable, which plugins inherit, identifies them. Only Linux shows the variables
of processes, in ``/proc``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

MARK: Final = "TRAINING_PLATFORM_ENGINE_OF"
_GRACE_SECONDS: Final = 5.0  # between SIGTERM and SIGKILL


@contextmanager
def guarded() -> Iterator[None]:
    """If this process is killed inside the ``with`` block, end all processes that have its mark."""
    command = [sys.executable, "-I", __file__, f"{MARK}={os.getpid()}"]
    guardian = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            guardian.communicate(b"ended")


def main() -> None:
    """Wait for the end of the starting process. If it was killed, end the processes that it left behind."""
    if not sys.stdin.buffer.read():
        end_marked(sys.argv[1])


def end_marked(mark: str) -> None:
    """End processes with a mark, given as ``NAME=VALUE``. Kill those that still run after a grace period."""
    for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, 0.0)):
        for pid in _marked(mark.encode()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while _marked(mark.encode()) and time.monotonic() < deadline:
            time.sleep(0.1)


def _marked(mark: bytes) -> list[int]:
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another user's process, or one that has ended
            if mark in path.read_bytes().split(b"\0"):
                pids.append(int(path.parent.name))
    return pids


if __name__ == "__main__":
    main()
