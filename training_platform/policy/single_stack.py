"""Quotas of a program without stack files: one stack, compared with the snapshot in the pack's config."""

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
    """Raised for a snapshot that cannot be read or is rejected. The message lists every error."""


def snapshot_of(setting: str | Mapping[str, Any]) -> Snapshot:
    """Return the snapshot in a config, or the one at a path relative to the pack's folder. Raises SnapshotError.

    The engine starts a pack in its own folder.
    """
    if isinstance(setting, str):
        return _snapshot_at(setting)
    return _parsed(Source(INLINE, whole_numbers(setting)))


def quota_findings(views: Iterable[View], snapshot: Snapshot | None) -> tuple[list[Finding], list[str]]:
    """Return findings about limits that one stack exceeds, and a sentence for each open question.

    A resource without a project is counted in the project of the snapshot.
    """
    if snapshot is None:
        return [], ["quotas are not checked: the policy `quota` has no setting `snapshot` with limits"]
    if snapshot.placeholder:
        return [], [f"quotas are not checked: {not_known(snapshot.project)}"]
    charges, notes = demand_of_views(views, snapshot.project)
    ledgers = project_ledgers(charges, Snapshots({snapshot.project: snapshot}))
    mine = [ledger for project, ledger in ledgers.items() if project == snapshot.project]
    sentences = [
        (
            f"the quotas of {snapshot.project} are compared only with the demand of this stack; other stacks are not "
            f"counted"
        )
    ]
    other_projects = [project for project in ledgers if project != snapshot.project]
    sentences += [
        f"the quotas of {project} are not checked, because the snapshot is for another project"
        for project in other_projects
    ]
    return ledger_findings(Workspace(Path()), mine, ()), [*sentences, *map(str, notes)]


@lru_cache(maxsize=8)
def _snapshot_at(path: str) -> Snapshot:
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
