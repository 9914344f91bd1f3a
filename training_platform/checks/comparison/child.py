"""Checks stacks and prints one side of a comparison: run as a process of its own, by the code of the base.

Run as ``python -P -m`` this module ``ROOT TODAY HOW OUT STACK...`` with the base's files on PYTHONPATH; ``HOW`` is
``fast``, or what a planner is as text.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from training_platform.checks.comparison.side import side_of
from training_platform.checks.planning.planner import Planner
from training_platform.checks.run import check_stacks


def main(arguments: Sequence[str]) -> None:
    """Write the side to the file ``OUT``; whatever the program prints stays out of it."""
    root, today, how, out, *names = arguments
    fast = how == "fast"
    planner = Planner() if fast else Planner.of_text(how)
    checked = check_stacks(
        Path(root), today=date.fromisoformat(today), names=names, fast=fast, inputs=True, planner=planner
    )
    Path(out).write_text(side_of(checked).model_dump_json(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
