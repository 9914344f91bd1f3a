"""What runs in a worker of Dask: it unpacks the content that was sent, and keeps processes that plan from it.

Travels by value, so a worker needs Dask and what planning needs, and no version of this package. Nothing here may
import from it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distributions
from threading import Lock

from distributed import Worker, WorkerPlugin, get_worker


class ProcessDiedError(Exception):
    """The process that planned a stack ended without an answer; another one tries it again."""


class Planning(WorkerPlugin):
    """The content of one check on one worker, and the processes that plan from it: as many as jobs at once."""

    def __init__(self, name: str, archive: bytes, digest: str, versions: dict[str, str]) -> None:
        self.name = name
        self._archive = archive
        self._digest = digest
        self._versions = versions

    def setup(self, worker: Worker) -> None:
        """Unpack the content on a worker."""
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = Lock()
        self._ended = False
        self._difference = self._different(worker.address)
        self._folder = tempfile.TemporaryDirectory(prefix="training-platform-")
        with zipfile.ZipFile(io.BytesIO(self._archive)) as archive:
            archive.extractall(self._folder.name)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 # Dask's signature
        """End the processes that have nothing to do, and those that have when they are done."""
        with self._lock:
            self._ended, idle = True, self._idle
        for process in idle:
            process.kill()
            process.communicate()
        self._folder.cleanup()

    def plan(self, job: bytes) -> bytes:
        """Return the answer to a job, each a line. Raises ProcessDiedError."""
        if self._difference:
            return json.dumps({"data": None, "failure": self._difference}).encode()
        with self._lock:
            process = self._idle.pop() if self._idle else None
        if process is None or process.poll() is not None:
            process = self._start()
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(job)
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            process.communicate()
            raise ProcessDiedError(f"exit code {process.returncode}")
        with self._lock:
            if self._ended:
                process.kill()
            else:
                self._idle.append(process)
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "training_platform.checks.planning.scheduler_process"],
            cwd=self._folder.name,
            env={**os.environ, "PYTHONPATH": self._folder.name},
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def _different(self, address: str) -> str | None:
        """Return why a plan of this worker would not be the client's, None where it is."""
        if hashlib.sha256(self._archive).hexdigest() != self._digest:
            return f"worker {address} got another content than was sent."
        here = installed_versions()
        others = [
            f"{name} {here[name]} in place of {version}"
            for name, version in self._versions.items()
            if here.get(name, version) != version
        ]
        return f"worker {address} has {', '.join(others[:3])}." if others else None


def installed_versions() -> dict[str, str]:
    """Return the version of each package here, by its name in lower case; ``python`` is one of them."""
    packages = [each.metadata for each in distributions()]  # which is parsed anew each time
    return {"python": platform.python_version(), **{each["Name"].lower(): each["Version"] for each in packages}}


def plan_there(name: str, job: bytes) -> bytes:
    """Plan a stack on the worker that runs this. Raises ProcessDiedError."""
    planning = get_worker().plugins[name]
    assert hasattr(planning, "plan")
    answer: bytes = planning.plan(job)
    return answer
