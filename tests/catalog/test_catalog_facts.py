"""The facts themselves: spot checks against the sources, and what must hold between rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import date

import pytest

from modules.catalog import (
    ACCELERATORS,
    DISK_TYPES,
    MACHINE_TYPES,
    REGIONS,
)
from modules.catalog.loader import default
from modules.catalog.types import Accelerator, Capacity, MachineType, QuotaId

MACHINES = [pytest.param(machine, id=name) for name, machine in MACHINE_TYPES.items()]
GPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu"]
TPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "tpu"]


def rows() -> Iterator[tuple[str, object]]:
    """Yield every row of the catalogue that has a source, rows inside rows included."""
    catalog = default()
    parts = (
        catalog.quotas, catalog.accelerators, catalog.machine_types, catalog.disk_types, catalog.boot_disk_limits,
        catalog.filestore_tiers, catalog.charts, catalog.images,
        {name: a.vertex for name, a in catalog.accelerators.items() if a.vertex is not None},
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
        "a100-40": {*(f"a2-highgpu-{gpus}g" for gpus in (1, 2, 4, 8)), "a2-megagpu-16g"},
        "a100-80": {f"a2-ultragpu-{gpus}g" for gpus in (1, 2, 4, 8)},
        "h100": {f"a3-highgpu-{gpus}g" for gpus in (1, 2, 4, 8)},
        "h100-mega": {"a3-megagpu-8g"},
    }
    prefixes = {name.rpartition("-")[0] for name, machine in MACHINE_TYPES.items() if machine.kind == "cpu"}
    assert prefixes == {
        f"{family}-{shape}" for family in ("e2", "n1", "n2", "n2d") for shape in ("standard", "highmem")
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_local_ssd_is_bundled_or_offered_and_charged_either_way(machine: MachineType) -> None:
    ssd = machine.local_ssd

    assert not (ssd.bundled and ssd.allowed)
    assert (ssd.quota is not None) == bool(ssd.bundled or ssd.allowed)


@pytest.mark.parametrize(
    ("name", "bundled", "allowed"),
    [
        ("a2-highgpu-1g", 0, (1, 2, 4, 8)), ("a2-highgpu-2g", 0, (2, 4, 8)), ("a2-highgpu-4g", 0, (4, 8)),
        ("a2-highgpu-8g", 0, (8,)), ("a2-megagpu-16g", 0, (8,)), ("a2-ultragpu-1g", 1, ()), ("a2-ultragpu-4g", 4, ()),
        ("a3-highgpu-1g", 750 // 375, ()), ("a3-highgpu-2g", 1500 // 375, ()), ("a3-highgpu-4g", 3000 // 375, ()),
        ("a3-highgpu-8g", 6000 // 375, ()), ("a3-megagpu-8g", 6000 // 375, ()),
    ],
)  # fmt: skip
def test_a_machine_has_the_local_ssd_of_its_source(name: str, bundled: int, allowed: tuple[int, ...]) -> None:
    assert (MACHINE_TYPES[name].local_ssd.bundled, MACHINE_TYPES[name].local_ssd.allowed) == (bundled, allowed)


@pytest.mark.parametrize(
    ("name", "gpudirect", "nics", "gbps"),
    [("a3-highgpu-8g", "TCPX", 1 + 4, 1000), ("a3-megagpu-8g", "TCPXO", 1 + 8, 1800), ("a3-highgpu-4g", None, 1, 100),
     ("a2-highgpu-8g", None, 1, 100)],
)  # fmt: skip
def test_gpudirect_machines_have_a_nic_more_for_each_of_its_networks(
    name: str, gpudirect: str | None, nics: int, gbps: int
) -> None:
    machine = MACHINE_TYPES[name]

    assert (machine.gpudirect, machine.nics, machine.max_gbps) == (gpudirect, nics, gbps)
    assert bool(machine.gpudirect_minimum_gke) == (gpudirect is not None)


def test_capacities_are_those_that_google_sells() -> None:
    everything: tuple[Capacity, ...] = ("on-demand", "spot", "flex-start", "reservation")

    assert MACHINE_TYPES["a3-highgpu-1g"].capacities == ("spot", "flex-start")
    assert MACHINE_TYPES["ct4p-hightpu-4t"].capacities == ("on-demand", "spot", "reservation")
    assert MACHINE_TYPES["ct5lp-hightpu-4t"].capacities == everything
    assert {MACHINE_TYPES[name].capacities for name in ("a2-megagpu-16g", "a3-highgpu-8g", "a3-megagpu-8g")} == {
        everything
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_flex_start_machines_say_which_gke_they_need(machine: MachineType) -> None:
    assert ("flex-start" in machine.minimum_gke) == ("flex-start" in machine.capacities)


def test_boot_disks_are_those_the_machine_takes_and_the_default_comes_first() -> None:
    assert MACHINE_TYPES["ct5lp-hightpu-4t"].boot_disk_types == ("pd-balanced", "pd-ssd")
    assert MACHINE_TYPES["a2-highgpu-8g"].boot_disk_types == ("pd-standard", "pd-balanced", "pd-ssd")
    assert MACHINE_TYPES["a3-megagpu-8g"].boot_disk_types == ("pd-balanced", "pd-ssd", "hyperdisk-balanced")
    assert "hyperdisk-balanced" in MACHINE_TYPES["ct4p-hightpu-4t"].boot_disk_types
    assert all(DISK_TYPES[disk].gke_boot for machine in MACHINE_TYPES.values() for disk in machine.boot_disk_types)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_price_is_dated_and_for_a_capacity_and_region_that_exist(machine: MachineType) -> None:
    if machine.price is None:
        return
    assert machine.price.read <= date(2026, 11, 21)
    assert set(machine.price.usd) <= set(machine.capacities)
    for by_region in machine.price.usd.values():
        assert by_region
        assert set(by_region) <= REGIONS
        assert all(usd > 0 for usd in by_region.values())
    if "on-demand" in machine.price.usd:
        assert machine.price.usd["reservation"] == machine.price.usd["on-demand"]
        spot = machine.price.usd.get("spot", {})
        assert all(usd < machine.price.usd["on-demand"][region] for region, usd in spot.items())


def test_prices_are_per_chip_for_tpus_and_per_vm_otherwise() -> None:
    assert {machine.price.unit for machine in TPUS if machine.price} == {"chip"}
    v5e, e2 = MACHINE_TYPES["ct5lp-hightpu-8t"].price, MACHINE_TYPES["e2-standard-4"].price
    assert v5e is not None
    assert v5e.usd["on-demand"]["europe-west4"] == 1.56
    assert e2 is not None
    assert e2.unit == "vm"
    assert e2.usd["on-demand"]["us-central1"] == pytest.approx(4 * 0.021811 + 4 * 4 * 0.002923)


def test_partitions_of_a_gpu_fit_into_its_memory() -> None:
    for accelerator in ACCELERATORS.values():
        for size, instances in accelerator.partitions.items():
            memory_gb = int(size.partition(".")[2].removesuffix("gb"))
            assert instances * memory_gb <= accelerator.hbm_gb
    assert ACCELERATORS["h100"].partitions["1g.20gb"] == 4
    assert "1g.20gb" not in ACCELERATORS["a100-80"].partitions
    assert ACCELERATORS["tpu-v5e"].partitions == {}


def test_vertex_names_gpus_by_enum_and_v5e_by_machine_alone() -> None:
    enums = {name: a.vertex.accelerator_type for name, a in ACCELERATORS.items() if a.vertex is not None}

    assert enums == {
        "a100-40": "NVIDIA_TESLA_A100", "a100-80": "NVIDIA_A100_80GB", "h100": "NVIDIA_H100_80GB",
        "h100-mega": "NVIDIA_H100_MEGA_80GB", "tpu-v5e": None,
    }  # fmt: skip
    assert ACCELERATORS["tpu-v4"].vertex is None
    assert "europe-west4" not in vertex_regions("tpu-v5e")
    assert "us-east4" in vertex_regions("a100-80") - vertex_regions("a100-40")


def vertex_regions(name: str) -> set[str]:
    vertex = ACCELERATORS[name].vertex
    return set(vertex.regions) if vertex is not None else set()


@pytest.mark.parametrize("accelerator", [pytest.param(a, id=name) for name, a in ACCELERATORS.items()])
def test_vertex_flex_start_and_its_quota_go_together(accelerator: Accelerator) -> None:
    if accelerator.vertex is not None:
        assert accelerator.vertex.flex_start == ("flex-start" in accelerator.vertex.quotas)
        assert set(accelerator.vertex.regions) <= REGIONS


def test_vertex_takes_only_machines_that_it_names() -> None:
    assert all(m.accelerator is not None and m.accelerator.vertex is not None for m in GPUS + TPUS if m.vertex)
    assert {m.name for m in GPUS + TPUS if not m.vertex} == {"ct4p-hightpu-4t"}
    assert {name for name in MACHINE_TYPES if name.startswith("e2-standard") and MACHINE_TYPES[name].vertex} == {
        f"e2-standard-{vcpus}" for vcpus in (4, 8, 16, 32)
    }
    assert not any(machine.vertex for name, machine in MACHINE_TYPES.items() if name.startswith("n2d-"))
    assert all(m.vertex_cpu_quota for m in MACHINE_TYPES.values() if m.vertex and m.kind == "cpu")


def test_e2_is_missing_beside_tpu_v4_and_n2_is_not() -> None:
    assert MACHINE_TYPES["ct4p-hightpu-4t"].zones == ("us-central2-b",)
    assert MACHINE_TYPES["e2-standard-4"].missing_zones == ("us-central2-b",)
    assert MACHINE_TYPES["n2-standard-4"].missing_zones == ()
