"""What runs in a worker of Dask: it unpacks the code that was sent, and calls functions in processes of that code.

It is pickled by value, so a worker needs Dask and the same packages, and no version of this one. Nothing here imports
from this package.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distributions
from io import BytesIO

from distributed import Worker, WorkerPlugin, get_worker

_CALL = """
import pickle, sys
function, arguments = pickle.load(sys.stdin.buffer)
pickle.dump(function(*arguments), sys.stdout.buffer)
"""


class NoResultError(Exception):
    """A process that ended without a result, or a worker with other packages; another worker may do better."""


class SentCode(WorkerPlugin):
    """The code of one caller on one worker; ``versions`` are those of the caller's packages."""

    def __init__(self, name: str, archive: bytes, versions: dict[str, str]) -> None:
        self.name = name
        self._archive = archive
        self._versions = versions

    def setup(self, worker: Worker) -> None:
        """Unpack the code on a worker."""
        installed = installed_versions()
        self._address = worker.address
        self._differences = [
            f"{name} {installed[name]} in place of {version}"
            for name, version in self._versions.items()
            if installed.get(name, version) != version
        ]
        self._folder = tempfile.TemporaryDirectory(prefix="training-platform-")
        with zipfile.ZipFile(BytesIO(self._archive)) as archive:
            archive.extractall(self._folder.name)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 # Dask's signature
        """Remove the code."""
        self._folder.cleanup()

    def call(self, request: bytes) -> bytes:
        """Return the pickled result of a pickled function and its arguments. Raises NoResultError."""
        if self._differences:
            raise NoResultError(f"worker {self._address} has {', '.join(self._differences[:3])}")
        done = subprocess.run(  # noqa: S603 # this interpreter, and arguments of ours
            [sys.executable, "-P", "-c", _CALL],
            cwd=self._folder.name,
            env={**os.environ, "PYTHONPATH": self._folder.name},
            input=request,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise NoResultError(f"exit code {done.returncode}" + (f", {last}" if last else ""))
        return done.stdout


def installed_versions() -> dict[str, str]:
    """Return the version of each package here, by its name in lower case; ``python`` is one of them."""
    packages = [distribution.metadata for distribution in distributions()]
    return {"python": platform.python_version(), **{each["Name"].lower(): each["Version"] for each in packages}}


def call_on_worker(name: str, request: bytes) -> bytes:
    """Call a function on the worker that runs this. Raises NoResultError."""
    code = get_worker().plugins[name]
    assert hasattr(code, "call")
    result: bytes = code.call(request)
    return result
