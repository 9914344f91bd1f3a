"""Ends an engine and its plugins when the process that started them was ended: ``python guardian.py MARK``.

The engine outlives its starter, and its plugins outlive the engine: both would go on creating with nobody to read the
outcome. They are known by a variable of their environment, which plugins inherit. Linux alone shows it, in ``/proc``.
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
_GRACE_SECONDS: Final = 5.0  # between asking the processes to end and killing them


@contextmanager
def guarded() -> Iterator[None]:
    """Have what carries this process's mark ended if this process is killed inside the block."""
    command = [sys.executable, "-I", __file__, f"{MARK}={os.getpid()}"]
    guardian = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            guardian.communicate(b"ended")


def main() -> None:
    """Wait for the starter; kill what it left behind where it did not say that it ended."""
    if not sys.stdin.buffer.read():
        end_marked(sys.argv[1])


def end_marked(mark: str) -> None:
    """Ask processes with a mark, ``NAME=VALUE``, to end, and kill them after a while."""
    for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, 0.0)):
        for pid in _marked(mark.encode()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while _marked(mark.encode()) and time.monotonic() < deadline:
            time.sleep(0.1)


def _marked(mark: bytes) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another user's, or gone
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


if __name__ == "__main__":
    main()
