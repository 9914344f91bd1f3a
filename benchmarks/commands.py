"""The command line as whole processes, beside starting Python alone, measured turn by turn."""

from __future__ import annotations

import statistics
import sys
import tempfile

from benchmarks.measure import ORGANISATION, PROGRAM, Run, cells, run, table

RUNS = 5
OF = ("--root", str(ORGANISATION))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "training-platform --help": [PROGRAM, "--help"],
    "training-platform check --fast": [PROGRAM, "check", "--fast", *OF],
    "training-platform check --no-cache": [PROGRAM, "check", "--no-cache", *OF],
    "training-platform check, nothing changed": [PROGRAM, "check", *OF],
}


def measure() -> None:
    """Run every command in turn, several times, and print a table."""
    runs: dict[str, list[Run]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        env = {"XDG_CACHE_HOME": folder}
        for command in COMMANDS.values():
            run(command, env=env)  # a warm-up: byte code, the file cache, and ours
        for _ in range(RUNS):
            for name, command in COMMANDS.items():
                runs[name].append(run(command, env=env))
    base = statistics.median(each.wall for each in runs["python -c pass"])
    table(
        f"The command line, {RUNS} runs each",
        ("command", "wall s, median (min to max)", "CPU s", "peak MiB", "times `python -c pass`"),
        [
            (f"`{name}`", *cells(measured), f"{statistics.median(each.wall for each in measured) / base:.0f}")
            for name, measured in runs.items()
        ],
    )
