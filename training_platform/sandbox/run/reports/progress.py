"""What a person sees while the engine works: how much is done and what is under way; in a pipe, nothing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from training_platform.sandbox.run.reports.timeline import Timeline

_SHOWN: Final = 8  # operations under way, the longest first


@contextmanager
def shown(console: Console, title: str, timeline: Timeline, total: int | None) -> Iterator[None]:
    """Show a run for as long as the block runs; ``total`` is how many resources it has, None where nobody knows."""
    if not console.is_terminal:
        yield
        return
    with Live(
        get_renderable=lambda: picture(title, timeline, total), console=console, refresh_per_second=4, transient=True
    ):
        yield


@contextmanager
def patient(say: Callable[[str], None]) -> Iterator[None]:
    """Leave the first Ctrl-C to the engine, which the terminal tells as well; the second ends this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def once(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        say("stopping: the engine ends what is under way; Ctrl-C again kills it, and then --resume takes over")

    signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def picture(title: str, timeline: Timeline, total: int | None) -> RenderableType:
    """Return the lines that are shown."""
    done, elapsed = timeline.done(), timeline.elapsed()
    count = f"{done}/{max(total, done)}" if total else str(done)
    head = Table.grid(padding=(0, 1))
    head.add_row(
        Text(title, style="bold"),
        ProgressBar(total=max(total, done) if total else None, completed=done, width=30, pulse=not total),
        Text(f"{count} resources, {elapsed:.0f} s"),
    )
    steps = timeline.under_way()
    rows = Table.grid(padding=(0, 2))
    for step in steps[:_SHOWN]:
        rows.add_row(Text(f"  {step.op}"), Text(step.name), Text(f"{elapsed - step.began:.0f} s", style="dim"))
    if len(steps) > _SHOWN:
        rows.add_row(Text(f"  and {len(steps) - _SHOWN} more", style="dim"))
    return Group(head, rows)


def status(console: Console) -> Callable[[str], None]:
    """Return a function that says on a terminal what comes next, and nothing in a pipe."""
    return (lambda text: console.print(Text(text, style="dim"))) if console.is_terminal else (lambda _: None)
