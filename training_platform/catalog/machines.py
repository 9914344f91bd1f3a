"""Rows of machine types from a group of a data file (what its machines share, and rows or sizes), and their checks.

A group with ``sizes`` makes one row for every number of vCPUs: the name of the group, a dash and the number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date

from training_platform.catalog.locations import is_zone
from training_platform.catalog.reading import Place, Plain, build, known_keys, mapping
from training_platform.catalog.shapes import chips_in
from training_platform.catalog.types import MachineType


@dataclass(frozen=True, kw_only=True)
class UnitPrices:
    """List prices in USD per hour of one vCPU and one GB of RAM, on demand and reserved, in one region."""

    usd_per_vcpu: float
    usd_per_gb: float
    region: str
    read: date
    source: str


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Numbers of vCPUs in which a CPU family comes, those of them that ``vertex`` takes, and GB of RAM per vCPU."""

    vcpus: tuple[int, ...]
    gb_per_vcpu: float
    price: UnitPrices | None = None
    vertex: tuple[int, ...] = ()


def rows_of(group: str, row: object, place: Place) -> Iterator[tuple[str, Plain]]:
    """Yield name and fields of each machine type in a group, as plain values."""
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
    for name, own in mapping(plain["rows"], place.at("rows")).items():
        yield name, _merged(shared, mapping(own, place.at("rows").at(name)))


def check_machine(machine: MachineType, disk_types: Collection[str], place: Place) -> None:
    """Refuse a row whose parts contradict each other, which no type can tell; raises ``CatalogError``."""
    accelerator, alone = machine.accelerator, machine.single_host
    rule = accelerator.topologies if accelerator is not None else None
    for field, right in {
        "kind": machine.kind == (accelerator.kind if accelerator is not None else "cpu"),
        "chips": (machine.chips > 0) == (accelerator is not None),
        "boot_disk_types": bool(machine.boot_disk_types) and set(machine.boot_disk_types) <= set(disk_types),
        "zones": all(map(is_zone, machine.zones)),
        "missing_zones": all(map(is_zone, machine.missing_zones)) and not (machine.zones and machine.missing_zones),
        "cpu_quota": set(machine.cpu_quota) <= set(machine.capacities),
        "single_host": alone is None or (rule is not None and rule.legal(alone) and chips_in(alone) == machine.chips),
        "multi_host": rule is not None or not machine.multi_host,
        "allowlisted": set(machine.allowlisted) <= set(machine.capacities),
        "rdma_nics": machine.rdma_nics < machine.nics,
    }.items():
        if not right:
            raise place.at(field).error(f"{getattr(machine, field)!r} names nothing, or does not fit the row")


def _sized(sizes: Sizes, vcpus: int) -> Plain:
    memory_gb = vcpus * sizes.gb_per_vcpu
    price = None
    if sizes.price is not None:
        usd = round(vcpus * sizes.price.usd_per_vcpu + memory_gb * sizes.price.usd_per_gb, 6)
        # A reservation is billed as what it reserves (Compute docs, reservations overview, read 2026-11-21).
        by_capacity = {capacity: {sizes.price.region: usd} for capacity in ("on-demand", "reservation")}
        price = {"unit": "vm", "read": sizes.price.read, "source": sizes.price.source, "usd": by_capacity}
    without: Plain = {"accelerator": None, "chips": 0, "zones": []}
    return {**without, "vcpus": vcpus, "memory_gb": memory_gb, "price": price, "vertex": vcpus in sizes.vertex}


def _merged(shared: Plain, own: Plain) -> Plain:
    """Return what a row says over what its group shares, key by key down to lists and plain values."""
    merged = dict(shared)
    for key, value in own.items():
        below = shared.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
