"""Facts of the catalogue that must agree with each other; the data files have them with their sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from training_platform.catalog import ACCELERATORS, DISK_TYPES, MACHINE_TYPES, QUOTAS, REGIONS
from training_platform.catalog.loader import default
from training_platform.catalog.locations import region_of
from training_platform.catalog.types import Accelerator, MachineType, QuotaId

every_machine = pytest.mark.parametrize("machine", MACHINE_TYPES.values(), ids=MACHINE_TYPES)
every_accelerator = pytest.mark.parametrize("accelerator", ACCELERATORS.values(), ids=ACCELERATORS)
GPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu"]
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


def test_a_machine_of_a_gpu_family_has_vcpus_and_memory_in_proportion_to_its_gpus() -> None:
    ratios: dict[str, set[tuple[float, float]]] = {}
    for machine in GPUS:
        if machine.name.startswith(("a2-highgpu", "a2-ultragpu", "a3-highgpu", "g4-standard")):
            family = machine.name.rpartition("-")[0]
            ratios.setdefault(family, set()).add((machine.vcpus / machine.chips, machine.memory_gb / machine.chips))

    assert {family: len(of_family) for family, of_family in ratios.items()} == dict.fromkeys(ratios, 1)
    assert len(ratios) == 4


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


@every_accelerator
def test_partitions_of_a_gpu_fit_into_its_memory(accelerator: Accelerator) -> None:
    assert accelerator.kind == "gpu" or not accelerator.partitions
    for size, instances in accelerator.partitions.items():
        memory_gb = int(size.partition(".")[2].removesuffix("gb"))
        assert instances * (memory_gb - 1) < accelerator.hbm_gb  # names round up: 2 of 3g.71gb in 141 GB


@every_machine
def test_vertex_takes_a_machine_with_a_quota_for_it(machine: MachineType) -> None:
    if machine.vertex:
        accelerator = machine.accelerator
        assert machine.vertex_cpu_quota if accelerator is None else accelerator.vertex is not None


@pytest.mark.parametrize("machine", GPUS, ids=lambda machine: machine.name)
def test_a_machine_with_gpudirect_has_nics_lowest_versions_and_frames_of_its_kind(machine: MachineType) -> None:
    kind = machine.gpudirect

    assert (machine.nics > 1) == (kind is not None)
    assert machine.nics - machine.rdma_nics == (2 if kind == "RDMA" else machine.nics)
    assert bool(machine.gpudirect_minimum_gke) == (kind in {"TCPX", "TCPXO"})
    assert machine.gpudirect_mtu == {"RDMA": 8896, "TCPX": 8244, "TCPXO": 8244, None: None}[kind]


@every_machine
def test_network_devices_are_those_of_a_machines_cards_and_need_a_version(machine: MachineType) -> None:
    devices = machine.network_devices

    if machine.gpudirect:
        assert devices is not None
        rdma = machine.gpudirect == "RDMA"
        assert devices.device_class == ("mrdma.google.com" if rdma else "netdev.google.com")
        assert devices.count == (machine.rdma_nics if rdma else machine.nics - 1)
    assert devices is None or "dranet" in machine.minimum_gke


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


@every_accelerator
def test_only_spot_and_flex_start_are_charged_to_preemptible_quotas(accelerator: Accelerator) -> None:
    for capacity, quota in accelerator.quotas.items():
        assert quota.quota_id.startswith("PREEMPTIBLE-") == (capacity in {"spot", "flex-start"})
    for capacity, quota in (accelerator.vertex.quotas if accelerator.vertex else {}).items():
        assert ("Preemptible" in quota.quota_id) == (capacity in {"spot", "flex-start"})


@every_accelerator
def test_flex_start_falls_back_to_the_standard_quota(accelerator: Accelerator) -> None:
    standard = {"flex-start": accelerator.quotas["on-demand"]} if "flex-start" in accelerator.quotas else {}
    assert accelerator.fallback == standard


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
