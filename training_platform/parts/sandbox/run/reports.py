"""Reports on a run: its timeline from the engine's events, its summary, and its progress."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

REFERENCE: Final = "pulumi:pulumi:StackReference"
_UNCHANGED: Final = frozenset({"same", "refresh", "read"})
# The bridge's log of an error that the engine reports too, plugins on PATH, and an interrupted program.
_NOISE: Final = re.compile(
    r"^sdk-v2/provider2\.go:|^using pulumi-\S+ from \$PATH|KeyboardInterrupt|^(update|preview) failed$"
)
# Steps that only announce a replacement, which other steps make.
_NOTES: Final = frozenset({"replace", "remove-pending-replace", "import-replacement"})
_PAST: Final = {
    "create": "created", "update": "updated", "delete": "deleted", "import": "imported",
    "create-replacement": "created as replacements", "delete-replaced": "deleted, being replaced",
    "discard": "forgotten", "same": "unchanged", "refresh": "compared", "read": "read",
}  # fmt: skip
_FUTURE: Final = {op: f"to {op}" for op in ("create", "update", "delete", "replace", "import")} | {"same": "unchanged"}
_NAMING: Final = {
    "preview": {"create-replacement": "replaces", "delete": "deletes", "update": "updates"},
    "refresh": {"delete": "is gone:", "update": "drifted:"},
}  # by command, the steps whose resources are listed
_COMPUTED: Final = ("__", "effectiveLabels", "pulumiLabels")  # of the bridge, computed from other fields
_MOST_CHANGES: Final = 40
_MOST_IN_PROGRESS: Final = 5  # operations in the progress line, the oldest first


class RunFailed(Exception):
    """Raised if the engine, the cloud or a protection refuses a step. ``summary`` has earlier steps. Exit code 1."""

    def __init__(self, message: str, summary: Summary | None = None) -> None:
        super().__init__(message)
        self.summary = summary


@dataclass(kw_only=True)
class Step:
    """An operation on a resource. Times are seconds since the run began. ``ended`` is None while it is in progress."""

    urn: str
    op: str
    type: str
    began: float
    ended: float | None = None
    failed: bool = False
    custom: bool = True
    fields: tuple[str, ...] = ()  # that differ, in the provider's spelling

    @property
    def name(self) -> str:
        """The logical name of the resource."""
        return name_of(self.urn)

    @property
    def seconds(self) -> float:
        """The duration in seconds, measured by the arrival of its events."""
        return (self.ended or self.began) - self.began

    @property
    def changes(self) -> bool:
        """Whether the operation changed a resource, as opposed to only reading it."""
        return self.op not in _UNCHANGED and is_resource(self.urn, self.type, custom=self.custom)


@dataclass
class Timeline:
    """Collects the engine's events from any thread. ``counts`` are the engine's counts by step, with components."""

    clock: Callable[[], float] = time.monotonic
    steps: list[Step] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    failed_creates: list[dict[str, Any]] = field(default_factory=list)  # like the pending operations of a state
    creates: list[dict[str, Any]] = field(default_factory=list)  # begun or, in a preview, planned; in the same form

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._open: dict[tuple[str, str], Step] = {}
        self._lock = threading.Lock()

    def take(self, event: Any) -> None:
        """Add a ``pulumi.automation.EngineEvent``. The time of its arrival is used, since its own has only seconds."""
        with self._lock:
            if before := event.resource_pre_event:
                self._begin(before.metadata)
            elif after := event.res_outputs_event:
                self._end(after.metadata, failed=False)
            elif failed := event.res_op_failed_event:
                self._end(failed.metadata, failed=True)
            elif diagnostic := event.diagnostic_event:
                text = diagnostic.message.strip()
                messages = {"error": self.errors, "warning": self.warnings}.get(diagnostic.severity)
                if messages is not None and text and not _NOISE.search(text):
                    message = f"{name_of(diagnostic.urn)}: {text}" if diagnostic.urn else text
                    if message not in messages:
                        messages.append(message)
            elif summary := event.summary_event:
                self.counts = {str(getattr(op, "value", op)): n for op, n in summary.resource_changes.items()}

    def in_progress(self) -> list[Step]:
        """Return the operations in progress, oldest first."""
        with self._lock:
            return sorted((step for step in self._open.values() if step.changes), key=lambda step: step.began)

    def done(self) -> int:
        """Return the number of operations that have ended."""
        with self._lock:
            return len(self.steps)

    def elapsed(self) -> float:
        """Return the seconds since the run began."""
        return self.clock() - self._began

    def changed(self) -> list[Step]:
        """Return the operations that changed a resource, in the order in which they ended."""
        return [step for step in self.steps if step.changes]

    def length(self) -> float:
        """Return the seconds from the start of the first change to the end of the last."""
        steps = self.changed()
        start = min((step.began for step in steps), default=0)
        end = max((step.began + step.seconds for step in steps), default=0)
        return end - start

    def _begin(self, metadata: Any) -> None:
        op = _op(metadata)
        if op not in _NOTES:
            state = metadata.new or metadata.old
            custom = bool(state and state.custom)
            step = Step(
                urn=metadata.urn,
                op=op,
                type=metadata.type,
                began=self.elapsed(),
                custom=custom,
                fields=_fields(metadata),
            )
            self._open[metadata.urn, op] = step
            if op == "create" and metadata.new:
                self.creates.append(_pending(metadata))

    def _end(self, metadata: Any, *, failed: bool) -> None:
        op = _op(metadata)
        step = self._open.pop((metadata.urn, op), None)
        if step is None:  # the result of a refresh is known only at its end
            step = self._open.pop((metadata.urn, "refresh"), None)
        if step is None:
            return
        step.op = op
        step.fields = _fields(metadata) or step.fields
        step.ended = self.elapsed()
        step.failed = failed
        self.steps.append(step)
        if failed and step.op == "create" and metadata.new:
            self.failed_creates.append(_pending(metadata))


def _pending(metadata: Any) -> dict[str, Any]:
    """Return the creation of a resource in the form in which a state lists its pending operations."""
    new = metadata.new
    resource = {
        "urn": metadata.urn,
        "type": metadata.type,
        "custom": new.custom,
        "inputs": dict(new.inputs or {}),
        "parent": new.parent or "",
        "provider": new.provider or "",
    }
    return {"type": "creating", "resource": resource}


def _fields(metadata: Any) -> tuple[str, ...]:
    """Return the fields that differ. For a replacement, return those that cause it, if the provider names them."""
    detailed = {
        path: str(getattr(diff.diff_kind, "value", ""))
        for path, diff in (metadata.detailed_diff or {}).items()
        if not path.startswith(_COMPUTED)
    }
    causes = [path for path, kind in detailed.items() if kind.endswith("replace")]
    keys = [path for path in metadata.keys or metadata.diffs or () if not path.startswith(_COMPUTED)]
    return tuple(causes or detailed or keys)


def name_of(urn: str) -> str:
    """Return the logical name at the end of a URN. The name may contain ``::``."""
    return urn.split("::", 3)[-1]


def is_resource(urn: str, resource_type: str, *, custom: bool) -> bool:
    """Return True for a resource that `check` counts too: no component, stack reference or default provider."""
    added = resource_type.startswith("pulumi:providers:") and name_of(urn).startswith("default")
    return custom and resource_type != REFERENCE and not added


def _op(metadata: Any) -> str:
    return str(getattr(metadata.op, "value", metadata.op))


@dataclass(frozen=True, kw_only=True)
class QuotaRow:
    """A quota in use. ``limit`` is None if there is no limit or if it is unknown."""

    project: str
    service: str
    quota: str
    used: float
    limit: float | None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A run of one stack. ``steps`` are ordered by their end. Times are seconds since the run began.

    ``counts`` contains the number of resources for each kind of step, without components, as in `check`.
    """

    stack: str
    command: str
    failed: bool
    counts: dict[str, int]
    steps: list[dict[str, Any]]
    seconds: float
    quotas: list[QuotaRow]
    notes: list[str]
    file: str | None  # with this summary as JSON
    warnings: list[str]


