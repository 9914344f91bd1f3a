"""What an operation is asked to do, before it is one; and what may interfere with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from training_platform.sandbox.cloud.state.store import Record

Json = dict[str, Any]
Style = Literal["compute", "container", "longrunning"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What happens when an operation is done: ``fields`` are merged into ``target``, or it is deleted."""

    target: str
    fields: Json = field(default_factory=dict)
    delete: bool = False


@dataclass(frozen=True, kw_only=True)
class Work:
    """An operation to start: on which resource, of which type (``insert``, ``CREATE_CLUSTER``), for how long.

    ``response`` and its ``schema`` are what a google.longrunning operation answers in the end; None is the target's
    body as it then is. ``metadata`` is what it says of itself meanwhile. ``where`` is the path below which the
    operation is named; empty: the target's location. ``grows`` says of a change that it asks for VMs; a create always
    may.
    """

    style: Style
    service: str
    project: str
    target: str
    type: str
    seconds: float
    changes: Sequence[Change] = ()
    response: Json | None = None
    schema: str = ""
    metadata: Json = field(default_factory=dict)
    where: str | None = None
    grows: bool = False

    @property
    def action(self) -> str:
        """What it does to its target: create, update or delete."""
        begins = self.type.lower().partition("_")[0]
        return {"insert": "create", "create": "create", "delete": "delete"}.get(begins, "update")


@dataclass(frozen=True, kw_only=True)
class Started:
    """An operation that is about to start; ``children`` are the node pools of its target, where that is a cluster."""

    kind: str  # service and collection, container.nodePools
    work: Work
    record: Record | None  # its target
    children: Sequence[Record]

    def __str__(self) -> str:
        """Return it as the record of a fault has it."""
        return f"{self.work.action} {self.work.target}"


@dataclass(frozen=True, kw_only=True)
class JobAsk:
    """A training job that asks for VMs, or has them; none of its own where ``machine_types`` is empty."""

    kind: str  # service and collection, aiplatform.customJobs
    project: str
    name: str  # the one that people see
    region: str
    machine_types: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as the record of a fault has it."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class JobShortage:
    """Why a job gets no VMs: the fault, Google's words, and after how long a job that does not wait is told so."""

    fault: str
    message: str
    after_seconds: float


class Interference(Protocol):
    """What makes operations and jobs go wrong on purpose."""

    def shortage(self, job: JobAsk) -> JobShortage | None:
        """Return why a job gets no VMs, if it gets none."""

    def failure(self, job: JobAsk) -> tuple[float, str] | None:
        """Return after which share of its time a job that runs will fail, and with which words, if it will."""

    def preempts(self, job: JobAsk) -> bool:
        """Whether a job that runs on spot VMs loses them now."""

    def strike(self, started: Started, meta: Json, now: float) -> None:
        """Change when an operation ends, and what then happens: ``due``, ``changes``, ``error`` and the like."""

    def over(self, name: str, at: float) -> bool:
        """Whether a fault is there no more, or would not be at a time."""
