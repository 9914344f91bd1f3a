"""Checks the base of a change by the base's own program: run as a process of its own, by the code of the base.

Run as ``python -P -m`` this module ``ROOT TODAY HOW OUT STACK...`` with the base's files on PYTHONPATH; ``HOW`` is
``fast``, or what a planner is as text.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from training_platform.checks.comparison.changes import result_of
from training_platform.checks.planning.planner import Planner
from training_platform.checks.process import ended_by_signals
from training_platform.checks.stacks import CheckOptions, check_stacks


def main(arguments: Sequence[str]) -> None:
    """Write what was found to the file ``OUT``; whatever the program prints stays out of it."""
    root, today, how, out, *names = arguments
    planner = Planner() if how == "fast" else Planner.of_text(how)
    options = CheckOptions(today=date.fromisoformat(today), fast=how == "fast", planner=planner)
    checked = check_stacks(Path(root), names, options, inputs=True)
    Path(out).write_text(result_of(checked).model_dump_json(), encoding="utf-8")


if __name__ == "__main__":
    with ended_by_signals():
        main(sys.argv[1:])
