"""Rows of the catalogue as fact sheets for people: fields with their units, and marks on unverified facts.

A sheet is generated from the fields of the row's type, so a new field or family appears without a change here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from training_platform.catalog import loader
from training_platform.catalog.provisioning_models import further_ways
from training_platform.catalog.reading import table
from training_platform.catalog.topologies import SHOWN, hosts, legal_topologies
from training_platform.catalog.types import Band, MachineType, Price, Quota, QuotaId

Value = str | int | float | bool | list[str] | None

KINDS: Mapping[str, str] = {
    "machine type": "machine_types",
    "accelerator": "accelerators",
    "disk type": "disk_types",
    "Filestore tier": "filestore_tiers",
    "Managed Lustre tier": "lustre_tiers",
    "chart": "charts",
    "release": "releases",
    "image": "images",
    "model server": "model_servers",
}
"""The kinds of rows, and the attribute of the catalogue that contains each kind."""

_SUFFIXES = {
    "_gb": "GB",
    "_gib": "GiB",
    "_gbps": "Gbps",
    "_tflops": "TFLOPS",
    "_nodes": "nodes",
    "_nics": "NICs",
    "_mtu": "bytes",
    "share_name_max": "characters",
}
_UNITS = {
    "vcpus": "vCPUs",
    "nics": "NICs",
    "local_ssd.bundled": "partitions",
    "local_ssd.allowed": "partitions",
    "bands": "GiB",
    "disputed_bands": "GiB",
    "reserved_prefixes": "bits of the address block's prefix",
    "partitions": "instances per GPU",
    "accelerator.partitions": "instances per GPU",
}
_OWN = ("name", "source", "calendar")  # fields that the sheet shows separately; the last one is among ``ways``


class Fact(NamedTuple):
    """One fact of a row: the dotted field name, its value, its unit, and whether it has no primary source."""

    field: str
    value: Value
    unit: str = ""
    unverified: bool = False


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """All facts that the catalogue has about one name."""

    kind: str
    name: str
    facts: tuple[Fact, ...]
    source: str

    def value(self, field: str) -> Value:
        """Return the value of a field, or None if the row does not have the field."""
        return next((fact.value for fact in self.facts if fact.field == field), None)

    @property
    def unverified(self) -> tuple[str, ...]:
        """The fields that have no primary source or on which the sources disagree."""
        return tuple(fact.field for fact in self.facts if fact.unverified)


def sheets(catalog: loader.Catalog | None = None) -> list[Sheet]:
    """Return a sheet for every row of every kind, in the order of the data files."""
    whole = catalog or loader.default()
    quotas = {quota.id: quota for quota in whole.quotas.values()}
    facts = _FactWalk(quotas)
    return [
        Sheet(
            kind=kind,
            name=name,
            facts=(*facts.of(row), *_of_machine(row)),
            source=row.source,
        )
        for kind, rows in KINDS.items()
        for name, row in getattr(whole, rows).items()
    ]


class Decision(NamedTuple):
    """How to verify a fact that has no primary source: a command and what it shows, or why there is no command."""

    command: str = ""
    says: str = ""
    reason: str = ""

    def __str__(self) -> str:
        """Return the decision as a sentence."""
        return f"`{self.command}` shows {self.says}" if self.command else f"no command: {self.reason}"


def decision(kind: str, field: str) -> Decision | None:
    """Return how to verify a fact according to ``deciding.yaml``, or None if the file does not mention it."""
    for row in table(__file__, "deciding.yaml"):
        if any(fnmatchcase(f"{kind} {field}", pattern) for pattern in row["facts"]):
            return Decision(**{key: " ".join(row[key].split()) for key in Decision._fields if key in row})
    return None


def in_code() -> Iterator[tuple[str, str, Decision]]:
    """Yield the facts that are marked as unverified in code, each with its file and how to verify it."""
    for file, rows in table(__file__, "deciding-code.yaml").items():
        for row in rows:
            yield file, row["fact"], Decision(**{key: row[key] for key in Decision._fields if key in row})


def undecided(catalog: loader.Catalog | None = None) -> dict[tuple[str, str], list[str]]:
    """Return, for each unverified fact, the names of the rows that have it, keyed by kind and field."""
    names: dict[tuple[str, str], list[str]] = {}
    for sheet in sheets(catalog):
        for field in sheet.unverified:
            names.setdefault((sheet.kind, field), []).append(sheet.name)
    return names


def _of_machine(row: Any) -> Iterator[Fact]:
    """Yield facts that are derived from a machine's fields: slices with their VMs, and further provisioning models."""
    if not isinstance(row, MachineType):
        return
    if shapes := list(legal_topologies(row)):
        first = [f"{shape} of {hosts(row, shape)}" for shape in shapes[:SHOWN]]
        unlisted_count = len(shapes) - SHOWN
        largest = f"{unlisted_count} more up to {shapes[-1]} of {hosts(row, shapes[-1])}"
        yield Fact("slices", first + ([largest] if unlisted_count > 0 else []), unit="VMs")
    for way in further_ways(row):  # their quota is not counted separately
        yield Fact(
            f"ways.{way.name}", way.offered, unit="(on request)" if way.on_request else "", unverified=way.unverified
        )


