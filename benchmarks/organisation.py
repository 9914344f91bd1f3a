"""A whole organisation: planned from nothing, after a change of one file, and by the workers of a Dask scheduler.

Scheduler and workers are processes of this machine, so the figures show the cost of sending work away, and how it grows
up to the number of cores; more machines are not measured here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Final

from benchmarks.fleet import Shape, stack_file, write_fleet
from benchmarks.measure import BIN, PROGRAM, Run, run, table

SHAPES = (
    Shape(environments=1, pools=50, teams=100),
    Shape(environments=100, pools=50),
    Shape(environments=200, pools=50, teams=0),
    Shape(environments=200, pools=50),
)


def measure() -> None:
    """Print a table for each shape of an organisation."""
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


SHAPE: Final = Shape(environments=20, pools=50)
_SECONDS: Final = 60  # until the scheduler has written its address


class Dask:
    """A Dask scheduler on the loopback interface, and workers, each a process with one thread."""

    def __init__(self, folder: Path) -> None:
        self.workers: list[subprocess.Popen[bytes]] = []
        self._folder = folder
        self._file = folder / "scheduler.json"
        self._log: IO[bytes] = (folder / "dask.log").open("ab")
        self.scheduler = self._start("scheduler", "--port", "0", "--no-show", "--scheduler-file", str(self._file))

    @cached_property
    def address(self) -> str:
        """The scheduler's address, once it has written it.

        Raises RuntimeError when that takes too long.
        """
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
            with suppress(json.JSONDecodeError):  # the file is there before what it says
                return str(json.loads(text)["address"])
            time.sleep(0.05)
        raise RuntimeError(f"the scheduler has not written {self._file} within {_SECONDS} s")

    def grow(self, workers: int = 1) -> None:
        """Start more workers."""
        place = ("--local-directory", str(self._folder))
        options = (self.address, "--nthreads", "1", "--no-nanny", *place)
        self.workers += [self._start("worker", *options) for _ in range(workers)]

    def end(self) -> None:
        """Kill every process."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self._log.close()

    def _start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        command = [str(BIN / "dask"), role, "--host", "127.0.0.1", "--no-dashboard", *options]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[Dask]:
    """Run a scheduler with some workers, and end them all."""
    started = Dask(folder)
    try:
        started.grow(workers)
        yield started
    finally:
        started.end()


def measure_scheduler() -> None:
    """Check one organisation by processes of its own, then by growing numbers of workers, and print a table."""
    most = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as name:
        fleet = Path(name) / "fleet"
        write_fleet(fleet, SHAPE)
        command = [PROGRAM, "check", "--no-cache", "--format", "json", "--root", str(fleet)]
        rows = [("one process here", run([*command, "--jobs", "1"]).wall)]
        rows.append((f"{most} processes here", run(command).wall))
        for workers in sorted({1, 2, most}):
            place = Path(name) / str(workers)
            place.mkdir()
            with dask(place, workers) as cluster:
                took = run([*command, "--scheduler", cluster.address]).wall
            rows.append((f"{workers} worker{'s' * (workers > 1)} of a scheduler", took))
    table(f"{SHAPE.stacks} stacks, planned elsewhere", ("by", "wall s"), [(by, f"{wall:.1f}") for by, wall in rows])
