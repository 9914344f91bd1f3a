"""Facts of the catalogue that must agree with each other; the data files have them with their sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from training_platform.catalog import ACCELERATORS, DISK_TYPES, MACHINE_TYPES, QUOTAS, REGIONS
from training_platform.catalog.loader import default
from training_platform.catalog.locations import region_of
from training_platform.catalog.types import MachineType, QuotaId

every_machine = pytest.mark.parametrize("machine", MACHINE_TYPES.values(), ids=MACHINE_TYPES)
ACCELERATED = [machine for machine in MACHINE_TYPES.values() if machine.accelerator is not None]


def rows() -> Iterator[tuple[str, object]]:
    """Yield every row of the catalogue that has a source, rows inside rows included."""
    catalog = default()
    parts = (
        catalog.quotas, catalog.accelerators, catalog.machine_types, catalog.disk_types, catalog.boot_disk_limits,
        catalog.filestore_tiers, catalog.charts, catalog.chart_ports, catalog.releases, catalog.images,
        catalog.model_servers,
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


def test_what_is_called_unverified_exists() -> None:
    astray = [
        (name, path)
        for name, row in rows()
        for path in getattr(row, "unverified", ())
        if not has(getattr(row, "id", row), path.split(".")) and not has(row, path.split("."))
    ]

    # The capacities of a family's machines share one list; a machine without a spot price carries the mark for nothing.
    assert astray == []


@every_machine
def test_local_ssd_is_bundled_or_offered_and_charged_either_way(machine: MachineType) -> None:
    ssd = machine.local_ssd

    assert not (ssd.bundled and ssd.allowed)
    assert (ssd.quota is not None) == bool(ssd.bundled or ssd.allowed)


@every_machine
def test_a_boot_disk_of_a_machine_is_one_that_gke_boots_from(machine: MachineType) -> None:
    assert all(DISK_TYPES[disk].gke_boot for disk in machine.boot_disk_types)


@pytest.mark.parametrize("machine", ACCELERATED, ids=lambda machine: machine.name)
def test_a_machine_has_zones_or_says_that_they_are_unverified_and_regions_are_those_without_a_zone(
    machine: MachineType,
) -> None:
    assert machine.zones or "zones" in machine.unverified
    assert set(machine.regions) <= REGIONS
    assert set(machine.regions).isdisjoint(map(region_of, machine.zones))


@every_machine
def test_vertex_takes_a_machine_with_a_quota_for_it(machine: MachineType) -> None:
    if machine.vertex:
        accelerator = machine.accelerator
        assert machine.vertex_cpu_quota if accelerator is None else accelerator.vertex is not None


@every_machine
def test_lowest_versions_are_versions_of_uses_that_the_machine_has(machine: MachineType) -> None:
    uses = {"flex-start", "pool", "autopilot", "auto-provisioning", "multislice", "dranet"}

    assert set(machine.minimum_gke) <= uses
    assert ("flex-start" in machine.minimum_gke) == ("flex-start" in machine.capacities)
    versions = (*machine.minimum_gke.values(), *machine.gpudirect_minimum_gke)
    assert [version for version in versions if not re.fullmatch(r"1\.\d+\.\d+(-gke\.\d+)?", version)] == []


@every_machine
def test_every_capacity_of_a_machine_is_charged_and_reserved_tpus_are_not(machine: MachineType) -> None:
    charged = set(machine.cpu_quota if machine.accelerator is None else machine.accelerator.quotas)
    free = {"reservation"} if machine.kind == "tpu" else set()

    assert set(machine.capacities) - charged == free & set(machine.capacities)
    assert charged.isdisjoint(free)


def test_every_quota_that_a_row_charges_is_known() -> None:
    charged = {quota for a in ACCELERATORS.values() for quota in (*a.quotas.values(), *a.fallback.values())}
    charged |= {quota for a in ACCELERATORS.values() if a.vertex for quota in a.vertex.quotas.values()}
    for machine in MACHINE_TYPES.values():
        charged |= {*machine.cpu_quota.values(), *machine.vertex_cpu_quota.values()}
        charged |= {machine.local_ssd.quota} if machine.local_ssd.quota else set()

    assert charged <= set(QUOTAS)


def test_the_charts_that_the_platform_installs_work_together() -> None:
    catalog = default()
    for row in catalog.releases.values():
        assert row.breaks.keys() <= row.goes_with.keys() <= catalog.charts.keys()
        for name, minors in row.breaks.items():
            installed = catalog.charts[row.chart].version.startswith(f"{row.minor}.")
            versions = {row.goes_with[name]}
            if installed:
                versions.add(catalog.charts[name].version)
            assert not any(version.startswith(f"{minor}.") for version in versions for minor in minors), row.name


def test_ports_of_charts_were_read_from_the_version_that_is_installed() -> None:
    read = {name: row.source for name, row in default().chart_ports.items()}

    assert read == {name: f"{chart.source}, rendered by Helm" for name, chart in default().charts.items()}
