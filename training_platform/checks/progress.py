"""What a check says of itself while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Shows what is being done, and how much of it where that can be counted."""

    def __call__(self, what: str, done: int = 0, total: int = 0) -> None:
        """Show it; ``total`` is 0 where nothing is counted."""


def quiet(what: str, done: int = 0, total: int = 0) -> None:
    """Show nothing."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield a progress bar on a terminal's standard error; in a pipe it stays quiet."""
    from rich.console import Console  # noqa: PLC0415 # nobody else waits for it

    console = Console(stderr=True)
    if not console.is_terminal:
        yield quiet
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading stack files", total=None)
        yield lambda what, done=0, total=0: bar.update(task, description=what, completed=done, total=total or None)
