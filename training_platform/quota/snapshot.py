"""Snapshots of a project's limits, ``stacks/quotas/<project>.yaml``: their model, what can be wrong, first texts."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path as FilePath
from typing import Annotated, Any, NamedTuple

from pydantic import ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from training_platform.catalog import LOCATIONS_READ, REGIONS, ZONES
from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.rejection import rejections
from training_platform.config.reading.section import QUOTA_ID, SERVICE, ProjectId, Section, enumeration
from training_platform.config.reading.source import Source, UnreadableError, read_source
from training_platform.quota.charges import QuotaKey
from training_platform.quota.quota_ids import KnownQuota, known_quotas, misspelt_quota_id, units

RULE = "quota-snapshot"
OTHERS = "others"
"""The region or zone of a row that holds for every place that no other row names."""

Dimension = Annotated[str, Field(min_length=1)]
QuotaIdName = Annotated[str, Field(pattern=QUOTA_ID)]
ServiceName = Annotated[str, Field(pattern=SERVICE)]


class Limit(Section):
    """One limit; any further key is a dimension that it holds for, such as ``gpu_family``."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Dimension]

    limit: int = Field(ge=-1, description="-1 is unlimited.", examples=[64])
    region: Dimension | None = None
    zone: Dimension | None = None
    unit: str | None = Field(default=None, description="What one counts, such as GB; the catalogue knows it anyway.")

    @field_validator("region", "zone", "unit", mode="before")
    @classmethod
    def _said(cls, value: object) -> object:
        if value is None:  # a default is never validated, so somebody wrote the key and no value
            raise PydanticCustomError("empty", "says nothing", {"allowed": "a text, or no such key"})
        return value

    @property
    def place(self) -> str | None:
        """The zone or region that it holds for; None holds for every place that no other row names."""
        place = self.zone or self.region
        return None if place == OTHERS else place

    @property
    def others(self) -> dict[str, str]:
        """Its dimensions beside the place."""
        return self.__pydantic_extra__

    def covers(self, key: QuotaKey) -> bool:
        """Whether every dimension that the row names is the key's own."""
        if self.place not in (None, key.location):
            return False
        return not self.others or self.others.items() <= dict(key.dimensions).items()

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """Every dimension that the row names, place included where it is a certain one."""
        places = (("region", self.region), ("zone", self.zone))
        named = tuple((name, value) for name, value in places if value and value != OTHERS)
        return (*named, *sorted(self.others.items()))


class SnapshotFile(Section):
    """The whole file."""

    project: ProjectId
    taken: date = Field(description="Day on which the limits were read.", examples=["2026-11-01"])
    limits: dict[ServiceName, dict[QuotaIdName, tuple[Limit, ...]]] = Field(
        description="Limits by service and quota id, a row for each place or other dimension."
    )


class Row(NamedTuple):
    """A row and where it stands; ``whole`` says whether its dimensions are all that the file gives it."""

    path: Path
    limit: Limit
    whole: bool


def row_findings(rows: Iterable[Row], source: Source) -> Iterator[Finding]:
    """Yield what is wrong with the rows; what our catalogue may be too old to judge is a warning."""
    first: dict[tuple[object, ...], Path] = {}
    for quota, of_quota in groupby(rows, key=lambda row: row.path[:-1]):
        service, quota_id = map(str, quota[1:])
        known = known_quotas().get((service, quota_id))
        if known is None and (nearest := misspelt_quota_id(service, quota_id)):
            yield _unknown_id(source, quota, nearest)
        for at, row, whole in of_quota:
            before = first.setdefault((*quota, row.dimensions), at) if whole else at
            if before != at:
                message = f"has the same dimensions as line {source.position(before).line}"
                yield source.finding(RULE, at, message, allowed="one limit for each")
            yield from _unit(row, known, source, at)
            yield from _place(row, known, source, at)
            yield from _dimensions(row, known, source, at)


def _unknown_id(source: Source, path: Path, nearest: str) -> Finding:
    message = f"{path[-1]!r} is not a quota id in the catalogue, so nothing is charged to it"
    allowed = f"quota ids of {path[1]}"
    return source.finding(RULE, path, message, allowed=allowed, nearest=nearest, severity="warning")


def _unit(row: Limit, known: KnownQuota | None, source: Source, at: Path) -> Iterator[Finding]:
    allowed = frozenset({known.unit}) if known else units()
    if row.unit is not None and row.unit not in allowed:
        message = (
            f"{row.unit!r} is not what {at[-2]} is counted in" if known else f"{row.unit!r} is not a unit of quotas"
        )
        nearest = known.unit if known else find_nearest(row.unit, allowed)
        yield source.finding(RULE, (*at, "unit"), message, allowed=enumeration(allowed), nearest=nearest)


