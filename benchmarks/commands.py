"""Commands as whole processes: each beside starting only Python, and a check of 1,000 node pools."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.fleet import FleetSize, write_fleet
from benchmarks.measure import ORGANISATION, PROGRAM, MeasuredRun, cells, run, table

RUNS = 5
LARGE = FleetSize(environments=20, pools=50)


def measure() -> None:
    """Run every command in turn, several times, and print a table."""
    with tempfile.TemporaryDirectory() as folder:
        write_fleet(Path(folder), LARGE)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "training-platform --help": [PROGRAM, "--help"],
            "training-platform check": [PROGRAM, "check", "--root", str(ORGANISATION)],
            "training-platform check, 1,000 pools": [PROGRAM, "check", "--root", folder],
        }
        runs: dict[str, list[MeasuredRun]] = {name: [] for name in commands}
        for command in commands.values():
            run(command)  # a warm-up: byte code and the file cache
        for _ in range(RUNS):
            for name, command in commands.items():
                runs[name].append(run(command))
    base = statistics.median(process.wall for process in runs["python -c pass"])
    table(
        f"The command line, {RUNS} runs each",
        ("command", "wall s, median (min to max)", "CPU s", "peak MiB", "times `python -c pass`"),
        [
            (f"`{name}`", *cells(measured), f"{statistics.median(process.wall for process in measured) / base:.0f}")
            for name, measured in runs.items()
        ],
    )
