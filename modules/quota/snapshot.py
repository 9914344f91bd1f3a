"""Quota limits of a project as they were on one day: ``stacks/quotas/<project>.yaml``.

Rows stand under service and quota id, as the Cloud Quotas API spells both; a row is a ``limit`` (-1 is unlimited) and
the dimensions that it holds for: ``region`` or ``zone``, and others such as ``gpu_family``. ``taken`` is the day on
which the limits were read.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path as FilePath
from typing import Annotated

from pydantic import ConfigDict, Field, ValidationError

from modules.config.finding import Finding, Path, dotted
from modules.config.rejection import rejections
from modules.config.section import ProjectId, Section
from modules.config.source import Source, UnreadableError, read_source
from modules.quota.keys import QuotaKey

FOLDER = "stacks/quotas"
RULE = "quota-snapshot"
AGE_RULE = "quota-snapshot-age"
FRESH_DAYS = 30

Dimension = Annotated[str, Field(min_length=1)]
QuotaIdName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
ServiceName = Annotated[str, Field(pattern=r"^[a-z]+\.googleapis\.com$")]


class Limit(Section):
    """One limit; any further key is a dimension that it holds for, such as ``gpu_family``."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Dimension]

    limit: int = Field(ge=-1, description="-1 is unlimited.")
    region: Dimension | None = None
    zone: Dimension | None = None

    @property
    def place(self) -> str | None:
        """The zone or region that it holds for; None holds for every place that no other row names."""
        return self.zone or self.region

    def covers(self, key: QuotaKey) -> bool:
        """Whether every dimension that the row names is the key's own."""
        asked = dict(key.dimensions)
        here = self.place is None or self.place == key.location
        return here and all(asked.get(name) == value for name, value in self.__pydantic_extra__.items())

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """Every dimension that the row names, place included."""
        places = (("region", self.region), ("zone", self.zone))
        named = tuple((name, value) for name, value in places if value is not None)
        return (*named, *sorted(self.__pydantic_extra__.items()))


class SnapshotFile(Section):
    """The whole file."""

    project: ProjectId
    taken: date
    limits: dict[ServiceName, dict[QuotaIdName, tuple[Limit, ...]]]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The limits of one project, and the day on which they were read."""

    project: str
    taken: date
    limits: Mapping[str, Mapping[str, tuple[Limit, ...]]]
    source: Source

    def limit(self, key: QuotaKey) -> float | None:
        """Return the limit of a key; ``inf`` where unlimited, None where the snapshot does not list the quota id.

        An id that is listed, but not for this place or these dimensions, has limit 0 there: Google Cloud leaves out
        of a listing what a project was never given. Source: listings of per-family quotas by third parties, 2026.
        """
        rows = self.limits.get(key.service, {}).get(key.quota_id)
        if rows is None:
            return None
        fitting = [row for row in rows if row.covers(key)]
        if not fitting:
            return 0.0
        closest = max(fitting, key=lambda row: len(row.dimensions))
        return math.inf if closest.limit == -1 else float(closest.limit)

    def age(self, today: date) -> int:
        """Return how many days old the limits are."""
        return (today - self.taken).days


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of a repository by project; ``unreadable`` has one sentence per file that is no YAML."""

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
    """Return the snapshot that a file called after ``project`` holds, None where it is rejected, and every finding."""
    found = list(source.findings)
    try:
        data = SnapshotFile.model_validate_json(json.dumps(source.value))
    except ValidationError as error:
        rejected = rejections(error, SnapshotFile, source, (), "")
        return None, found + [dataclasses.replace(each, rule=RULE, stack=None) for each in rejected]
    found.extend(_inside(data, project, source))
    return Snapshot(project=data.project, taken=data.taken, limits=data.limits, source=source), found


def _inside(data: SnapshotFile, project: str, source: Source) -> Iterator[Finding]:
    if data.project != project:
        yield _finding(source, ("project",), f"is {data.project!r} in a file that is called after {project!r}", project)
    for service, ids in data.limits.items():
        for quota_id, rows in ids.items():
            seen: dict[tuple[tuple[str, str], ...], int] = {}
            for index, row in enumerate(rows):
                first = seen.setdefault(row.dimensions, index)
                if first != index:
                    path = ("limits", service, quota_id, index)
                    line = source.position((*path[:-1], first)).line
                    yield _finding(source, path, f"has the same dimensions as line {line}", "one limit for each")


def _age(snapshot: Snapshot, today: date) -> Iterator[Finding]:
    days = snapshot.age(today)
    if days < 0:
        yield _finding(snapshot.source, ("taken",), f"is later than today, {today}", "the day of the reading")
    elif days > FRESH_DAYS:
        message = f"is {days} days ago; limits may have changed since"
        warning = _finding(snapshot.source, ("taken",), message, f"at most {FRESH_DAYS} days")
        nearest = f"training-platform quota pull {snapshot.project}"
        yield dataclasses.replace(warning, rule=AGE_RULE, severity="warning", nearest=nearest)


def _finding(source: Source, path: Path, message: str, allowed: str) -> Finding:
    return Finding(
        rule=RULE, severity="error", message=message, file=source.file, position=source.position(path),
        path=dotted(path), allowed=allowed,
    )  # fmt: skip
