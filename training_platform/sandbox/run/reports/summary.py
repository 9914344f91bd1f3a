"""What a run leaves: what changed, in which order, on which critical path, and the quota in use."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from training_platform.sandbox.run.reports.critical_path import Leg, critical_path
from training_platform.sandbox.run.reports.timeline import Timeline

_PAST: Final = {
    "create": "created", "update": "updated", "delete": "deleted", "import": "imported",
    "create-replacement": "created as replacements", "delete-replaced": "deleted, being replaced",
    "discard": "forgotten", "same": "unchanged", "refresh": "compared", "read": "read",
}  # fmt: skip
_FUTURE: Final = {op: f"to {op}" for op in ("create", "update", "delete", "replace", "import")} | {"same": "unchanged"}
_LONGEST: Final = 15  # rows of a list; the whole of it is in the file


@dataclass(frozen=True, kw_only=True)
class QuotaRow:
    """A quota of which something is used; ``limit`` is None where none is known, or it is unlimited."""

    project: str
    service: str
    quota: str
    used: float
    limit: float | None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A run of one stack. ``steps`` are in the order in which they ended; times in seconds since the run began."""

    stack: str
    command: str
    failed: bool
    counts: dict[str, int]
    steps: list[dict[str, Any]]
    seconds: float
    path: list[Leg]
    quotas: list[QuotaRow]
    notes: list[str]
    file: str | None  # where all of this is kept
    warnings: list[str]

    @property
    def path_seconds(self) -> float:
        """How long the run would have taken, had nothing but needs held it up."""
        return self.path[-1].done if self.path else 0.0


def summarize(
    stack: str,
    command: str,
    timeline: Timeline,
    needs: Mapping[str, Collection[str]],
    *,
    failed: bool = False,
    quotas: Collection[QuotaRow] = (),
    notes: Collection[str] = (),
    file: Path | None = None,
) -> Summary:
    """Return the summary of a run; ``needs`` says for each resource what had to be done before it."""
    changed = timeline.changed()
    took: dict[str, float] = defaultdict(float)
    for step in changed:
        took[step.urn] += step.seconds
    return Summary(
        stack=stack,
        command=command,
        failed=failed,
        counts=timeline.counts or dict(Counter(step.op for step in timeline.steps)),
        steps=[
            {"name": each.name, "op": each.op, "type": each.type, "began": each.began, "seconds": each.seconds,
             "failed": each.failed, "urn": each.urn}
            for each in changed
        ],
        seconds=timeline.length(),
        path=critical_path(took, needs) if took else [],
        quotas=list(quotas),
        notes=list(notes),
        file=str(file) if file else None,
        warnings=list(timeline.warnings),
    )  # fmt: skip


def as_json(summary: Summary) -> str:
    """Return the summary for programs."""
    content = asdict(summary) | {
        "path": [each._asdict() for each in summary.path],
        "path_seconds": summary.path_seconds,
    }
    return json.dumps(content, indent=1)


def as_text(summary: Summary) -> str:
    """Return the summary for people."""
    return "\n".join(_lines(summary))


def _lines(summary: Summary) -> Iterator[str]:
    words = _FUTURE if summary.command == "preview" else _PAST
    counts = ", ".join(f"{count} {words.get(op, op)}" for op, count in summary.counts.items() if count)
    yield f"{summary.stack}: {summary.command} {'failed' if summary.failed else 'done'}: {counts or 'nothing to do'}"
    if summary.steps and summary.command != "preview":
        yield from _kinds(summary)
        yield from _path(summary)
    if summary.quotas:
        yield from _quotas(summary.quotas)
    for text in summary.warnings:
        yield f"  warning: {text}"
    for note in summary.notes:
        yield f"  {note}"
    if summary.file is not None:
        yield f"  Everything, in the order in which it was done: {summary.file}"


def _kinds(summary: Summary) -> Iterator[str]:
    """Yield kinds in the order in which the first of each was done."""
    yield "  In this order, by kind:"
    counts = Counter((step["op"], step["failed"], _short(step["type"])) for step in summary.steps)
    for (op, failed, kind), count in counts.items():
        yield f"    {f'failed to {op}' if failed else _PAST.get(op, op)} {count} {kind}"


def _path(summary: Summary) -> Iterator[str]:
    path = [leg for leg in summary.path if leg.seconds >= 0.05]
    share = f" ({summary.seconds / summary.path_seconds:.2f} times the path)" if summary.path_seconds else ""
    yield f"  Critical path {summary.path_seconds:.1f} s, the run {summary.seconds:.1f} s{share}:"
    for leg in path[:_LONGEST]:
        yield f"    {leg.seconds:8.1f} s  {leg.urn.split('::', 3)[-1]}  ({_short(_type(leg.urn))})"
    if len(path) > _LONGEST:
        yield f"    and {len(path) - _LONGEST} more"


def _quotas(rows: Collection[QuotaRow]) -> Iterator[str]:
    yield "  Quota in use:"
    for row in rows:
        limit = "no limit known" if row.limit is None else f"of {row.limit:g}"
        yield f"    {row.project}  {row.service}  {row.quota}: {row.used:g} {limit}"


def _type(urn: str) -> str:
    return urn.split("::", 3)[2].rpartition("$")[2]


def _short(kind: str) -> str:
    """Return ``gcp NodePool`` for ``gcp:container/nodePool:NodePool``, and ``gcp provider`` for a provider itself."""
    parts = kind.split(":")
    if parts[1:2] == ["providers"]:
        return f"{parts[-1]} provider"
    return f"{parts[0]} {parts[-1]}"