class _FactWalk:
    """Walks a row and the rows to which it refers. A mark as unverified applies to everything below its field."""

    def __init__(self, quotas: Mapping[QuotaId, Quota]) -> None:
        self._quotas = quotas

    def of(self, row: Any, below: str = "", marks: Iterable[str] = ()) -> Iterator[Fact]:
        all_marks = {f"{below}{name}" for name in getattr(row, "unverified", ())} | set(marks)
        for field in fields(row):
            if field.name != "unverified" and (below or field.name not in _OWN):
                yield from self._value(f"{below}{field.name}", getattr(row, field.name), all_marks, row)

    def _value(self, path: str, value: Any, marks: set[str], row: Any) -> Iterator[Fact]:
        if isinstance(value, QuotaId):
            quota = self._quotas.get(value)
            dimensions = "".join(f" {name}={part}" for name, part in value.dimensions)
            unverified = _marked(path, marks) or bool(quota and quota.unverified)
            text = f"{value.service} {value.quota_id}{dimensions}"
            yield Fact(path, text, unit=f"({value.unit} per {value.per})", unverified=unverified)
        elif is_dataclass(value):
            yield from self.of(value, f"{path}.", marks)
        elif isinstance(value, dict) and value:
            for key, part in value.items():
                yield from self._value(f"{path}.{key}", part, marks, row)
        else:
            yield Fact(path, _plain(value), unit=_unit(path, value, row), unverified=_marked(path, marks))
            if isinstance(value, tuple):
                marked_items = [item for item in value if f"{path}.{item}" in marks]
                yield from (Fact(f"{path}.{item}", True, unverified=True) for item in marked_items)


def _marked(path: str, marks: Iterable[str]) -> bool:
    """Return True if a field or one that contains it is marked; the mark ``price.spot`` covers all spot prices."""
    plain = path.replace("price.usd.", "price.")
    return any(name == mark or name.startswith(f"{mark}.") for mark in marks for name in (path, plain))


def _unit(path: str, value: Any, row: Any) -> str:
    if value is None or value in ((), {}) or isinstance(value, bool):
        return ""
    if isinstance(row, Price) and ".usd." in path:
        return f"USD per {row.unit} and hour"
    if path == "chips":
        return "chips" if row.kind == "tpu" else "GPUs"
    for prefix, unit in _UNITS.items():
        if path == prefix or path.startswith(f"{prefix}."):
            return unit
    name = path.rpartition(".")[2]
    return next((unit for suffix, unit in _SUFFIXES.items() if name.endswith(suffix)), "")


def _plain(value: Any) -> Value:
    if isinstance(value, (tuple, frozenset)):
        bands = {item: "{} to {} in steps of {}".format(*item) for item in value if isinstance(item, Band)}
        return [bands.get(item) or str(item) for item in value]
    if isinstance(value, dict):
        return None
    return str(value) if isinstance(value, date) else value
