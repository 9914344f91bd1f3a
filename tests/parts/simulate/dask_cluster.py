"""A Dask scheduler with workers, as processes of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Final

_SECONDS: Final = 60  # until the scheduler has written its address


class DaskCluster:
    """A scheduler on the loopback interface, and workers, each a process with one thread."""

    def __init__(self, folder: Path) -> None:
        self.workers: list[subprocess.Popen[bytes]] = []
        self._folder = folder
        self._file = folder / "scheduler.json"
        self._log: IO[bytes] = (folder / "dask.log").open("ab")
        self.scheduler = self._start("scheduler", "--port", "0", "--no-show", "--scheduler-file", str(self._file))

    @cached_property
    def address(self) -> str:
        """The scheduler's address, once the scheduler has written it. Raises RuntimeError if that takes too long."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
            with suppress(json.JSONDecodeError):  # the file exists before its content
                return str(json.loads(text)["address"])
            time.sleep(0.05)
        raise RuntimeError(f"the scheduler has not written {self._file} within {_SECONDS} s")

    def add_worker(self) -> None:
        """Start one more worker."""
        place = ("--local-directory", str(self._folder))
        self.workers.append(self._start("worker", self.address, "--nthreads", "1", "--no-nanny", *place))

    def end(self) -> None:
        """Kill every process."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self._log.close()

    def _start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", role, "--host", "127.0.0.1", "--no-dashboard", *options]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[DaskCluster]:
    """Run a scheduler with some workers, and end them all."""
    cluster = DaskCluster(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.end()
