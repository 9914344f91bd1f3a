"""Snapshots of a project's limits, ``stacks/quotas/<project>.yaml``: model, reading, findings, schema, initial text."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from training_platform.catalog import LOCATIONS_READ, REGIONS, ZONES
from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Finding, Path, others_go_on
from training_platform.config.reading.rejection import validated
from training_platform.config.reading.section import QUOTA_ID, SERVICE, ProjectId, Section, enumeration
from training_platform.config.reading.source import Source, UnreadableError, read_source
from training_platform.config.schema import file_schema
from training_platform.quota.charges import QuotaKey
from training_platform.quota.quota_ids import KnownQuota, known_quotas, misspelt_quota_id, units

FOLDER = "stacks/quotas"
FRESH_DAYS = 30
OTHERS = "others"
"""The region or zone of a row that applies to all locations without a row of their own."""

Dimension = Annotated[str, Field(min_length=1)]
QuotaIdName = Annotated[str, Field(pattern=QUOTA_ID)]
ServiceName = Annotated[str, Field(pattern=SERVICE)]


class Limit(Section):
    """One limit. Any additional key is a dimension, such as ``gpu_family``."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Dimension]

    limit: int = Field(ge=-1, description="-1 is unlimited.", examples=[64])
    region: Dimension | None = None
    zone: Dimension | None = None
    unit: str | None = Field(
        default=None,
        description="Unit of the limit, such as GB. The catalogue contains the "
        "unit as well, so this field is optional.",
    )

    @field_validator("region", "zone", "unit", mode="before")
    @classmethod
    def _refuse_empty(cls, value: object) -> object:
        if value is None:  # defaults are not validated, so the key was written without a value
            raise PydanticCustomError("empty", "has no value", {"allowed": "a string, or the field left out"})
        return value

    @property
    def place(self) -> str | None:
        """The zone or region of the limit; None means all locations without a row of their own."""
        place = self.zone or self.region
        return None if place == OTHERS else place

    @property
    def other_dimensions(self) -> dict[str, str]:
        """The dimensions other than the location."""
        return self.__pydantic_extra__

    def covers(self, key: QuotaKey) -> bool:
        """Return True if the key has all dimensions of the row."""
        if self.place not in (None, key.location):
            return False
        return not self.other_dimensions or self.other_dimensions.items() <= dict(key.dimensions).items()

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """All dimensions of the row, including a specific location."""
        places = (("region", self.region), ("zone", self.zone))
        named = tuple((name, value) for name, value in places if value and value != OTHERS)
        return (*named, *sorted(self.other_dimensions.items()))


class SnapshotFile(Section):
    """The content of a snapshot file."""

    project: ProjectId
    taken: date = Field(description="Date on which the limits were read.", examples=["2026-11-01"])
    placeholder: bool = Field(
        default=False,
        description="true if `quota init` wrote these amounts without reading the limits from Google Cloud. Nothing "
        "is compared with them.",
    )
    limits: dict[ServiceName, dict[QuotaIdName, tuple[Limit, ...]]] = Field(
        description="Limits, keyed by service and quota id, with one row for each location or other dimension."
    )


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The limits of one project, and the day on which they were read.

    If ``placeholder`` is set, no limit is known: the values are the needs that `quota init` counted.
    """

    project: str
    taken: date
    limits: Mapping[str, Mapping[str, tuple[Limit, ...]]]
    source: Source
    placeholder: bool = False
    _known: dict[QuotaKey, float | None] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def limit(self, key: QuotaKey) -> float | None:
        """Return the limit of a key; ``inf`` if unlimited, None if no limit of the quota id is known.

        If an id is listed, but not for this location or these dimensions, the limit is 0: Google Cloud does not list
        what a project was never granted. Source: listings of per-family quotas by third parties, 2026.
        """
        return None if self.placeholder else self.amount(key)

    def amount(self, key: QuotaKey) -> float | None:
        """Return the value for a key in the file, which is its limit or the amount that `quota init` counted."""
        if key not in self._known:
            rows = self.limits.get(key.service, {}).get(key.quota_id)
            fitting = [row for row in rows or () if row.covers(key)]
            limit = max(fitting, key=lambda row: len(row.dimensions)).limit if fitting else 0
            if rows is None:
                self._known[key] = None
            else:
                self._known[key] = math.inf if limit == -1 else float(limit)
        return self._known[key]

    def covers(self, key: QuotaKey) -> bool:
        """Return True if a row applies to the key's location and dimensions."""
        return any(row.covers(key) for row in self.limits.get(key.service, {}).get(key.quota_id, ()))

    def age(self, today: date) -> int:
        """Return the age of the limits in days."""
        return (today - self.taken).days


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of a repository, keyed by project. ``unreadable`` has a sentence for each file that is not YAML."""

    by_project: Mapping[str, Snapshot] = dataclasses.field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    unreadable: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def get(self, project: str) -> Snapshot | None:
        """Return a project's snapshot."""
        return self.by_project.get(project)

    def limit(self, key: QuotaKey) -> float | None:
        """Return the limit of a key, or None if no snapshot lists it."""
        snapshot = self.by_project.get(key.project)
        return snapshot.limit(key) if snapshot else None


