"""A whole organisation: planned from nothing, and again when one team's file, or one environment's, has changed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from benchmarks.fleet import Shape, stack_file, write_fleet
from benchmarks.measure import PROGRAM, Run, run, table

SHAPES = (
    Shape(environments=1, pools=50, teams=100),
    Shape(environments=100, pools=50),
    Shape(environments=200, pools=50, teams=0),
    Shape(environments=200, pools=50),
)


def measure() -> None:
    """Print a table for each shape."""
    for shape in SHAPES:
        _measure(shape)


def _measure(shape: Shape) -> None:
    """Check an organisation with every stack new, with none, one team or one environment changed; print a table."""
    with tempfile.TemporaryDirectory() as folder:
        fleet, cache = Path(folder) / "fleet", Path(folder) / "cache"
        write_fleet(fleet, shape)
        one = f"env{shape.environments // 2:03}"
        rows = [("every stack new", "60" if shape.environments == 1 else "120", _check(fleet, cache))]
        rows.append(("nothing changed", "", _check(fleet, cache)))
        if shape.teams:
            _touch(fleet, f"{one}-team0")
            rows.append(("one team's file changed", "10", _check(fleet, cache)))
        _touch(fleet, one)
        rows.append(("one environment's file changed", "", _check(fleet, cache)))
        size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) / 2**20
        shutil.rmtree(cache)
    table(
        f"{shape.stacks} stacks: {shape.environments} environments of {shape.pools} pools, {shape.teams} teams each; "
        f"{os.cpu_count()} cores, cache {size:.0f} MiB",
        ("check", "wall s", "target", "CPU s", "peak MiB of the largest process"),
        [(name, f"{took.wall:.1f}", goal, f"{took.cpu:.1f}", f"{took.peak_mib:.0f}") for name, goal, took in rows],
    )


def _check(fleet: Path, cache: Path) -> Run:
    command = [PROGRAM, "check", "--format", "json", "--root", str(fleet)]
    return run(command, env={"XDG_CACHE_HOME": str(cache)})


def _touch(fleet: Path, stack: str) -> None:
    path = stack_file(fleet, stack)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("cost-center: ", "cost-center: new-"), encoding="utf-8")
