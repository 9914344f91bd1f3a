"""Calls functions of this package on the workers of a Dask scheduler, by the code of this machine.

Whoever may connect to the scheduler runs code on its workers, and they on this machine: it has to be as trusted as CI.
"""

from __future__ import annotations

import io
import logging
import pickle
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

import cloudpickle  # type: ignore[import-untyped] # has no types
from distributed import Client, as_completed
from distributed.comm.addressing import get_address_host_port

from training_platform.config.reading.finding import UserError
from training_platform.parts.simulate import dask_plugin
from training_platform.parts.simulate.dask_plugin import installed_versions

RETRIES = 3
"""Of a call whose worker or process was lost, each on another."""
CONNECT_SECONDS = 30
_PACKAGE = Path(__file__).resolve().parents[2]
_NOT_COMPARED = ("pip", "training-platform")  # the one installs, the other is sent
Result = TypeVar("Result")


class Call(Protocol):
    """Calls a function for each of some arguments."""

    def __call__(self, function: Callable[..., Result], arguments: Iterable[Sequence[object]]) -> list[Result]:
        """Return the results in the order of the arguments. Raises UserError if a call has none."""


@contextmanager
def dask_workers(address: str) -> Iterator[Call]:
    """Yield what calls functions on the workers of a scheduler, such as ``tcp://dask-scheduler:8786``.

    Raises UserError if it cannot be reached, or has no worker.
    """
    for name in ("distributed", "distributed.client", "distributed.scheduler"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is in the error
    cloudpickle.register_pickle_by_value(dask_plugin)
    try:
        get_address_host_port(address)  # a Client refuses a wrong one too, and leaves a thread that never ends
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(f"The scheduler {address} cannot be reached: {error}.") from error
    plugin = f"training-platform-{uuid.uuid4().hex}"

    def call(function: Callable[..., Result], arguments: Iterable[Sequence[object]]) -> list[Result]:
        requests = [pickle.dumps((function, row)) for row in arguments]
        futures = [
            client.submit(dask_plugin.call_on_worker, plugin, request, pure=False, retries=RETRIES)
            for request in requests
        ]
        list(as_completed(futures, loop=client.loop, raise_errors=False))  # wait for all
        results = []
        for future in futures:
            if future.status != "finished":
                error = future.exception() if future.status == "error" else None
                cause = f"{type(error).__name__}: {error}" if error else f"it is {future.status}"
                raise UserError(f"The scheduler {address} gave no result: {cause}.")
            results.append(pickle.loads(future.result()))  # noqa: S301 # workers are as trusted as CI
        return results

    try:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError as error:
            raise UserError(f"The scheduler {address} has no worker after {CONNECT_SECONDS} s.") from error
        versions = {name: version for name, version in installed_versions().items() if name not in _NOT_COMPARED}
        client.register_plugin(dask_plugin.SentCode(plugin, _archive(), versions))
        try:
            yield call
        finally:
            if client.status == "running":  # otherwise the scheduler is gone, and would be waited for
                with suppress(OSError):
                    client.unregister_worker_plugin(plugin)
    finally:
        client.close()


def _archive() -> bytes:
    """Return this package as a ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_PACKAGE.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, path.relative_to(_PACKAGE.parent))
    return buffer.getvalue()