def read_snapshots(root: FilePath, today: date) -> Snapshots:
    """Read all snapshots below ``root/stacks/quotas``."""
    by_project: dict[str, Snapshot] = {}
    findings: list[Finding] = []
    unreadable: dict[str, str] = {}
    for path in sorted((root / FOLDER).glob("*.yaml")):
        name = path.name.encode("utf-8", "backslashreplace").decode()
        if name != path.name:
            unreadable[f"{FOLDER}/{name}"] = f"{FOLDER}/{name}: the name of the file is not UTF-8."
            continue
        file = f"{FOLDER}/{path.name}"
        failures: list[str] = []
        try:
            with others_go_on(file, failures):
                snapshot, mistakes = parse_snapshot(path.stem, read_source(path, file))
                findings.extend(mistakes)
                if snapshot is not None:
                    by_project[snapshot.project] = snapshot
                    findings.extend(located(_age(snapshot, today)))
        except UnreadableError as error:
            failures.append(str(error))
        unreadable.update((file, sentence) for sentence in failures)
    return Snapshots(by_project, tuple(findings), unreadable=unreadable)


def not_known(project: str) -> str:
    """Return a sentence about a project whose limits have not been read yet."""
    return f"the limits of {project} are not known yet; `training-platform quota pull {project}` reads them"


QUOTA_SNAPSHOT = declare(
    "quota-snapshot",
    "Find errors in a snapshot of a project's limits.",
    ruleset="files",
)


QUOTA_SNAPSHOT_AGE = declare(
    "quota-snapshot-age",
    "Find a snapshot of limits that is old.",
    ruleset="files",
    severity="warning",
)


QUOTA_PLACEHOLDER = declare(
    "quota-placeholder",
    "Find a project whose limits have not been read yet.",
    ruleset="files",
    severity="note",
    unjudged="project without known limits",
)


def _age(snapshot: Snapshot, today: date) -> Iterator[Draft]:
    days = snapshot.age(today)
    source = snapshot.source
    if snapshot.placeholder:
        yield finding(source, ("placeholder",), not_known(snapshot.project), rule=QUOTA_PLACEHOLDER)
    elif days < 0:
        yield finding(
            source, ("taken",), f"is later than today, {today}", rule=QUOTA_SNAPSHOT, allowed="the day of the reading"
        )
    elif days > FRESH_DAYS:
        message = f"is {days} days ago; the limits may have changed since then"
        nearest = f"training-platform quota pull {snapshot.project}"
        allowed = f"at most {FRESH_DAYS} days"
        yield finding(source, ("taken",), message, rule=QUOTA_SNAPSHOT_AGE, allowed=allowed, nearest=nearest)


def parse_snapshot(project: str, source: Source) -> tuple[Snapshot | None, list[Finding]]:
    """Return the snapshot in a file named after ``project``, and all findings. The snapshot is None if it is rejected.

    The valid rows of a rejected file are checked as well, to report all findings together.
    """
    snapshot: Snapshot | None = None
    file, wrong = validated(SnapshotFile, source.value, source, rule=QUOTA_SNAPSHOT)
    if file:
        snapshot = Snapshot(
            project=file.project, taken=file.taken, limits=file.limits, source=source, placeholder=file.placeholder
        )
    rejected = [_misspelt(finding) for finding in wrong]
    findings = [*source.findings, *rejected]
    named = source.value.get("project") if isinstance(source.value, dict) else None
    if isinstance(named, str) and named != project and not any(finding.path == "project" for finding in rejected):
        message = f"is {named!r}, but the file is named after {project!r}"
        draft = finding(source, ("project",), message, rule=QUOTA_SNAPSHOT, allowed=project, nearest=project)
        findings += located([draft])
    for service, quotas in _mapping(_mapping(source.value).get("limits")).items():
        for quota_id, rows in _mapping(quotas).items():
            findings += located(_quota_findings(rows if isinstance(rows, list) else [], source, service, quota_id))
    return snapshot, [dataclasses.replace(finding, spoils=(source.place(()),)) for finding in findings]


