"""One stack planned and judged, here or in processes side by side, each of which imports Pulumi once.

Processes are spawned and never forked: gRPC has threads, which a fork does not carry over. They are no executor of
``concurrent.futures``: that has no public way to end a process that plans (before Python 3.14) or to say by which
signal one died, and gives up all of its processes when one dies.
"""

from __future__ import annotations

import dataclasses
import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from training_platform.checks.planning.outcome import PlanningError, encode, outcome_of
from training_platform.checks.process import ENDING, collector_off
from training_platform.config.model.stack import read_stack
from training_platform.config.reading.finding import bug
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import STACKS_FOLDER


class PlanTask(NamedTuple):
    """A stack to plan.

    ``outputs`` has by stack what those export that it refers to; ``production`` is what its environment's file says.
    """

    root: Path
    name: str
    outputs: Mapping[str, Mapping[str, Any]]
    inputs: bool
    production: bool | None


class Answer(NamedTuple):
    """An encoded outcome, or the sentence that says why there is none."""

    data: bytes | None
    failure: str | None = None


@collector_off()  # it loads Pulumi
def plan(job: PlanTask) -> Answer:
    """Plan a stack and judge its plan."""
    from training_platform.checks.planning.recorder import plan_stack, reference  # noqa: PLC0415 # loads Pulumi

    references = {reference(name): outputs for name, outputs in job.outputs.items()}
    file = f"{STACKS_FOLDER}/Pulumi.{job.name}.yaml"
    try:
        stack = read_stack(job.root / file, job.root)
        planned = plan_stack(job.root, stack, references)
        stack = dataclasses.replace(stack, production=job.production)
        return Answer(encode(outcome_of(stack, planned.resources, planned.outputs, inputs=job.inputs)))
    except (PlanningError, UnreadableError) as error:
        return Answer(None, str(error))
    except Exception as error:  # noqa: BLE001 # any error here is a bug, and other stacks are planned
        return Answer(None, bug(f"{file} was not planned", error))


def serve(connection: Connection) -> None:
    """Answer jobs until the other end closes, or has gone while one was planned."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    while True:
        try:
            job: PlanTask = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        answer = plan(job)
        try:
            connection.send(answer)
        except (BrokenPipeError, ConnectionResetError):
            return
        _keep_loaded()


@cache
def _keep_loaded() -> None:
    """Take what is loaded by now out of the collector's sight, once: it would walk all of Pulumi after each plan."""
    gc.collect()
    gc.freeze()


class Workers(AbstractContextManager["Workers"]):
    """At most ``most`` processes, started as jobs come; leaving the context ends them all, with their jobs."""

    def __init__(self, most: int, target: Callable[[Connection], None] = serve) -> None:
        self._most = most
        self._target = target
        self._workers: list[_Worker] = []
        self._lost = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every process."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def busy(self) -> bool:
        """Whether an answer is to come."""
        return any(worker.job for worker in self._workers)

    @property
    def free(self) -> bool:
        """Whether a job would be taken at once; never again once every process has died."""
        return len(self._workers) + self._lost < self._most or any(worker.job is None for worker in self._workers)

    def give(self, job: PlanTask) -> None:
        """Hand a job to a free process, or to a new one."""
        idle = next((worker for worker in self._workers if worker.job is None), None)
        if idle is None:
            idle = _Worker(self._target)
            self._workers.append(idle)
        idle.give(job)

    def answers(self) -> Iterator[tuple[PlanTask, Answer]]:
        """Wait for the next answers; a process that died gives a sentence, and is not replaced."""
        working = {worker.connection: worker for worker in self._workers if worker.job}
        for connection in wait(list(working)):
            worker = working[connection]  # type: ignore[index] # what is waited for are these connections
            job, worker.job = worker.job, None
            assert job is not None
            answer = worker.take()
            if answer is None:
                self._workers.remove(worker)
                self._lost += 1
                answer = Answer(None, f"stack {job.name}: the process that planned it died ({worker.end(patience=5)}).")
            yield job, answer


class _Worker:
    """One process, and the job that it has."""

    def __init__(self, target: Callable[[Connection], None]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=target, args=(theirs,), daemon=True)
        with _signals_held():
            self.process.start()
        theirs.close()  # so that this end sees when the process is gone
        self.job: PlanTask | None = None

    def give(self, job: PlanTask) -> None:
        self.job = job
        with suppress(BrokenPipeError):  # it is gone; taking its answer says so
            self.connection.send(job)

    def take(self) -> Answer | None:
        """Return the answer, None where the process ended instead."""
        try:
            answer: Answer = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return None
        return answer

    def end(self, *, patience: float = 0) -> str:
        """Return how the process ended; one that has not by itself after ``patience`` seconds is terminated."""
        self.connection.close()
        self.process.join(patience)
        self.process.terminate()
        self.process.join()
        code = self.process.exitcode or 0
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


@contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals back: a process that starts meanwhile gets none but those of this one, which ends it."""
    resource_tracker.ensure_running()  # it lets signals through again where it is started by the first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *ENDING})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
