"""Runs a program that ends with the process that started it: ``python tied_process.py PROGRAM ARGS...``.

They are tied by standard input, a pipe whose other end closes with the starter, even if that is killed. This takes a
process in between, since only Linux ends a child with its parent, and does so already with the thread that started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Final

GRACE_SECONDS: Final = 5.0  # between SIGTERM and SIGKILL


class TiedProcess:
    """A program that runs until ``close``, or until this process ends; its output goes to ``log``."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("ab") as out:
            # A session of its own: Ctrl-C at the terminal is for the engine, which still needs the program.
            self._process = subprocess.Popen(  # the caller's own command
                [sys.executable, "-I", str(Path(__file__)), *command],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.log = log

    @property
    def ended(self) -> bool:
        """Whether the program has ended."""
        return self._process.poll() is not None

    def last_words(self) -> str:
        """Return the last lines of its log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:])

    def close(self) -> None:
        """End the program, and wait for its end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def main() -> int:
    """Run the program and return its exit code; end it when standard input closes."""
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)  # the starter's own command

    def end_with_input() -> None:
        while os.read(0, 1):  # not through sys.stdin, whose lock this thread would hold when Python ends
            pass
        process.terminate()
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()

    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    Thread(target=end_with_input, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