def _mapping(value: object) -> Mapping[str, Any]:
    """Return a value of the file if it is a mapping, otherwise an empty mapping; the model rejects other values."""
    return value if isinstance(value, dict) else {}


def _misspelt(finding: Finding) -> Finding:
    """Return the model's finding, with a better message if it is about a misspelled field name in a row."""
    path = finding.draft.field
    is_field_of_row = len(path) > 1 and isinstance(path[-2], int)
    name = str(path[-1]) if path else ""
    nearest = find_nearest(name, Limit.model_fields) if is_field_of_row else None
    if nearest is None or name in Limit.model_fields:
        return finding
    message = "is neither a field of a limit nor a dimension: the value of a dimension is a string"
    allowed = f"{', '.join(Limit.model_fields)}, or a dimension such as gpu_family"
    return dataclasses.replace(finding, message=message, allowed=allowed, nearest=nearest)


def _quota_findings(rows: list[object], source: Source, service: str, quota_id: str) -> Iterator[Draft]:
    """Yield findings about the rows of one quota id. They are warnings if the catalogue may be out of date."""
    path: Path = ("limits", service, quota_id)
    quota = known_quotas().get((service, quota_id))
    mappings = [(index, row) for index, row in enumerate(rows) if isinstance(row, dict)]
    if mappings and quota is None and (nearest := misspelt_quota_id(service, quota_id)):
        message = f"{quota_id!r} is not a quota id in the catalogue, so nothing is charged to it"
        allowed = f"quota ids of {service}"
        yield finding(source, path, message, rule=QUOTA_SNAPSHOT, allowed=allowed, nearest=nearest, severity="warning")
    first_rows: dict[object, Path] = {}  # by dimensions
    for index, fields in mappings:
        row_path = (*path, index)
        limit, rejected = _limit_of(fields)
        if rejected <= {"limit", "unit"}:  # its dimensions are as written
            first_row = first_rows.setdefault(limit.dimensions, row_path)
            if first_row != row_path:
                message = f"has the same dimensions as line {source.position(first_row).line}"
                yield finding(source, row_path, message, rule=QUOTA_SNAPSHOT, allowed="one limit for each")
        yield from _unit_findings(limit, quota, source, row_path)
        yield from _place_findings(limit, quota, source, row_path)
        if quota:
            yield from _dimension_findings(limit, quota, source, row_path)


_STAND_INS = {"limit": 1, "region": OTHERS, "zone": OTHERS}  # these have no findings


def _limit_of(fields: Mapping[str, Any]) -> tuple[Limit, set[str]]:
    """Return a row as a limit, with substitutes for the fields that the model rejects, and the names of those fields.

    The rejected fields already have findings. With the substitutes, the other fields can be checked.
    """
    try:
        return Limit.model_validate(fields), set()
    except ValidationError as error:
        rejected = {str(detail["loc"][0]) for detail in error.errors()}
    valid = {name: value for name, value in fields.items() if name not in rejected}
    stand_ins = {name: value for name, value in _STAND_INS.items() if name in rejected}
    return Limit.model_validate({**valid, **stand_ins}), rejected


def _unit_findings(row: Limit, quota: KnownQuota | None, source: Source, path: Path) -> Iterator[Draft]:
    """Yield a finding if a row's unit is not the unit of its quota.

    If the catalogue does not have the quota id, any unit in the catalogue is accepted.
    """
    units_of_quota = frozenset({quota.unit}) if quota else units()
    if row.unit is None or row.unit in units_of_quota:
        return
    expected = f"the unit of {path[-2]}" if quota else "a unit of quotas"
    nearest = quota.unit if quota else find_nearest(row.unit, units_of_quota)
    message = f"{row.unit!r} is not {expected}"
    yield finding(
        source, (*path, "unit"), message, rule=QUOTA_SNAPSHOT, allowed=enumeration(units_of_quota), nearest=nearest
    )


def _dimension_findings(row: Limit, quota: KnownQuota, source: Source, path: Path) -> Iterator[Draft]:
    """Yield findings about dimensions that the quota does not have according to the catalogue."""
    for name in row.other_dimensions:
        if name not in quota.dimensions:
            message = f"{name!r} is not a dimension of {path[-2]} in the catalogue, so nothing is charged to this row"
            allowed = enumeration(quota.dimensions) or "no dimension except the location"
            nearest = find_nearest(name, {*quota.dimensions, quota.per} - {"project"})
            yield finding(
                source,
                (*path, name),
                message,
                rule=QUOTA_SNAPSHOT,
                allowed=allowed,
                nearest=nearest,
                severity="warning",
            )