def _place(row: Limit, known: KnownQuota | None, source: Source, at: Path) -> Iterator[Finding]:
    given = {name: place for name, place in (("region", row.region), ("zone", row.zone)) if place is not None}
    for name, place in given.items():
        names = REGIONS if name == "region" else ZONES
        if known and known.per != name:
            counted = "for the whole project" if known.per == "project" else f"by {known.per}"
            message = f"{at[-2]} is counted {counted}"
            yield source.finding(RULE, (*at, name), message, allowed=f"no {name} here")
        elif place not in (OTHERS, *names):
            message = f"{place!r} is not a {name} in the catalogue"
            allowed = f"{name}s as of {LOCATIONS_READ}, or {OTHERS}"
            nearest = find_nearest(place, names)
            yield source.finding(RULE, (*at, name), message, allowed=allowed, nearest=nearest, severity="warning")
    if known and known.per != "project" and not given and row.limit > 0:
        message = f"names no {known.per}, and {at[-2]} is counted by {known.per}"
        allowed = f"a {known.per}, or {OTHERS} for every one that no other row names"
        yield source.finding(RULE, at, message, allowed=allowed, nearest=f"{known.per}: {OTHERS}")


def _dimensions(row: Limit, known: KnownQuota | None, source: Source, at: Path) -> Iterator[Finding]:
    if known is None:
        return
    for name in row.others:
        if name not in known.dimensions:
            message = f"{name!r} is not a dimension of {at[-2]} in the catalogue, so nothing is charged to this row"
            allowed = enumeration(known.dimensions) or "no dimension beside its place"
            nearest = find_nearest(name, {*known.dimensions, known.per} - {"project"})
            yield source.finding(RULE, (*at, name), message, allowed=allowed, nearest=nearest, severity="warning")


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


SCHEMA_FILE = f"{FOLDER}/quotas.schema.json"
SCHEMA_LINE = "# yaml-language-server: $schema=./quotas.schema.json"

_HEAD = f"""\
{SCHEMA_LINE}
# Written without looking at Google Cloud: what stacks and jobs need, and not the limits that the project has.
# `training-platform quota pull` writes its limits in their place.
"""
_MEANINGS = {
    "region": f"The region that the limit is for; {OTHERS}: every one that no other row names.",
    "zone": f"The zone that the limit is for; {OTHERS}: every one that no other row names.",
    "unit": "What one counts; the catalogue knows it, and a check holds this against it.",
}


def snapshot_schema() -> dict[str, Any]:
    """Return the schema of ``stacks/quotas/<project>.yaml``."""
    schema = SnapshotFile.model_json_schema()
    row = schema["$defs"]["Limit"]["properties"]
    for name in ("region", "zone", "unit"):  # left out or said: the model refuses an empty one
        row[name] = {"type": "string", "minLength": 1, "description": _MEANINGS[name]}
    for name, place in (("region", "us-central1"), ("zone", "us-central1-a")):
        row[name]["examples"] = [place]
    row["unit"]["enum"] = sorted(units())
    limits = schema["properties"]["limits"]
    for mapping in (limits, *limits["patternProperties"].values()):
        mapping["additionalProperties"] = False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Limits of a project"}


def is_first(text: str) -> bool:
    """Whether a snapshot's text is what stacks and jobs need, and no limits of Google Cloud."""
    return text.startswith(_HEAD)


def snapshot_text(project: str, needs: Mapping[QuotaKey, float], today: date, kept: Snapshot | None = None) -> str:
    """Return a snapshot of what is needed of each quota; a limit that ``kept`` has stays as it is there."""
    services: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for service, ids in kept.limits.items() if kept else ():
        for quota_id, rows in ids.items():
            services[service][quota_id] = [_row_text(row.model_dump(exclude_none=True)) for row in rows]
    for key, amount in needs.items():
        if kept is None or kept.limit(key) is None:
            place = {"zone" if key.location in ZONES else "region": key.location} if key.location else {}
            fields = {"limit": math.ceil(amount), **place, **dict(key.dimensions)}
            services[key.service][key.quota_id].append(_row_text(fields))
    text = f'{_HEAD}project: {project}\ntaken: "{today}"\nlimits:\n'
    for service, quotas in sorted(services.items()):
        text += f"  {service}:\n"
        for quota_id, lines in sorted(quotas.items()):
            text += f"    {quota_id}:\n{''.join(sorted(lines))}"
    return text


def _row_text(fields: Mapping[str, object]) -> str:
    return f"      - {{{', '.join(f'{name}: {value}' for name, value in fields.items())}}}\n"
