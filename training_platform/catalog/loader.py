"""Loads the whole catalogue from a folder of data files and checks it.

A data file contains any of the sections below. The rows of all files are joined, and each row may be written only
once::

    quotas:            name -> fields of QuotaId (dimensions as a mapping), source, unverified
    accelerators:      name -> fields of Accelerator; a quota is written as its name
    machine_types:     group -> shared (fields of every row), and rows (name -> fields of MachineType) or sizes
    disk_types, boot_disk_limits, filestore_tiers, lustre_tiers, charts, chart_ports, images, model_servers,
    releases:          name -> fields of the type
    service_prices:    name -> fields of ServicePrice
    locations:         read, source, zones (region -> last parts of its zones' names)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, TypeVar, cast

from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.reading import CatalogError, DataPosition, Plain, build, known_keys, mapping, read_file
from training_platform.catalog.types import (
    Accelerator,
    BootDiskLimits,
    CatalogRow,
    Chart,
    ChartPorts,
    DiskType,
    FilestoreTier,
    Image,
    LustreTier,
    MachineType,
    ModelServer,
    Quota,
    QuotaId,
    Release,
    ServicePrice,
    chips_in,
)

T = TypeVar("T")
Rows = dict[str, tuple[object, DataPosition]]
GENERAL = "quotas"  # the file of quotas that no family owns
_PLAIN: Mapping[str, type[CatalogRow]] = {
    "boot_disk_limits": BootDiskLimits,
    "chart_ports": ChartPorts,
    "charts": Chart,
    "disk_types": DiskType,
    "filestore_tiers": FilestoreTier,
    "images": Image,
    "lustre_tiers": LustreTier,
    "model_servers": ModelServer,
    "releases": Release,
    "service_prices": ServicePrice,
}
"""The sections whose rows are converted field by field, with the type of their rows."""
SECTIONS = ("accelerators", "locations", "machine_types", "quotas", *_PLAIN)


class Typed(Mapping[str, T]):
    """The rows of a section, keyed by name. A row is converted to its type at first use, since a command needs few.

    Raises ``CatalogError`` for an invalid row.
    """

    def __init__(self, rows: Rows, typed: Callable[[str, object, DataPosition], T]) -> None:
        self._rows = rows
        self._typed = typed
        self._known: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """Return a row."""
        if name not in self._known:
            self._known[name] = self._typed(name, *self._rows[name])
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        """Whether the section has a row of this name."""
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)


class Catalog:
    """All rows of a folder's data files, keyed by name."""

    boot_disk_limits: Mapping[str, BootDiskLimits]
    chart_ports: Mapping[str, ChartPorts]
    charts: Mapping[str, Chart]
    disk_types: Mapping[str, DiskType]
    filestore_tiers: Mapping[str, FilestoreTier]
    images: Mapping[str, Image]
    lustre_tiers: Mapping[str, LustreTier]
    model_servers: Mapping[str, ModelServer]
    releases: Mapping[str, Release]
    service_prices: Mapping[str, ServicePrice]

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sections = _sections(folder)
        self._references: dict[type, Mapping[str, object]] = {}
        self.quotas: Mapping[str, Quota] = Typed(self._sections["quotas"], _quota)
        self._references[QuotaId] = Typed(self._sections["quotas"], lambda name, *_: self.quotas[name].id)
        for section, kind in _PLAIN.items():
            setattr(self, section, self._rows(kind, self._sections[section]))
        self.accelerators: Mapping[str, Accelerator] = self._rows(Accelerator, self._sections["accelerators"])
        self._references[Accelerator] = self.accelerators
        self._machines = dict(_machines(self._sections["machine_types"]))
        self.machine_types: Mapping[str, MachineType] = Typed(self._machines, self._machine)

    def _rows(self, kind: type[T], rows: Rows) -> Typed[T]:
        return Typed(rows, lambda name, row, place: build(kind, _named(name, row, place), place, self._references))

    def _machine(self, name: str, row: object, place: DataPosition) -> MachineType:
        machine = build(MachineType, _named(name, row, place), place, self._references)
        check_machine(machine, self.disk_types, place)
        return machine

    @cached_property
    def general_quotas(self) -> dict[str, QuotaId]:
        """The quotas that belong to no family of accelerators."""
        rows = self._sections["quotas"].items()
        return {name: self.quotas[name].id for name, (_, place) in rows if place.file.stem == GENERAL}

    @cached_property
    def locations_read(self) -> date:
        """The date of the general list of regions and zones."""
        return self._locations.read

    @cached_property
    def zones(self) -> frozenset[str]:
        """The zones of the general list, and all zones that other rows name."""
        zones = {f"{region}-{end}" for region, ends in self._locations.zones.items() for end in ends.split()}
        for machine in self._plain(self._machines):
            zones.update(machine.get("zones", ()), machine.get("missing_zones", ()))
        for accelerator in self._plain(self._sections["accelerators"]):
            zones.update((accelerator.get("attachment") or {}).get("zones", ()))
        return frozenset(zones)

    @cached_property
    def regions(self) -> frozenset[str]:
        """The regions of those zones, and all regions that rows name without a zone."""
        regions = {*self._locations.zones, *map(region_of, self.zones)}
        for machine in self._plain(self._machines):
            regions.update(machine.get("regions", ()))
        for accelerator in self._plain(self._sections["accelerators"]):
            regions.update((accelerator.get("vertex") or {}).get("regions", ()))
        return frozenset(regions)

    @cached_property
    def _locations(self) -> _Locations:
        if not (section := self._sections["locations"]):
            raise CatalogError(f"no file in {self._folder} has the section 'locations'")
        place = DataPosition(next(iter(section.values()))[1].file).at("locations")
        return build(_Locations, {key: row for key, (row, _) in section.items()}, place, {})

    @staticmethod
    def _plain(rows: Rows) -> Iterator[Plain]:
        """Yield rows without converting them to their types. The conversion would take most of the time."""
        return (cast("Plain", row) for row, _ in rows.values())