def _place_findings(row: Limit, quota: KnownQuota | None, source: Source, path: Path) -> Iterator[Draft]:
    places = {name: place for name, place in (("region", row.region), ("zone", row.zone)) if place is not None}
    for name, place in places.items():
        names = REGIONS if name == "region" else ZONES
        if quota and quota.per != name:
            counted = "for the whole project" if quota.per == "project" else f"per {quota.per}"
            message = f"{path[-2]} is counted {counted}"
            yield finding(source, (*path, name), message, rule=QUOTA_SNAPSHOT, allowed=f"no {name} here")
        elif place not in (OTHERS, *names):
            message = f"{place!r} is not a {name} in the catalogue"
            allowed = f"{name}s as of {LOCATIONS_READ}, or {OTHERS}"
            nearest = find_nearest(place, names)
            yield finding(
                source,
                (*path, name),
                message,
                rule=QUOTA_SNAPSHOT,
                allowed=allowed,
                nearest=nearest,
                severity="warning",
            )
    if quota and quota.per != "project" and not places and row.limit > 0:
        message = f"has no {quota.per}, but {path[-2]} is counted per {quota.per}"
        allowed = f"a {quota.per}, or {OTHERS} for each {quota.per} without a row of its own"
        yield finding(source, path, message, rule=QUOTA_SNAPSHOT, allowed=allowed, nearest=f"{quota.per}: {OTHERS}")


SCHEMA_FILE = f"{FOLDER}/quotas.schema.json"
SCHEMA_LINE = "# yaml-language-server: $schema=./quotas.schema.json"

_HEAD = f"""\
{SCHEMA_LINE}
# Placeholders: the amounts that stacks and jobs need. The limits of the project were not read from Google Cloud, so
# nothing is compared with these amounts. `training-platform quota pull` writes the limits to this file. If you add them
# here by hand, remove the line `placeholder`.
"""
_UNMARKED_HEAD = f"{SCHEMA_LINE}\n# Written without looking at Google Cloud:"  # before files had a mark
_MEANINGS = {
    "region": f"The region of the limit; {OTHERS}: every region without a row of its own.",
    "zone": f"The zone of the limit; {OTHERS}: every zone without a row of its own.",
    "unit": "Unit of the limit. `check` compares it with the unit in the catalogue.",
}


def snapshot_schema() -> dict[str, Any]:
    """Return the schema of ``stacks/quotas/<project>.yaml``."""
    schema = file_schema(SnapshotFile, "Limits of a project")
    row = schema["$defs"]["Limit"]["properties"]
    for name in ("region", "zone", "unit"):  # missing, or not empty: the model rejects null
        row[name] = {"type": "string", "minLength": 1, "description": _MEANINGS[name]}
    for name, place in (("region", "us-central1"), ("zone", "us-central1-a")):
        row[name]["examples"] = [place]
    row["unit"]["enum"] = sorted(units())
    limits = schema["properties"]["limits"]
    for mapping in (limits, *limits["patternProperties"].values()):
        mapping["additionalProperties"] = False
    return schema


def unmarked(text: str) -> bool:
    """Return True if the snapshot comes from an early version of `quota init`, which did not mark placeholders."""
    return text.startswith(_UNMARKED_HEAD)


def placeholder_text(project: str, needs: Mapping[QuotaKey, float], today: date, old: Snapshot | None = None) -> str:
    """Return the text of a placeholder snapshot whose values are the needs. Larger values in ``old`` are kept."""
    services: dict[str, dict[str, dict[object, Limit]]] = defaultdict(lambda: defaultdict(dict))
    if old:
        for service, ids in old.limits.items():
            for quota_id, rows in ids.items():
                services[service][quota_id] = {row.dimensions: row for row in rows}
    for key, amount in needs.items():
        before = old.amount(key) if old else None
        if before is None or before < amount:
            place = {"zone" if key.location in ZONES else "region": key.location} if key.location else {}
            row = Limit.model_validate({"limit": math.ceil(amount), **place, **dict(key.dimensions)})
            services[key.service][key.quota_id][row.dimensions] = row
    text = f'{_HEAD}project: {project}\ntaken: "{today}"\nplaceholder: true\nlimits:\n'
    for service, quotas in sorted(services.items()):
        text += f"  {service}:\n"
        for quota_id, by_dimensions in sorted(quotas.items()):
            fields = (row.model_dump(exclude_none=True).items() for row in by_dimensions.values())
            lines = sorted(f"      - {{{', '.join(f'{name}: {value}' for name, value in row)}}}\n" for row in fields)
            text += f"    {quota_id}:\n{''.join(lines)}"
    return text
