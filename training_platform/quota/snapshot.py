"""Quota limits of a project as they were on one day: ``stacks/quotas/<project>.yaml``.

Rows stand under service and quota id, as the Cloud Quotas API spells both; a row is a ``limit`` (-1 is unlimited) and
the dimensions that it holds for: ``region`` or ``zone``, and others such as ``gpu_family``. The place ``others`` is
every one that no other row names. ``unit`` may be written beside a limit, and is then held against the catalogue.
``taken`` is the day on which the limits were read.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path as FilePath

from pydantic import ValidationError

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.rejection import rejections
from training_platform.config.reading.source import Source, UnreadableError, read_source
from training_platform.quota.keys import QuotaKey
from training_platform.quota.snapshot_rows import OTHERS, RULE, Limit, Row, SnapshotFile, row_findings

FOLDER = "stacks/quotas"
AGE_RULE = "quota-snapshot-age"
FRESH_DAYS = 30

_STAND_INS = {"limit": 1, "region": OTHERS, "zone": OTHERS}


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The limits of one project, and the day on which they were read."""

    project: str
    taken: date
    limits: Mapping[str, Mapping[str, tuple[Limit, ...]]]
    source: Source
    _known: dict[QuotaKey, float | None] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def limit(self, key: QuotaKey) -> float | None:
        """Return the limit of a key; ``inf`` where unlimited, None where the snapshot does not list the quota id.

        An id that is listed, but not for this place or these dimensions, has limit 0 there: Google Cloud leaves out
        of a listing what a project was never given. Source: listings of per-family quotas by third parties, 2026.
        """
        if key not in self._known:
            self._known[key] = self._limit(key)
        return self._known[key]

    def _limit(self, key: QuotaKey) -> float | None:
        rows = self.limits.get(key.service, {}).get(key.quota_id)
        if rows is None:
            return None
        fitting = [row for row in rows if row.covers(key)]
        if not fitting:
            return 0.0
        closest = max(fitting, key=lambda row: len(row.dimensions))
        return math.inf if closest.limit == -1 else float(closest.limit)

    def covers(self, key: QuotaKey) -> bool:
        """Whether a row is for the key's place and dimensions."""
        return any(row.covers(key) for row in self.limits.get(key.service, {}).get(key.quota_id, ()))

    def age(self, today: date) -> int:
        """Return how many days old the limits are."""
        return (today - self.taken).days


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of a repository by project; ``unreadable`` has one sentence per file that is not YAML."""

    by_project: Mapping[str, Snapshot] = dataclasses.field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    unreadable: tuple[str, ...] = ()

    def get(self, project: str) -> Snapshot | None:
        """Return a project's snapshot."""
        return self.by_project.get(project)


def read_snapshots(root: FilePath, today: date) -> Snapshots:
    """Read every snapshot below ``root/stacks/quotas``."""
    by_project: dict[str, Snapshot] = {}
    findings: list[Finding] = []
    unreadable: list[str] = []
    for path in sorted((root / FOLDER).glob("*.yaml")):
        name = path.name.encode("utf-8", "backslashreplace").decode()
        if name != path.name:
            unreadable.append(f"{FOLDER}/{name}: the name of the file is not UTF-8.")
            continue
        try:
            snapshot, found = parse_snapshot(path.stem, read_source(path, f"{FOLDER}/{path.name}"))
        except UnreadableError as error:
            unreadable.append(str(error))
            continue
        findings.extend(found)
        if snapshot is not None:
            by_project[snapshot.project] = snapshot
            findings.extend(_age(snapshot, today))
    return Snapshots(by_project, tuple(findings), tuple(unreadable))


def parse_snapshot(project: str, source: Source) -> tuple[Snapshot | None, list[Finding]]:
    """Return the snapshot that a file called after ``project`` holds, None where it is rejected, and every finding.

    What is right of a rejected file is judged as well, so that all that is wrong comes at once.
    """
    data, found = _shape(source)
    named = source.value.get("project") if isinstance(source.value, dict) else None
    if isinstance(named, str) and named != project and not any(each.path == "project" for each in found):
        message = f"is {named!r} in a file that is called after {project!r}"
        found.append(source.finding(RULE, ("project",), message, allowed=project, nearest=project))
    found = [*source.findings, *found, *row_findings(_rows(source.value), source)]
    if data is None:
        return None, found
    return Snapshot(project=data.project, taken=data.taken, limits=data.limits, source=source), found


def _shape(source: Source) -> tuple[SnapshotFile | None, list[Finding]]:
    try:
        return SnapshotFile.model_validate_json(json.dumps(source.value)), []
    except ValidationError as error:
        rejected = rejections(error, SnapshotFile, source, (), "")
        return None, [_misspelt(dataclasses.replace(each, rule=RULE, stack=None)) for each in rejected]


def _misspelt(finding: Finding) -> Finding:
    """Return a finding about a row's field as one about its name, where that is like one that a row takes."""
    row, _, name = finding.path.rpartition("].")
    nearest = find_nearest(name, Limit.model_fields) if row else None
    if nearest is None or name in Limit.model_fields:
        return finding
    message = "is not a field of a limit, nor is its value that of a dimension, which is a text"
    allowed = f"{', '.join(Limit.model_fields)}, or a dimension such as gpu_family"
    return dataclasses.replace(finding, message=message, allowed=allowed, nearest=nearest)


def _rows(value: object) -> Iterator[Row]:
    """Yield every row of a file's value; of one that the model rejects, what is right of it."""
    limits = value.get("limits") if isinstance(value, dict) else None
    for service, ids in limits.items() if isinstance(limits, dict) else ():
        for quota_id, rows in ids.items() if isinstance(ids, dict) else ():
            for index, row in enumerate(rows if isinstance(rows, list) else ()):
                if isinstance(row, dict):
                    yield _row(("limits", service, quota_id, index), row)


def _row(path: Path, given: Mapping[str, object]) -> Row:
    """Return a row; what stands in for a wrong limit or place is one that nothing is said against."""
    try:
        return Row(path, Limit.model_validate(given), whole=True)
    except ValidationError as error:
        wrong = {detail["loc"][0] for detail in error.errors()}
    right = {name: value for name, value in given.items() if name not in wrong}
    stand_ins = {name: value for name, value in _STAND_INS.items() if name in wrong}
    return Row(path, Limit.model_validate({**right, **stand_ins}), whole=wrong <= {"limit", "unit"})


def _age(snapshot: Snapshot, today: date) -> Iterator[Finding]:
    days = snapshot.age(today)
    if days < 0:
        yield snapshot.source.finding(
            RULE, ("taken",), f"is later than today, {today}", allowed="the day of the reading"
        )
    elif days > FRESH_DAYS:
        message = f"is {days} days ago; limits may have changed since"
        warning = snapshot.source.finding(RULE, ("taken",), message, allowed=f"at most {FRESH_DAYS} days")
        nearest = f"training-platform quota pull {snapshot.project}"
        yield dataclasses.replace(warning, rule=AGE_RULE, severity="warning", nearest=nearest)
