"""Where reports go: standard output for the report, a line that renews itself on a terminal for progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from checks.report import Report
from checks.reports.json_report import json_report
from checks.reports.text import print_report

_LOG_WIDTH = 160  # columns where no terminal says how wide it is: logs do not wrap


def print_text(report: Report) -> None:
    """Print a report for people; colours on a terminal only."""
    console = Console(highlight=False)
    if console.is_terminal:
        print_report(report, console)
        return
    log = Console(highlight=False, width=_LOG_WIDTH)
    with log.capture() as capture:
        print_report(report, log)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def print_json(report: Report) -> None:
    """Print a report for programs."""
    sys.stdout.write(json_report(report) + "\n")


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is being done, on a terminal; in a pipe it stays quiet."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("reading stack files") as status:
        yield status.update
