"""The rows of a snapshot, and what can be wrong with one beside its shape: no quota of the catalogue could have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from itertools import groupby
from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from training_platform.catalog import LOCATIONS_READ, REGIONS, ZONES
from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.section import QUOTA_ID, SERVICE, ProjectId, Section, enumeration
from training_platform.config.reading.source import Source
from training_platform.quota.keys import QuotaKey
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
