"""Plans stacks, or calls functions, on the workers of a Dask scheduler, behind the same face as local processes.

Whoever may speak to the scheduler runs code on its workers, and they on this machine: it has to be as trusted as CI.
"""

from __future__ import annotations

import hashlib
import io
import logging
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, TypeVar

import cloudpickle  # type: ignore[import-untyped] # has no types
from distributed import Client, Future, as_completed
from distributed.comm.addressing import get_address_host_port

from training_platform.checks.planning import scheduler_plugin
from training_platform.checks.planning.cache import PROGRAM, code_files
from training_platform.checks.planning.scheduler_plugin import installed_versions
from training_platform.checks.planning.scheduler_process import answer_of, call_line, job_line, result_of
from training_platform.checks.planning.workers import Answer, PlanTask
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import STACKS_FOLDER

RETRIES = 3
"""Of a stack whose worker or process was lost, each on another."""
CONNECT_SECONDS = 30
Result = TypeVar("Result")
_NOT_COMPARED = ("pip", "training-platform")  # the one installs, the other is sent


class Scheduler(AbstractContextManager["Scheduler"]):
    """The workers of a scheduler at ``address``, such as ``tcp://plan-scheduler:8786``; it plans from ``root``.

    Raises UserError where it cannot be reached, or has no worker.
    """

    def __init__(self, address: str, root: Path) -> None:
        self._name = f"training-platform-{uuid.uuid4().hex}"
        self._jobs: dict[Future[bytes], PlanTask] = {}
        for name in ("distributed", "distributed.client", "distributed.scheduler"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said in the report
        cloudpickle.register_pickle_by_value(scheduler_plugin)
        try:
            get_address_host_port(address)  # a Client refuses a wrong one too, and leaves a thread that never ends
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UserError(f"The scheduler {address} cannot be reached: {error}.") from error
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            content = content_of(root)
            self._client.register_plugin(scheduler_plugin.Planning(self._name, *content))
        except TimeoutError as error:
            self._client.close()
            raise UserError(f"The scheduler {address} has no worker after {CONNECT_SECONDS} s.") from error
        self._done = as_completed(loop=self._client.loop, raise_errors=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what is under way, and take the content back."""
        if self._client.status == "running":  # else it is gone, and would be waited for
            with suppress(OSError):
                self._client.cancel(list(self._jobs), force=True)
                self._client.unregister_worker_plugin(self._name)
        self._client.close()

    @property
    def busy(self) -> bool:
        """Whether an answer is to come."""
        return bool(self._jobs)

    @property
    def free(self) -> bool:
        """Whether a job would be taken: the scheduler queues them all."""
        return True

    def give(self, job: PlanTask) -> None:
        """Hand a job to the scheduler."""
        future = self._submit(job_line(job))
        self._jobs[future] = job
        self._done.add(future)

    def answers(self) -> Iterator[tuple[PlanTask, Answer]]:
        """Wait for the next answers; a stack that no worker could plan gives a sentence."""
        for future in self._done.next_batch():
            job = self._jobs.pop(future)
            answer = _answer(future, "planned it")
            if answer.failure and not answer.failure.startswith("stack "):  # it is of the worker itself
                answer = Answer(None, f"stack {job.name}: {answer.failure}")
            yield job, answer

    def call(self, function: Callable[..., Result], arguments: Iterable[Sequence[object]]) -> list[Result]:
        """Return what a function of this package returns on the workers, for each of some arguments, in their order.

        Raises UserError where a call has no result.
        """
        results, futures = [], [self._submit(call_line(function, row)) for row in arguments]
        list(as_completed(futures, loop=self._client.loop, raise_errors=False))  # wait for all
        for future in futures:
            answer = _answer(future, "did its part")
            if answer.data is None:
                raise UserError(f"The scheduler gave no result: {answer.failure}")
            results.append(result_of(answer.data))
        return results

    def _submit(self, line: bytes) -> Future[bytes]:
        return self._client.submit(scheduler_plugin.plan_there, self._name, line, pure=False, retries=RETRIES)


def _answer(future: Future[bytes], done: str) -> Answer:
    if future.status == "finished":
        return answer_of(future.result())
    error = future.exception() if future.status == "error" else None
    cause = f"{type(error).__name__}: {error}" if error else f"it is {future.status}"
    return Answer(None, f"no worker {done}: {cause}.")


class Content(NamedTuple):
    """A ZIP archive with the SHA-256 digest of it, and the versions that have to be alike wherever it is planned."""

    archive: bytes
    digest: str
    versions: dict[str, str]


def content_of(root: Path) -> Content:
    """Pack what plans the stacks of a repository: the same files give the same archive."""
    files = [(name, root / name) for name in PROGRAM if (root / name).exists()]
    files += [(path.relative_to(root).as_posix(), path) for path in sorted((root / STACKS_FOLDER).glob("Pulumi.*"))]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in [*files, *code_files(root)]:
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    data = buffer.getvalue()
    versions = {name: version for name, version in installed_versions().items() if name not in _NOT_COMPARED}
    return Content(data, hashlib.sha256(data).hexdigest(), versions)
