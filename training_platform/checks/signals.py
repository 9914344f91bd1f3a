"""Signals that ask a process to end: it stops as on an interrupt, and leaves nothing behind."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an interrupt; the process then ends quietly with 128 and the signal's number.

    A signal that the process was started to ignore, as by ``nohup``, stays ignored. A second one is ignored, so that
    what the first began to clear away is cleared away.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    taken = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, interrupt)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if came:
            sys.exit(128 + came[0])
        raise
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
