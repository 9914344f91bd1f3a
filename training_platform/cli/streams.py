"""Standard output and standard error that nobody can write to, or that nobody reads any more."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

COULD_NOT = 2
NOBODY_READS = 141  # what a shell says of a program that a closed pipe ended: 128 and the number of the signal


class StreamError(Exception):
    """A standard stream that cannot be written; no OSError, which libraries take for one of their own files."""

    def __init__(self, name: str, reason: OSError) -> None:
        super().__init__(f"{name} cannot be written: {reason.strerror or reason}.")
        self.reason = reason


@contextmanager
def standard_streams() -> Iterator[None]:
    """Run a command with streams whose failure ends the process: with one sentence and exit code 2.

    Where the reader of a pipe has gone, as ``head`` does, that is no failure: it ends quietly, with 141. A character
    that standard output has not in its encoding becomes a ``?``.
    """
    if sys.stderr is None:  # whoever closed it wants no messages; a file that is opened must not take its place
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        _end(COULD_NOT, "standard output is closed; where nobody needs it, send it to /dev/null.")
    sys.stdout = _checked(sys.stdout, "standard output", errors="replace")
    sys.stderr = _checked(sys.stderr, "standard error", errors=sys.stderr.errors)
    try:
        try:
            yield
        finally:  # what is buffered would fail later, after the exit code is decided
            sys.stdout.flush()
            sys.stderr.flush()
    except StreamError as error:
        if isinstance(error.reason, BrokenPipeError):
            _end(NOBODY_READS, "")
        _end(COULD_NOT, str(error))


class _Checked(io.FileIO):
    """A descriptor whose writes raise StreamError."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._said = name

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes; returns how many."""
        try:
            return super().write(data)
        except OSError as error:
            raise StreamError(self._said, error) from error


def _checked(stream: TextIO, name: str, *, errors: str | None) -> TextIO:
    buffered = io.BufferedWriter(_Checked(stream.fileno(), name))
    lines = isinstance(stream, io.TextIOWrapper) and stream.line_buffering
    return io.TextIOWrapper(buffered, encoding=stream.encoding, errors=errors, line_buffering=lines)


def _end(code: int, message: str) -> NoReturn:
    """End the process; what is still buffered goes nowhere, since Python would fail at it once more."""
    if message:
        with suppress(OSError):
            os.write(2, f"training-platform: {message}\n".encode())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.exit(code)