@dataclass(frozen=True, kw_only=True)
class _QuotaRow:
    service: str
    quota_id: str
    unit: str
    per: Literal["region", "zone", "project"] = "region"
    dimensions: dict[str, str] = field(default_factory=dict)
    source: str
    unverified: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Locations:
    read: date
    source: str
    zones: dict[str, str]


@cache
def default() -> Catalog:
    """Return the catalogue in this package, which is read only once."""
    return Catalog(Path(__file__).parent / "data")


def load(folder: Path) -> Catalog:
    """Read every row of every ``*.yaml`` file in a folder. Raises ``CatalogError`` at the first error."""
    catalog = Catalog(folder)
    for section in SECTIONS:
        if section != "locations":
            dict(getattr(catalog, section))
    _ = catalog.regions
    return catalog


def _quota(name: str, row: object, place: DataPosition) -> Quota:
    written = build(_QuotaRow, row, place, {})
    dimensions = tuple(sorted(written.dimensions.items()))
    key = QuotaId(written.service, written.quota_id, unit=written.unit, per=written.per, dimensions=dimensions)
    return Quota(name=name, id=key, source=written.source, unverified=written.unverified)


def _sections(folder: Path) -> dict[str, Rows]:
    joined: dict[str, Rows] = {section: {} for section in SECTIONS}
    for path in sorted(folder.glob("*.yaml")):
        content = read_file(path)
        known_keys(content, SECTIONS, DataPosition(path))
        for section, rows in content.items():
            for name, row in mapping(rows, DataPosition(path).at(section)).items():
                place = DataPosition(path).at(section).at(name)
                if name in joined[section]:
                    raise place.error(f"stands in {joined[section][name][1].file.name} too")
                joined[section][name] = (row, place)
    return joined


def _named(name: str, row: object, place: DataPosition) -> Plain:
    plain = mapping(row, place)
    if "name" in plain:
        raise place.error("takes its name from its key, so it must not have a key 'name'")
    return {**plain, "name": name}


