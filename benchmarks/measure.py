"""Runs a command as a whole process and says what it took; prints tables."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
PROGRAM = str(BIN / "training-platform")
ORGANISATION = ROOT / "tests" / "organisation"
"""Stacks that exist whatever a user keeps in ``stacks/``."""


class MeasuredRun(NamedTuple):
    """One run of a command and its children: seconds of wall clock and CPU, and the most memory of any one process."""

    wall: float
    cpu: float
    peak_mib: float


def run(
    command: Sequence[str],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    accept: Collection[int] = (0,),
    out: Path = Path(os.devnull),
) -> MeasuredRun:
    """Run a command and return what it took; ends the benchmark where its exit code is none that is accepted.

    Byte code is kept, as where people work: without it every run would compile the program again, a quarter of a start.
    """
    environment = {**os.environ, **(env or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    with out.open("wb") as output, subprocess.Popen(command, cwd=cwd, env=environment, stdout=output) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in accept:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return MeasuredRun(time.perf_counter() - start, used.ru_utime + used.ru_stime, peak_mib=used.ru_maxrss / 1024)


def cells(runs: Sequence[MeasuredRun]) -> tuple[str, str, str]:
    """Return wall clock and CPU of several runs, the median with the least and the most, and the peak of memory."""
    peak = max(process.peak_mib for process in runs)
    walls = spread([process.wall for process in runs])
    return walls, spread([process.cpu for process in runs]), f"{peak:.0f}"


def spread(values: Sequence[float]) -> str:
    """Return the median with the least and the most."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table."""
    print(f"\n## {title}\n")
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)
