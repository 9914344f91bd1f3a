"""One stack planned and judged, here or in a process of its own that goes on from stack to stack."""

from __future__ import annotations

import dataclasses
import gc
import signal
from collections.abc import Mapping
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from training_platform.checks.planning.garbage_collector import collector_off
from training_platform.checks.planning.order import PlanningError
from training_platform.checks.planning.outcome import encode, outcome_of
from training_platform.config.model.stack import read_stack
from training_platform.config.reading.source import UnreadableError
from training_platform.config.workspace import STACKS_FOLDER


class Job(NamedTuple):
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
def plan(job: Job) -> Answer:
    """Plan a stack and judge its plan."""
    from training_platform.checks.planning.stack_plan import plan_stack, reference  # noqa: PLC0415 # loads Pulumi

    references = {reference(name): outputs for name, outputs in job.outputs.items()}
    try:
        stack = read_stack(job.root / STACKS_FOLDER / f"Pulumi.{job.name}.yaml", job.root)
        planned = plan_stack(job.root, stack, references)
    except (PlanningError, UnreadableError) as error:
        return Answer(None, str(error))
    stack = dataclasses.replace(stack, production=job.production)
    return Answer(encode(outcome_of(stack, planned, inputs=job.inputs)))


def serve(connection: Connection) -> None:
    """Answer jobs until the other end closes, or has gone while one was planned."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    while True:
        try:
            job: Job = connection.recv()
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
