"""Quotas of a program that no stack file describes: one stack against the snapshot that the pack's config gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import Source, UnreadableError, read_source, whole_numbers
from training_platform.config.workspace import Workspace
from training_platform.quota.demand import demand_of_views
from training_platform.quota.ledger import project_ledgers
from training_platform.quota.ledger_findings import ledger_findings
from training_platform.quota.snapshot import Snapshot, Snapshots, not_known, parse_snapshot
from training_platform.rules import View

INLINE = "the snapshot in the policy pack's config"


class SnapshotError(Exception):
    """A snapshot that cannot be read, or that is rejected; the message says all that is wrong with it."""


def snapshot_of(setting: str | Mapping[str, Any]) -> Snapshot:
    """Return the snapshot that a config holds, or names by its path from the pack's folder. Raises SnapshotError.

    The engine starts a pack in its own folder.
    """
    return _read(setting) if isinstance(setting, str) else _parsed(Source(INLINE, whole_numbers(setting)))


def quota_findings(views: Iterable[View], snapshot: Snapshot | None) -> tuple[list[Finding], list[str]]:
    """Return the limits that one stack's own demand breaks, and a sentence for everything that is left open.

    A resource that names no project is counted for the snapshot's.
    """
    if snapshot is None:
        return [], ["quotas are not checked: the setting snapshot of the policy quota gives no limits to compare with"]
    if snapshot.placeholder:
        return [], [f"quotas are not checked: {not_known(snapshot.project)}"]
    charges, notes = demand_of_views(views, snapshot.project)
    ledgers = project_ledgers(charges, Snapshots({snapshot.project: snapshot}))
    mine = [ledger for project, ledger in ledgers.items() if project == snapshot.project]
    unknown = [f"quotas of {project} are not checked: no snapshot of it is given" for project in ledgers]
    left_open = [sentence for sentence, project in zip(unknown, ledgers, strict=True) if project != snapshot.project]
    alone = f"quotas of {snapshot.project} are compared with what this stack alone asks: other stacks are not counted"
    return ledger_findings(Workspace(Path()), mine, ()), [alone, *left_open, *map(str, notes)]


@lru_cache(maxsize=8)
def _read(path: str) -> Snapshot:
    try:
        return _parsed(read_source(Path(path), path))
    except UnreadableError as error:
        raise SnapshotError(str(error)) from error


def _parsed(source: Source) -> Snapshot:
    project = source.value.get("project") if isinstance(source.value, dict) else None
    snapshot, findings = parse_snapshot(str(project), source)
    if snapshot is None or findings:
        raise SnapshotError("; ".join(finding.one_line for finding in findings))
    return snapshot
