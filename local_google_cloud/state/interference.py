"""The interface through which faults affect operations and jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from local_google_cloud.state.operation import OperationMeta, Work
from local_google_cloud.state.store import Record


@dataclass(frozen=True, kw_only=True)
class StartingOperation:
    """An operation that is about to start. ``children`` contains the node pools of a cluster."""

    kind: str  # service and collection, container.nodePools
    work: Work
    record: Record | None  # its target
    children: Sequence[Record]

    def __str__(self) -> str:
        """Return the operation in the format of a fault's events."""
        return f"{self.work.action} {self.work.target}"


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A training job that requests or has VMs. ``machine_types`` is empty on a persistent resource."""

    kind: str  # service and collection, aiplatform.customJobs
    name: str  # the display name
    region: str
    machine_types: tuple[str, ...]

    def __str__(self) -> str:
        """Return the job in the format of a fault's events."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class JobShortage:
    """The reason why a job does not get its VMs: the fault, and Google's message."""

    fault: str
    message: str


class Interference(Protocol):
    """The faults that can affect operations and jobs."""

    def strike(self, starting: StartingOperation, meta: OperationMeta, now: float) -> None:
        """Change when and how an operation ends, by changing ``due``, ``changes`` and ``error`` in ``meta``."""

    def shortage(self, job: TrainingJob) -> JobShortage | None:
        """Return the reason why a job does not get its VMs, or None if it gets them."""

    def failure(self, job: TrainingJob) -> tuple[float, str] | None:
        """Return the fraction of its run time after which a job fails, with the message; None if it does not fail."""

    def over(self, text: str) -> bool:
        """Return True if a fault is not active (any more)."""
