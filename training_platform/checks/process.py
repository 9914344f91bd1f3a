"""What a check needs from its process: a progress bar, and the signals that end it."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield a function that shows progress on standard error if that is a terminal, and otherwise shows nothing."""
    from rich.console import Console  # noqa: PLC0415 # slow to import

    console = Console(stderr=True)
    if not console.is_terminal:
        yield quiet
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading stack files", total=None)
        yield lambda step, done=0, total=0: bar.update(task, description=step, completed=done, total=total or None)


class Progress(Protocol):
    """A function that shows the current step, and how much of it is done if this is countable."""

    def __call__(self, step: str, done: int = 0, total: int = 0) -> None:
        """Show a step; ``total`` is 0 if nothing is counted."""


def quiet(step: str, done: int = 0, total: int = 0) -> None:
    """Show nothing."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an interrupt. The process then ends quietly with 128 plus the signal's number.

    A signal that was already ignored when the process started, as with ``nohup``, stays ignored. A second signal is
    ignored, so that the cleanup that the first one started can finish.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        warnings.simplefilter("ignore")
        for ending in taken:
            signal.signal(ending, signal.SIG_IGN)
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
