"""The facts themselves: spot checks against the sources, and what must hold between rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from training_platform.catalog import (
    ACCELERATORS,
    DISK_TYPES,
    MACHINE_TYPES,
    REGIONS,
)
from training_platform.catalog.loader import default
from training_platform.catalog.locations import region_of
from training_platform.catalog.types import MachineType, QuotaId

MACHINES = [pytest.param(machine, id=name) for name, machine in MACHINE_TYPES.items()]
GPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu"]
TPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "tpu"]


def rows() -> Iterator[tuple[str, object]]:
    """Yield every row of the catalogue that has a source, rows inside rows included."""
    catalog = default()
    parts = (
        catalog.quotas, catalog.accelerators, catalog.machine_types, catalog.disk_types, catalog.boot_disk_limits,
        catalog.filestore_tiers, catalog.charts, catalog.images, catalog.model_servers,
        {name: a.vertex for name, a in catalog.accelerators.items() if a.vertex is not None},
        {name: a.attachment for name, a in catalog.accelerators.items() if a.attachment is not None},
        {name: a.price for name, a in catalog.accelerators.items() if a.price is not None},
        {name: m.price for name, m in catalog.machine_types.items() if m.price is not None},
    )  # fmt: skip
    for part in parts:
        yield from part.items()


def has(value: object, path: list[str]) -> bool:
    """Whether a path of fields and keys leads somewhere; a price's capacities and a tuple's items count as keys."""
    if not path:
        return True
    if isinstance(value, QuotaId):
        return path[0] in value._fields
    if is_dataclass(value) and path[0] in {field.name for field in fields(value)}:
        return has(getattr(value, path[0]), path[1:])
    below = getattr(value, "usd", value)
    if isinstance(below, dict):
        return path[0] in below
    return isinstance(value, tuple) and path[0] in value


def test_every_row_says_where_it_was_read() -> None:
    assert [name for name, row in rows() if len(getattr(row, "source", "")) < len("live 2026")] == []


def test_what_is_called_unverified_is_there() -> None:
    astray = [
        (name, path)
        for name, row in rows()
        for path in getattr(row, "unverified", ())
        if not has(getattr(row, "id", row), path.split(".")) and not has(row, path.split("."))
    ]

    # The capacities of a family's machines share one list; a machine without a spot price carries the mark for nothing.
    assert astray == []


@pytest.mark.parametrize(
    ("name", "chips", "vcpus", "memory_gb"),
    [
        ("ct4p-hightpu-4t", 4, 240, 407), ("ct5lp-hightpu-1t", 1, 24, 48), ("ct5lp-hightpu-8t", 8, 224, 384),
        ("a2-highgpu-1g", 1, 12, 85), ("a2-highgpu-8g", 8, 96, 680), ("a2-megagpu-16g", 16, 96, 1360),
        ("a2-ultragpu-2g", 2, 24, 340), ("a2-ultragpu-8g", 8, 96, 1360), ("a3-highgpu-1g", 1, 26, 234),
        ("a3-highgpu-4g", 4, 104, 936), ("a3-highgpu-8g", 8, 208, 1872), ("a3-megagpu-8g", 8, 208, 1872),
        ("ct5l-hightpu-8t", 8, 224, 384), ("ct5p-hightpu-4t", 4, 208, 448), ("ct6e-standard-1t", 1, 44, 176),
        ("ct6e-standard-4t", 4, 180, 720), ("ct6e-standard-8t", 8, 180, 1440), ("tpu7x-standard-1t", 1, 56, 240),
        ("tpu7x-standard-4t", 4, 224, 960), ("a3-edgegpu-8g", 8, 208, 1872), ("a3-ultragpu-8g", 8, 224, 2952),
        ("a4-highgpu-8g", 8, 224, 3968), ("a4x-highgpu-4g", 4, 140, 884), ("g2-standard-4", 1, 4, 16),
        ("g2-standard-24", 2, 24, 96), ("g2-standard-32", 1, 32, 128), ("g2-standard-48", 4, 48, 192),
        ("g2-standard-96", 8, 96, 384), ("g4-standard-48", 1, 48, 180), ("g4-standard-96", 2, 96, 360),
        ("g4-standard-192", 4, 192, 720), ("g4-standard-384", 8, 384, 1440),
        ("n1-standard-4", 0, 4, 4 * 3.75), ("n1-highmem-16", 0, 16, 16 * 6.5), ("e2-standard-8", 0, 8, 8 * 4),
        ("n2-highmem-80", 0, 80, 80 * 8), ("n2d-standard-224", 0, 224, 224 * 4),
    ],
)  # fmt: skip
def test_a_machine_has_the_size_of_its_source(name: str, chips: int, vcpus: int, memory_gb: float) -> None:
    machine = MACHINE_TYPES[name]

    assert (machine.chips, machine.vcpus, machine.memory_gb) == (chips, vcpus, memory_gb)


def test_the_families_are_complete() -> None:
    by_accelerator = {name: {m.name for m in GPUS + TPUS if m.accelerator == a} for name, a in ACCELERATORS.items()}

    assert by_accelerator == {
        "tpu-v4": {"ct4p-hightpu-4t"},
        "tpu-v5e": {f"ct5lp-hightpu-{chips}t" for chips in (1, 4, 8)},
        "tpu-v5e-device": {f"ct5l-hightpu-{chips}t" for chips in (1, 4, 8)},
        "tpu-v5p": {"ct5p-hightpu-4t"},
        "tpu-v6e": {f"ct6e-standard-{chips}t" for chips in (1, 4, 8)},
        "tpu-7x": {f"tpu7x-standard-{chips}t" for chips in (1, 4)},
        "t4": set(),
        "v100": set(),
        "l4": {f"g2-standard-{vcpus}" for vcpus in (4, 8, 12, 16, 24, 32, 48, 96)},
        "a100-40": {*(f"a2-highgpu-{gpus}g" for gpus in (1, 2, 4, 8)), "a2-megagpu-16g"},
        "a100-80": {f"a2-ultragpu-{gpus}g" for gpus in (1, 2, 4, 8)},
        "h100": {*(f"a3-highgpu-{gpus}g" for gpus in (1, 2, 4, 8)), "a3-edgegpu-8g"},
        "h100-mega": {"a3-megagpu-8g"},
        "h200": {"a3-ultragpu-8g"},
        "b200": {"a4-highgpu-8g"},
        "gb200": {"a4x-highgpu-4g"},
        "rtx-pro-6000": {f"g4-standard-{vcpus}" for vcpus in (48, 96, 192, 384)},
    }
    prefixes = {name.rpartition("-")[0] for name, machine in MACHINE_TYPES.items() if machine.kind == "cpu"}
    assert prefixes == {"n1-highcpu"} | {
        f"{family}-{shape}" for family in ("e2", "n1", "n2", "n2d") for shape in ("standard", "highmem")
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_local_ssd_is_bundled_or_offered_and_charged_either_way(machine: MachineType) -> None:
    ssd = machine.local_ssd

    assert not (ssd.bundled and ssd.allowed)
    assert (ssd.quota is not None) == bool(ssd.bundled or ssd.allowed)


@pytest.mark.parametrize(
    ("name", "gib"),
    [("a2-ultragpu-8g", 3000), ("a3-edgegpu-8g", 6000), ("a3-ultragpu-8g", 12_000), ("a4-highgpu-8g", 12_000),
     ("a4x-highgpu-4g", 12_000)],
)  # fmt: skip
def test_bundled_partitions_add_up_to_the_local_ssd_of_the_source(name: str, gib: int) -> None:
    ssd = MACHINE_TYPES[name].local_ssd

    assert ssd.bundled * ssd.partition_gib == gib


@pytest.mark.parametrize(
    ("name", "bundled", "allowed"),
    [
        ("a2-highgpu-1g", 0, (1, 2, 4, 8)), ("a2-highgpu-2g", 0, (2, 4, 8)), ("a2-highgpu-4g", 0, (4, 8)),
        ("a2-highgpu-8g", 0, (8,)), ("a2-megagpu-16g", 0, (8,)), ("a2-ultragpu-1g", 1, ()), ("a2-ultragpu-4g", 4, ()),
        ("a3-highgpu-1g", 750 // 375, ()), ("a3-highgpu-2g", 1500 // 375, ()), ("a3-highgpu-4g", 3000 // 375, ()),
        ("a3-highgpu-8g", 6000 // 375, ()), ("a3-megagpu-8g", 6000 // 375, ()), ("a4x-highgpu-4g", 4, ()),
        ("g2-standard-24", 0, (2,)), ("g2-standard-32", 0, (1,)), ("g4-standard-384", 0, (32,)),
    ],
)  # fmt: skip
def test_a_machine_has_the_local_ssd_of_its_source(name: str, bundled: int, allowed: tuple[int, ...]) -> None:
    assert (MACHINE_TYPES[name].local_ssd.bundled, MACHINE_TYPES[name].local_ssd.allowed) == (bundled, allowed)


def test_boot_disks_are_those_the_machine_takes_and_the_default_comes_first() -> None:
    assert MACHINE_TYPES["ct5lp-hightpu-4t"].boot_disk_types == ("pd-balanced", "pd-ssd")
    assert MACHINE_TYPES["a2-highgpu-8g"].boot_disk_types == ("pd-standard", "pd-balanced", "pd-ssd")
    assert MACHINE_TYPES["a3-megagpu-8g"].boot_disk_types == ("pd-balanced", "pd-ssd", "hyperdisk-balanced")
    assert "hyperdisk-balanced" in MACHINE_TYPES["ct4p-hightpu-4t"].boot_disk_types
    assert MACHINE_TYPES["ct5p-hightpu-4t"].boot_disk_types == ("pd-balanced", "pd-ssd")
    assert MACHINE_TYPES["g2-standard-8"].boot_disk_types == ("pd-balanced", "pd-ssd")
    hyperdisk_only = {m.name for m in GPUS + TPUS if m.boot_disk_types == ("hyperdisk-balanced",)}
    assert {name.partition("-")[0] for name in hyperdisk_only} == {"a3", "a4", "a4x", "ct6e", "g4", "tpu7x"}
    assert {name for name in hyperdisk_only if name.startswith("a3-")} == {"a3-ultragpu-8g"}
    assert all(DISK_TYPES[disk].gke_boot for machine in MACHINE_TYPES.values() for disk in machine.boot_disk_types)


def test_e2_is_missing_beside_tpu_v4_and_n2_is_not() -> None:
    assert MACHINE_TYPES["ct4p-hightpu-4t"].zones == ("us-central2-b",)
    assert MACHINE_TYPES["e2-standard-4"].missing_zones == ("us-central2-b",)
    assert MACHINE_TYPES["n2-standard-4"].missing_zones == ()


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("tpu7x-standard-4t", "us-central1-ai1a"), ("ct6e-standard-4t", "us-south1-ai1b"),
        ("ct5p-hightpu-4t", "us-east5-a"), ("a3-ultragpu-8g", "us-west1-c"), ("a4-highgpu-8g", "us-west3-c"),
        ("a3-edgegpu-8g", "northamerica-northeast2-c"), ("g2-standard-4", "me-central2-a"),
    ],
)  # fmt: skip
def test_a_machine_is_in_the_zones_of_its_source(name: str, zone: str) -> None:
    assert zone in MACHINE_TYPES[name].zones


def test_machines_without_known_zones_say_so_and_regions_without_zones_are_kept() -> None:
    assert all("zones" in m.unverified for m in GPUS + TPUS if not m.zones)
    assert {m.name.partition("-")[0] for m in GPUS + TPUS if not m.zones} == {"a4x", "ct5l", "g4"}
    assert "us-east1" in MACHINE_TYPES["a4x-highgpu-4g"].regions
    for machine in GPUS + TPUS:
        assert set(machine.regions) <= REGIONS
        assert set(machine.regions).isdisjoint(map(region_of, machine.zones))
