"""What the engine did and when, from the events that it streams."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

_UNCHANGED = frozenset({"same", "refresh", "read"})
# What the bridge logs of an error that the engine then reports, plugins from PATH, and a program that was interrupted.
_NOISE = re.compile(r"^sdk-v2/provider2\.go:|^using pulumi-\S+ from \$PATH|KeyboardInterrupt|^(update|preview) failed$")
# Steps by which the engine notes a replacement that other steps carry out.
_NOTES = frozenset({"replace", "remove-pending-replace", "import-replacement"})


@dataclass(kw_only=True)
class Step:
    """One operation on one resource; times are seconds since the run began, ``ended`` None while it is under way."""

    urn: str
    op: str
    type: str
    began: float
    ended: float | None = None
    failed: bool = False
    custom: bool = True

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return name_of(self.urn)

    @property
    def seconds(self) -> float:
        """How long it took, as its events arrived here."""
        return (self.ended or self.began) - self.began

    @property
    def changes(self) -> bool:
        """Whether it changed something that exists, rather than looked at it or put it under a heading."""
        return self.custom and self.op not in _UNCHANGED


@dataclass
class Timeline:
    """Takes the engine's events, from whichever thread; ``counts`` is the engine's own count of steps by kind."""

    clock: Callable[[], float] = time.monotonic
    steps: list[Step] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    failed_creates: list[dict[str, Any]] = field(default_factory=list)  # as a state has its pending operations

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._open: dict[tuple[str, str], Step] = {}
        self._lock = Lock()

    def take(self, event: Any) -> None:
        """Take one ``pulumi.automation.EngineEvent``; its own times are whole seconds, so arrival is measured."""
        with self._lock:
            if before := event.resource_pre_event:
                self._begin(before.metadata)
            elif after := event.res_outputs_event:
                self._end(after.metadata, failed=False)
            elif failed := event.res_op_failed_event:
                self._end(failed.metadata, failed=True)
            elif said := event.diagnostic_event:
                self._say(said)
            elif summary := event.summary_event:
                self.counts = {str(getattr(op, "value", op)): n for op, n in summary.resource_changes.items()}

    def under_way(self) -> list[Step]:
        """Return the operations that have begun and not ended, the oldest first."""
        with self._lock:
            return sorted((each for each in self._open.values() if each.changes), key=lambda each: each.began)

    def done(self) -> int:
        """Return how many operations have ended."""
        with self._lock:
            return len(self.steps)

    def elapsed(self) -> float:
        """Return seconds since the run began."""
        return self.clock() - self._began

    def changed(self) -> list[Step]:
        """Return the operations that changed a resource, in the order in which they ended."""
        return [each for each in self.steps if each.changes]

    def length(self) -> float:
        """Return seconds between the beginning of the first change and the end of the last."""
        steps = self.changed()
        return max((each.began + each.seconds for each in steps), default=0) - min(
            (each.began for each in steps), default=0
        )

    def _begin(self, about: Any) -> None:
        op = _op(about)
        if op not in _NOTES:
            state = about.new or about.old
            custom = bool(state and state.custom)
            step = Step(urn=about.urn, op=op, type=about.type, began=self.elapsed(), custom=custom)
            self._open[about.urn, op] = step

    def _end(self, about: Any, *, failed: bool) -> None:
        step = self._open.pop((about.urn, _op(about)), None)
        if step is not None:
            step.ended, step.failed = self.elapsed(), failed
            self.steps.append(step)
            if failed and step.op == "create" and about.new:
                self.failed_creates.append({"type": "creating", "resource": _resource(about)})

    def _say(self, said: Any) -> None:
        text = said.message.strip()
        kept = {"error": self.errors, "warning": self.warnings}.get(said.severity)
        if kept is None or not text or _NOISE.search(text):
            return
        about = f"{name_of(said.urn)}: {text}" if said.urn else text
        if about not in kept:
            kept.append(about)


def name_of(urn: str) -> str:
    """Return the logical name that a URN ends with; it may hold ``::`` itself."""
    return urn.split("::", 3)[-1]


def _resource(about: Any) -> dict[str, Any]:
    new = about.new
    return {
        "urn": about.urn, "type": about.type, "custom": new.custom, "inputs": dict(new.inputs or {}),
        "parent": new.parent or "", "provider": new.provider or "",
    }  # fmt: skip


def _op(about: Any) -> str:
    return str(getattr(about.op, "value", about.op))