def summarize(
    stack: str,
    command: str,
    timeline: Timeline,
    *,
    failed: bool = False,
    quotas: Collection[QuotaRow] = (),
    notes: Collection[str] = (),
    without_events: int = 0,
    file: Path | None = None,
) -> Summary:
    """Return the summary of a run.

    ``without_events`` is the number of components and references that the engine counts in a refresh although they have
    no events.
    """
    changed = timeline.changed()
    counts = Counter(timeline.counts or (step.op for step in timeline.steps))
    uncounted = Counter(step.op for step in timeline.steps if not step.custom or step.type == REFERENCE)
    uncounted["same"] += without_events
    return Summary(
        stack=stack,
        command=command,
        failed=failed,
        counts=dict(counts - uncounted),
        steps=[
            {
                "name": step.name,
                "op": step.op,
                "type": step.type,
                "began": step.began,
                "seconds": step.seconds,
                "failed": step.failed,
                "urn": step.urn,
                "fields": list(step.fields),
            }
            for step in changed
        ],
        seconds=timeline.length(),
        quotas=list(quotas),
        notes=list(notes),
        file=str(file) if file else None,
        warnings=list(timeline.warnings),
    )


def as_json(summary: Summary) -> str:
    """Return a summary as JSON."""
    return json.dumps(asdict(summary), indent=1)


