"""Times the command line as whole processes: wall and CPU seconds, peak memory over the process and its children.

Run by ``make bench``. Figures are of this machine on this day; the last column compares with starting Python alone,
measured in the same run, turn by turn.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
RUNS = 7
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "training-platform --help": [str(BIN / "training-platform"), "--help"],
    "training-platform check --fast": [str(BIN / "training-platform"), "check", "--fast"],
    "training-platform check": [str(BIN / "training-platform"), "check"],
}


class Run(NamedTuple):
    """One run of a command."""

    wall: float
    cpu: float
    peak_mib: float


def run(command: list[str]) -> Run:
    """Run a command and return what it took; ends the benchmark where it fails."""
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Run(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    """Run every command in turn, several times, and print a table."""
    runs: dict[str, list[Run]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        run(command)  # a warm-up: byte code and the file cache
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            runs[name].append(run(command))
    print(f"{RUNS} runs each, median (min to max)\n")
    print(f"{'command':32} {'wall s':>22} {'CPU s':>22} {'peak MiB':>9} {'x python':>9}")
    base = statistics.median(each.wall for each in runs["python -c pass"])
    for name, measured in runs.items():
        wall, cpu = [each.wall for each in measured], [each.cpu for each in measured]
        peak = max(each.peak_mib for each in measured)
        print(f"{name:32} {spread(wall):>22} {spread(cpu):>22} {peak:9.0f} {statistics.median(wall) / base:9.0f}")


def spread(values: list[float]) -> str:
    """Return the median with the least and the most."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
