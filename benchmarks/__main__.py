"""Measures what its arguments name, or all: ``python -m benchmarks [NAME]...``, names being those of ``BENCHMARKS``.

Figures are of this machine on this day: compare those of one run with each other.
"""

from __future__ import annotations

import os
import platform
import sys

from benchmarks import commands, engine, queues

BENCHMARKS = {
    "commands": commands.measure,
    "engine": engine.measure,
    "simulate": queues.measure,
}


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all, and print their tables."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}. There are: {', '.join(BENCHMARKS)}.", file=sys.stderr)
        sys.exit(2)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