def _machines(groups: Rows) -> Iterator[tuple[str, tuple[object, DataPosition]]]:
    seen: dict[str, DataPosition] = {}
    for group, (row, place) in groups.items():
        for name, fields in rows_of(group, row, place):
            if name in seen:
                raise place.error(f"{name!r} is also under {'.'.join(seen[name].keys)}")
            seen[name] = place
            yield name, (fields, place.at(name))


@dataclass(frozen=True, kw_only=True)
class UnitPrices:
    """List prices in USD per hour of one vCPU and of one GB of RAM, keyed by region, for on-demand and reserved VMs."""

    usd_per_vcpu: dict[str, float]
    usd_per_gb: dict[str, float]
    read: date
    source: str


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """A CPU family's vCPU counts, which of them Vertex AI accepts (``vertex``), and the GB of RAM per vCPU."""

    vcpus: tuple[int, ...]
    gb_per_vcpu: float
    price: UnitPrices | None = None
    vertex: tuple[int, ...] = ()


def rows_of(group: str, row: object, place: DataPosition) -> Iterator[tuple[str, Plain]]:
    """Yield the name and the fields of each machine type in a group, as plain values."""
    plain = mapping(row, place)
    known_keys(plain, ("shared", "rows", "sizes"), place)
    if ("rows" in plain) == ("sizes" in plain):
        raise place.error("needs either rows or sizes")
    shared = mapping(plain.get("shared", {}), place.at("shared"))
    if "sizes" in plain:
        sizes = build(Sizes, plain["sizes"], place.at("sizes"), {})
        for vcpus in sizes.vcpus:
            yield f"{group}-{vcpus}", {**shared, **_sized(sizes, vcpus)}
        return
    for name, row_values in mapping(plain["rows"], place.at("rows")).items():
        yield name, _merged(shared, mapping(row_values, place.at("rows").at(name)))


def check_machine(machine: MachineType, disk_types: Collection[str], place: DataPosition) -> None:
    """Raise ``CatalogError`` for a row whose parts contradict each other in a way that types cannot detect."""
    accelerator = machine.accelerator
    topology = machine.single_host
    rule = accelerator.topologies if accelerator is not None else None
    for name, right in {
        "kind": machine.kind == (accelerator.kind if accelerator is not None else "cpu"),
        "chips": (machine.chips > 0) == (accelerator is not None),
        "boot_disk_types": bool(machine.boot_disk_types) and set(machine.boot_disk_types) <= set(disk_types),
        "zones": all(map(is_zone, machine.zones)),
        "missing_zones": all(map(is_zone, machine.missing_zones)) and not (machine.zones and machine.missing_zones),
        "cpu_quota": set(machine.cpu_quota) <= set(machine.capacities),
        "single_host": topology is None
        or (rule is not None and rule.legal(topology) and chips_in(topology) == machine.chips),
        "multi_host": rule is not None or not machine.multi_host,
        "allowlisted": set(machine.allowlisted) <= set(machine.capacities),
        "rdma_nics": machine.rdma_nics < machine.nics,
    }.items():
        if not right:
            raise place.at(name).error(f"{getattr(machine, name)!r} does not exist, or contradicts the row")


def _sized(sizes: Sizes, vcpus: int) -> Plain:
    memory_gb = vcpus * sizes.gb_per_vcpu
    price = None
    if sizes.price is not None:
        usd = {
            region: round(vcpus * per_vcpu + memory_gb * sizes.price.usd_per_gb[region], 6)
            for region, per_vcpu in sizes.price.usd_per_vcpu.items()
        }
        # A reservation is billed as what it reserves (Compute docs, reservations overview, read 2026-11-21).
        by_capacity = dict.fromkeys(("on-demand", "reservation"), usd)
        price = {"unit": "vm", "read": sizes.price.read, "source": sizes.price.source, "usd": by_capacity}
    without: Plain = {"accelerator": None, "chips": 0, "zones": []}
    return {**without, "vcpus": vcpus, "memory_gb": memory_gb, "price": price, "vertex": vcpus in sizes.vertex}


def _merged(shared: Plain, overrides: Plain) -> Plain:
    """Return the fields that a group shares, overridden by a row's fields; nested mappings are merged key by key."""
    merged = dict(shared)
    for key, value in overrides.items():
        below = shared.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