def as_text(summary: Summary) -> str:
    """Return a summary as text for people."""
    return "\n".join(_lines(summary))


def _lines(summary: Summary) -> Iterator[str]:
    words = _FUTURE if summary.command == "preview" else _PAST
    counts = ", ".join(f"{count} {words.get(op, op)}" for op, count in summary.counts.items() if count)
    yield f"{summary.stack}: {summary.command} {'failed' if summary.failed else 'done'}: {counts or 'nothing to do'}"
    if summary.command in _NAMING:
        yield from _change_lines(summary)
    elif summary.steps:
        yield "  By kind, in order:"
        kinds = Counter((step["op"], step["failed"], _short(step["type"])) for step in summary.steps)
        for (op, failed, kind), count in kinds.items():
            yield f"    {f'failed to {op}' if failed else _PAST.get(op, op)} {count} {kind}"
        yield f"  From the first change to the last: {summary.seconds:.1f} s"
    if summary.quotas:
        yield "  Quota in use:"
        for row in summary.quotas:
            limit = "no limit known" if row.limit is None else f"of {row.limit:g}"
            yield f"    {row.project}  {row.service}  {row.quota}: {row.used:g} {limit}"
    for text in summary.warnings:
        yield f"  warning: {text}"
    for note in summary.notes:
        yield f"  {note}"
    if summary.file is not None:
        yield f"  Every operation, in order: {summary.file}"


def _change_lines(summary: Summary) -> Iterator[str]:
    """Yield the changes that a preview plans or a refresh found, with the fields that differ."""
    words = _NAMING[summary.command]
    steps = [step for step in summary.steps if step["op"] in words]
    for step in sorted(steps, key=lambda step: list(words).index(step["op"]))[:_MOST_CHANGES]:
        fields = f": {', '.join(step['fields'])}" if step["fields"] else ""
        yield f"    {words[step['op']]} {step['name']} ({_short(step['type'])}){fields}"
    if len(steps) > _MOST_CHANGES:
        yield f"    and {len(steps) - _MOST_CHANGES} more"


def _short(kind: str) -> str:
    """Return ``gcp NodePool`` for ``gcp:container/nodePool:NodePool``, and ``gcp provider`` for a provider."""
    parts = kind.split(":")
    if parts[1:2] == ["providers"]:
        return f"{parts[-1]} provider"
    return f"{parts[0]} {parts[-1]}"


@contextmanager
def live_progress(console: Console, title: str, timeline: Timeline) -> Iterator[None]:
    """Show the finished steps and the steps in progress on a terminal during the ``with`` block."""
    if not console.is_terminal:
        yield
        return

    def line() -> Text:
        names = [step.name for step in timeline.in_progress()]
        shown = ", ".join(names[:_MOST_IN_PROGRESS]) or "none"
        if len(names) > _MOST_IN_PROGRESS:
            shown += f" and {len(names) - _MOST_IN_PROGRESS} more"
        return Text(f"{title}: {timeline.done()} steps, {timeline.elapsed():.0f} s; in progress: {shown}")

    with Live(get_renderable=line, console=console, refresh_per_second=4, transient=True):
        yield


@contextmanager
def first_interrupt_for_engine(say: Callable[[str], None]) -> Iterator[None]:
    """Ignore the first Ctrl-C, since the terminal also sends it to the engine. The second one ends this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def once(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        say("stopping: the engine finishes what it has begun; Ctrl-C again kills it, and --resume then recovers")

    signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
