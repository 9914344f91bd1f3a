"""Facts of the catalogue as their sources say them: machines, accelerators, networks, quotas, disks, file systems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from training_platform.catalog import (
    ACCELERATORS,
    BOOT_DISK_LIMITS,
    DISK_TYPES,
    FILESTORE_TIERS,
    GENERAL_QUOTAS,
    MACHINE_TYPES,
    QUOTAS,
    REGIONS,
    VERTEX_BOOT_DISK_MAX_GB,
    VERTEX_BOOT_DISK_MIN_GB,
)
from training_platform.catalog.loader import default
from training_platform.catalog.locations import region_of
from training_platform.catalog.topologies import legal_for
from training_platform.catalog.types import Accelerator, Band, Capacity, MachineType, QuotaId

MACHINES = [pytest.param(machine, id=name) for name, machine in MACHINE_TYPES.items()]
GPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu"]
TPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "tpu"]


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
        ("a4-highgpu-8g", 8, 224, 3968), ("a4x-highgpu-4g", 4, 140, 884), ("a4x-maxgpu-4g-metal", 4, 144, 960),
        ("g2-standard-4", 1, 4, 16),
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
        "gb300": {"a4x-maxgpu-4g-metal"},
        "rtx-pro-6000": {f"g4-standard-{vcpus}" for vcpus in (48, 96, 192, 384)},
    }
    prefixes = {name.rpartition("-")[0] for name, machine in MACHINE_TYPES.items() if machine.kind == "cpu"}
    assert prefixes == {"n1-highcpu"} | {
        f"{family}-{shape}" for family in ("e2", "n1", "n2", "n2d") for shape in ("standard", "highmem")
    }


def test_local_ssd_is_bundled_or_offered_and_charged_either_way() -> None:
    disks = {machine.name: machine.local_ssd for machine in MACHINE_TYPES.values()}

    assert [name for name, ssd in disks.items() if ssd.bundled and ssd.allowed] == []
    assert [name for name, ssd in disks.items() if (ssd.quota is not None) != bool(ssd.bundled or ssd.allowed)] == []


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


@pytest.mark.parametrize(
    ("name", "label", "hbm_gb", "tflops"),
    [
        ("tpu-v4", "tpu-v4-podslice", 32, 275), ("tpu-v5e", "tpu-v5-lite-podslice", 16, 197),
        ("tpu-v5e-device", "tpu-v5-lite-device", 16, 197), ("tpu-v5p", "tpu-v5p-slice", 95, 459),
        ("tpu-v6e", "tpu-v6e-slice", 32, 918), ("tpu-7x", "tpu7x", 192, 2307), ("t4", "nvidia-tesla-t4", 16, None),
        ("v100", "nvidia-tesla-v100", 16, None), ("l4", "nvidia-l4", 24, None),
        ("a100-40", "nvidia-tesla-a100", 40, 312),
        ("a100-80", "nvidia-a100-80gb", 80, 312), ("h100", "nvidia-h100-80gb", 80, 989),
        ("h100-mega", "nvidia-h100-mega-80gb", 80, 989), ("h200", "nvidia-h200-141gb", 141, 989),
        ("b200", "nvidia-b200", 180, None), ("gb200", "nvidia-gb200", 186, None), ("gb300", "nvidia-gb300", 279, None),
        ("rtx-pro-6000", "nvidia-rtx-pro-6000", 96, None),
    ],
)  # fmt: skip
def test_an_accelerator_is_what_its_source_says(name: str, label: str, hbm_gb: int, tflops: float | None) -> None:
    accelerator = ACCELERATORS[name]

    assert (accelerator.gke_label, accelerator.hbm_gb, accelerator.peak_bf16_tflops) == (label, hbm_gb, tflops)
    of_gpu = accelerator.kind == "gpu" and tflops is not None  # data sheets are quoted at second hand
    assert ("peak_bf16_tflops" in accelerator.unverified) == of_gpu


def test_partitions_of_a_gpu_fit_into_its_memory() -> None:
    for accelerator in ACCELERATORS.values():
        for size, instances in accelerator.partitions.items():
            memory_gb = int(size.partition(".")[2].removesuffix("gb"))
            assert instances * (memory_gb - 1) < accelerator.hbm_gb  # names round up: 2 of 3g.71gb in 141 GB
    assert ACCELERATORS["h100"].partitions["1g.20gb"] == 4
    assert "1g.20gb" not in ACCELERATORS["a100-80"].partitions
    assert ACCELERATORS["h200"].partitions["3g.71gb"] == 2
    assert {name for name, a in ACCELERATORS.items() if a.kind == "gpu" and not a.partitions} == {
        "t4", "v100", "l4", "gb300",
    }  # fmt: skip
    assert {name for name, a in ACCELERATORS.items() if a.kind == "tpu" and a.partitions} == set()


def test_vertex_names_gpus_by_enum_and_tpus_by_machine_alone() -> None:
    enums = {name: a.vertex.accelerator_type for name, a in ACCELERATORS.items() if a.vertex is not None}

    assert enums == {
        "a100-40": "NVIDIA_TESLA_A100", "a100-80": "NVIDIA_A100_80GB", "h100": "NVIDIA_H100_80GB",
        "h100-mega": "NVIDIA_H100_MEGA_80GB", "h200": "NVIDIA_H200_141GB", "b200": "NVIDIA_B200",
        "gb200": "NVIDIA_GB200", "rtx-pro-6000": "NVIDIA_RTX_PRO_6000", "l4": "NVIDIA_L4", "t4": "NVIDIA_TESLA_T4",
        "v100": "NVIDIA_TESLA_V100", "tpu-v5e": None, "tpu-v6e": None, "tpu-7x": None,
    }  # fmt: skip
    assert {name for name in ACCELERATORS if ACCELERATORS[name].vertex is None} == {
        "tpu-v4", "tpu-v5e-device", "tpu-v5p", "gb300",
    }  # fmt: skip
    assert vertex_regions("tpu-7x") == {"us-central1"}
    assert "southamerica-west1" in vertex_regions("tpu-v6e")
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
    assert {m.name for m in GPUS + TPUS if not m.vertex} == {
        "ct4p-hightpu-4t", *(f"ct5l-hightpu-{chips}t" for chips in (1, 4, 8)), "ct5p-hightpu-4t", "tpu7x-standard-1t",
        "a3-edgegpu-8g", "a4x-maxgpu-4g-metal",
    }  # fmt: skip
    assert {name for name in MACHINE_TYPES if name.startswith("e2-standard") and MACHINE_TYPES[name].vertex} == {
        f"e2-standard-{vcpus}" for vcpus in (4, 8, 16, 32)
    }
    assert not any(machine.vertex for name, machine in MACHINE_TYPES.items() if name.startswith("n2d-"))
    assert all(m.vertex_cpu_quota for m in MACHINE_TYPES.values() if m.vertex and m.kind == "cpu")


def test_vertex_takes_nine_ironwood_slices_and_all_of_the_other_families() -> None:
    listed = {name: a.vertex.topologies for name, a in ACCELERATORS.items() if a.vertex and a.vertex.topologies}

    assert set(listed) == {"tpu-7x"}
    assert (len(listed["tpu-7x"]), listed["tpu-7x"][-1]) == (9, "8x8x16")
    assert all(legal_for(MACHINE_TYPES["tpu7x-standard-4t"], topology) for topology in listed["tpu-7x"])


@pytest.mark.parametrize(
    ("name", "gpudirect", "nics", "gbps"),
    [("a3-highgpu-8g", "TCPX", 1 + 4, 1000), ("a3-megagpu-8g", "TCPXO", 1 + 8, 1800), ("a3-highgpu-4g", None, 1, 100),
     ("a2-highgpu-8g", None, 1, 100), ("a3-edgegpu-8g", "TCPX", 1 + 4, 600), ("a3-ultragpu-8g", "RDMA", 2 + 8, 3600),
     ("a4-highgpu-8g", "RDMA", 2 + 8, 3600), ("a4x-highgpu-4g", "RDMA", 2 + 4, 2000),
     ("g2-standard-96", None, 1, 100)],
)  # fmt: skip
def test_gpudirect_machines_have_a_nic_more_for_each_of_its_networks(
    name: str, gpudirect: str | None, nics: int, gbps: int
) -> None:
    machine = MACHINE_TYPES[name]

    assert (machine.gpudirect, machine.nics, machine.max_gbps) == (gpudirect, nics, gbps)
    assert bool(machine.gpudirect_minimum_gke) == (gpudirect in {"TCPX", "TCPXO"})
    assert machine.gpudirect_mtu == {"RDMA": 8896, "TCPX": 8244, "TCPXO": 8244, None: None}[gpudirect]


def test_machines_with_rdma_keep_two_nics_for_everything_else() -> None:
    rdma = [machine for machine in GPUS if machine.gpudirect == "RDMA"]

    assert {machine.name: machine.nics - machine.rdma_nics for machine in rdma} == {
        "a3-ultragpu-8g": 2, "a4-highgpu-8g": 2, "a4x-highgpu-4g": 2,
    }  # fmt: skip
    assert {machine.rdma_nics for machine in MACHINE_TYPES.values() if machine.gpudirect != "RDMA"} == {0}


def test_workload_policies_join_ironwood_hosts_and_nvlink_domains() -> None:
    joined = {machine.name: machine.nvlink_domain for machine in MACHINE_TYPES.values() if machine.workload_policy}

    assert joined == {"tpu7x-standard-4t": None, "a4x-highgpu-4g": "1x72", "a4x-maxgpu-4g-metal": "1x72"}
    assert {machine.name for machine in MACHINE_TYPES.values() if machine.architecture == "arm64"} == {
        "a4x-highgpu-4g", "a4x-maxgpu-4g-metal",
    }  # fmt: skip
    assert {machine.name: machine.confidential for machine in MACHINE_TYPES.values() if machine.confidential} == {
        "a3-highgpu-1g": ("TDX",), "g4-standard-48": ("SEV",),
    }  # fmt: skip


def test_compact_placement_is_bounded_by_the_machine_s_family() -> None:
    bounds: dict[str, set[int | None]] = {}
    for machine in GPUS:
        bounds.setdefault(machine.name.partition("-")[0], set()).add(machine.compact_max_nodes)

    assert bounds == {"a2": {150}, "a3": {96}, "a4": {1500}, "a4x": {None}, "g2": {150}, "g4": {1500}}


@pytest.mark.parametrize(
    ("name", "use", "version"),
    [
        ("ct5p-hightpu-4t", "auto-provisioning", "1.29.0"), ("ct6e-standard-4t", "auto-provisioning", "1.32.0"),
        ("ct6e-standard-4t", "flex-start", "1.33.0-gke.1712000"), ("ct5p-hightpu-4t", "multislice", "1.27.4-gke.900"),
        ("tpu7x-standard-4t", "pool", "1.34.0-gke.2201000"), ("tpu7x-standard-4t", "autopilot", "1.34.1-gke.3084001"),
        ("tpu7x-standard-4t", "auto-provisioning", "1.34.1-gke.2541000"),
        ("tpu7x-standard-4t", "dranet", "1.34.1-gke.1829001"), ("a3-megagpu-8g", "dranet", "1.34.1-gke.1829001"),
        ("g2-standard-4", "auto-provisioning", "1.28.2-gke.1098000"),
        ("a3-ultragpu-8g", "auto-provisioning", "1.31.4-gke.1183000"),
        ("a4-highgpu-8g", "flex-start", "1.32.2-gke.1652000"),
        ("a4x-highgpu-4g", "auto-provisioning", "1.33.4-gke.1036000"),
        ("g4-standard-48", "pool", "1.34.0-gke.1662000"),
        ("g4-standard-48", "auto-provisioning", "1.34.1-gke.1829001"),
    ],
)  # fmt: skip
def test_a_machine_needs_the_gke_of_its_source(name: str, use: str, version: str) -> None:
    assert MACHINE_TYPES[name].minimum_gke[use] == version


@pytest.mark.parametrize("machine", MACHINES)
def test_lowest_versions_are_versions_of_uses_that_the_type_names(machine: MachineType) -> None:
    uses = {"flex-start", "pool", "autopilot", "auto-provisioning", "multislice", "dranet"}

    assert set(machine.minimum_gke) <= uses
    versions = (*machine.minimum_gke.values(), *machine.gpudirect_minimum_gke)
    assert [version for version in versions if not re.fullmatch(r"1\.\d+\.\d+(-gke\.\d+)?", version)] == []
    dranet = machine.name.startswith(("a3-", "a4-", "a4x-", "ct6e-", "tpu7x-"))
    assert ("dranet" in machine.minimum_gke) == dranet


def test_capacities_are_those_that_google_sells() -> None:
    everything: tuple[Capacity, ...] = ("on-demand", "spot", "flex-start", "reservation")

    assert MACHINE_TYPES["a3-highgpu-1g"].capacities == ("spot", "flex-start")
    assert MACHINE_TYPES["ct4p-hightpu-4t"].capacities == ("on-demand", "spot", "reservation")
    assert MACHINE_TYPES["ct5lp-hightpu-4t"].capacities == everything
    assert {MACHINE_TYPES[name].capacities for name in ("a2-megagpu-16g", "a3-highgpu-8g", "a3-megagpu-8g")} == {
        everything
    }
    assert MACHINE_TYPES["ct5l-hightpu-4t"].capacities == ("on-demand", "spot", "reservation")
    assert MACHINE_TYPES["a3-edgegpu-8g"].capacities == ("on-demand", "spot", "reservation")
    for arm in ("a4x-highgpu-4g", "a4x-maxgpu-4g-metal"):
        assert MACHINE_TYPES[arm].capacities == ("reservation",)
    assert {MACHINE_TYPES[name].capacities for name in ("ct5p-hightpu-4t", "ct6e-standard-1t", "g2-standard-4")} == {
        everything
    }
    without = {m.name for m in GPUS + TPUS if "on-demand" not in m.capacities} - {
        "a4x-highgpu-4g",
        "a4x-maxgpu-4g-metal",
    }
    assert without == {
        *(f"a3-highgpu-{gpus}g" for gpus in (1, 2, 4)), "a3-ultragpu-8g", "a4-highgpu-8g", "tpu7x-standard-1t",
        "tpu7x-standard-4t",
    }  # fmt: skip
    assert {m.name: m.allowlisted for m in GPUS + TPUS if m.allowlisted} == {
        f"tpu7x-standard-{chips}t": ("spot", "flex-start") for chips in (1, 4)
    }


def test_flex_start_machines_say_which_gke_they_need() -> None:
    said = {machine.name for machine in MACHINE_TYPES.values() if "flex-start" in machine.minimum_gke}

    assert said == {machine.name for machine in MACHINE_TYPES.values() if "flex-start" in machine.capacities}


ACCELERATED = [machine for machine in MACHINE_TYPES.values() if machine.accelerator is not None]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_capacity_of_an_accelerator_machine_is_charged_and_reserved_tpus_are_not(machine: MachineType) -> None:
    if machine.accelerator is None:
        assert set(machine.cpu_quota) == set(machine.capacities)
        return
    charged = set(machine.accelerator.quotas)

    free = {"reservation"} if machine.kind == "tpu" else set()
    assert set(machine.capacities) - charged == free & set(machine.capacities)
    assert charged.isdisjoint(free)


def test_spot_and_flex_start_are_charged_to_preemptible_quotas_and_nothing_else_is() -> None:
    for accelerator in ACCELERATORS.values():
        for capacity, quota in accelerator.quotas.items():
            assert quota.quota_id.startswith("PREEMPTIBLE-") == (capacity in {"spot", "flex-start"})
        for capacity, quota in (accelerator.vertex.quotas if accelerator.vertex else {}).items():
            assert ("Preemptible" in quota.quota_id) == (capacity in {"spot", "flex-start"})


def test_flex_start_falls_back_to_the_standard_quota() -> None:
    for accelerator in ACCELERATORS.values():
        standard = {"flex-start": accelerator.quotas["on-demand"]} if "flex-start" in accelerator.quotas else {}
        assert accelerator.fallback == standard


@pytest.mark.parametrize(
    ("accelerator", "capacity", "quota_id", "dimensions"),
    [
        ("tpu-v5e", "on-demand", "TPU-LITE-PODSLICE-V5-per-project-region", ()),
        ("tpu-v5e", "flex-start", "PREEMPTIBLE-TPU-LITE-PODSLICE-V5-per-project-region", ()),
        ("tpu-v4", "on-demand", "TPU-PODSLICE-V4-per-project-region", ()),
        ("a100-40", "reservation", "NVIDIA-A100-GPUS-per-project-region", ()),
        ("a100-80", "spot", "PREEMPTIBLE-NVIDIA-A100-80GB-GPUS-per-project-region", ()),
        ("h100", "on-demand", "GPUS-PER-GPU-FAMILY-per-project-region", (("gpu_family", "NVIDIA_H100"),)),
        ("h100-mega", "reservation", "GPUS-PER-GPU-FAMILY-per-project-region", (("gpu_family", "NVIDIA_H100_MEGA"),)),
        ("h100-mega", "spot", "PREEMPTIBLE-NVIDIA-H100-MEGA-GPUS-per-project-region", ()),
        ("tpu-v5e-device", "on-demand", "TPU-LITE-DEVICE-V5-per-project-region", ()),
        ("tpu-v5p", "on-demand", "TPU-V5P-per-project-region", ()),
        ("tpu-v5p", "flex-start", "PREEMPTIBLE-TPU-V5P-per-project-region", ()),
        ("tpu-v6e", "on-demand", "TPUS-PER-TPU-FAMILY-per-project-region", (("tpu_family", "CT6E"),)),
        ("tpu-v6e", "spot", "PREEMPTIBLE-TPU-V6E-per-project-region", ()),
        ("tpu-7x", "on-demand", "TPUS-PER-TPU-FAMILY-per-project-region", (("tpu_family", "TPU7X"),)),
        ("tpu-7x", "flex-start", "PREEMPTIBLE-TPU-7X-per-project-region", ()),
        ("t4", "on-demand", "NVIDIA-T4-GPUS-per-project-region", ()),
        ("v100", "spot", "PREEMPTIBLE-NVIDIA-V100-GPUS-per-project-region", ()),
        ("l4", "reservation", "NVIDIA-L4-GPUS-per-project-region", ()),
        ("h200", "reservation", "GPUS-PER-GPU-FAMILY-per-project-region", (("gpu_family", "NVIDIA_H200"),)),
        ("h200", "flex-start", "PREEMPTIBLE-NVIDIA-H200-GPUS-per-project-region", ()),
        ("b200", "reservation", "GPUS-PER-GPU-FAMILY-per-project-region", (("gpu_family", "NVIDIA_B200"),)),
        ("b200", "spot", "PREEMPTIBLE-NVIDIA-B200-GPUS-per-project-region", ()),
        ("gb200", "reservation", "GPUS-PER-GPU-FAMILY-per-project-region", (("gpu_family", "NVIDIA_GB200"),)),
        ("rtx-pro-6000", "spot", "PREEMPTIBLE-NVIDIA-RTX-PRO-6000-GPUS-per-project-region", ()),
    ],
)
def test_a_capacity_is_charged_to_the_quota_of_its_source(
    accelerator: str, capacity: Capacity, quota_id: str, dimensions: tuple[tuple[str, str], ...]
) -> None:
    quota = ACCELERATORS[accelerator].quotas[capacity]

    assert (quota.quota_id, quota.dimensions, quota.per) == (quota_id, dimensions, "region")
    assert quota.unit == ("chips" if accelerator.startswith("tpu") else "GPUs")


@pytest.mark.parametrize(
    ("accelerator", "capacity", "middle"),
    [
        ("tpu-v6e", "on-demand", "V6ETPU"), ("tpu-7x", "spot", "Preemptible7XTPU"), ("t4", "on-demand", "T4GPUs"),
        ("v100", "spot", "PreemptibleV100GPUs"), ("l4", "flex-start", "PreemptibleL4GPUs"),
        ("h200", "on-demand", "H200GPUs"), ("b200", "flex-start", "PreemptibleB200GPUs"),
        ("gb200", "reservation", "GB200GPUs"), ("rtx-pro-6000", "spot", "PreemptibleRTXPRO6000GPUs"),
    ],
)  # fmt: skip
def test_vertex_charges_the_quota_of_its_source(accelerator: str, capacity: Capacity, middle: str) -> None:
    vertex = ACCELERATORS[accelerator].vertex

    assert vertex is not None
    assert vertex.quotas[capacity].quota_id == f"CustomModelTraining{middle}PerProjectPerRegion"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("tpu-v5e-device", "quota_id"), ("tpu-7x", "dimensions"), ("tpu-7x-spot", "quota_id"), ("t4", "quota_id"),
        ("v100", "quota_id"), ("rtx-pro-6000", "dimensions"), ("a4-local-ssd", "quota_id"),
        ("vertex-g2-cpus", "quota_id"),
    ],
)  # fmt: skip
def test_ids_that_were_inferred_are_marked(name: str, field: str) -> None:
    assert field in default().quotas[name].unverified


@pytest.mark.parametrize("name", ["tpu-v5p", "tpu-v6e", "tpu-v6e-spot", "l4", "h200", "b200", "gb200", "t4-spot"])
def test_ids_that_were_seen_are_not(name: str) -> None:
    assert default().quotas[name].unverified == ()


@pytest.mark.parametrize(
    ("machine", "capacity", "quota_id"),
    [
        ("n1-standard-4", "on-demand", "CPUS-per-project-region"),
        ("e2-standard-4", "reservation", "CPUS-per-project-region"),
        ("n2-standard-8", "on-demand", "N2-CPUS-per-project-region"),
        ("n2d-highmem-8", "on-demand", "N2D-CPUS-per-project-region"),
        ("n2d-highmem-8", "spot", "PREEMPTIBLE-CPUS-per-project-region"),
        ("a2-ultragpu-1g", "on-demand", "A2-CPUS-per-project-region"),
        ("a2-highgpu-8g", "flex-start", "PREEMPTIBLE-CPUS-per-project-region"),
    ],
)
def test_vcpus_are_charged_to_the_quota_of_their_family(machine: str, capacity: Capacity, quota_id: str) -> None:
    assert MACHINE_TYPES[machine].cpu_quota[capacity].quota_id == quota_id


def test_of_accelerator_machines_a2_alone_charges_its_vcpus() -> None:
    assert {m.name for m in ACCELERATED if m.cpu_quota} == {m.name for m in ACCELERATED if m.name.startswith("a2-")}


def test_every_quota_that_a_row_charges_is_known() -> None:
    charged = {quota for a in ACCELERATORS.values() for quota in (*a.quotas.values(), *a.fallback.values())}
    charged |= {quota for a in ACCELERATORS.values() if a.vertex for quota in a.vertex.quotas.values()}
    for machine in MACHINE_TYPES.values():
        charged |= {*machine.cpu_quota.values(), *machine.vertex_cpu_quota.values()}
        charged |= {machine.local_ssd.quota} if machine.local_ssd.quota else set()

    assert charged <= set(QUOTAS)


def test_boot_disk_limits_are_those_of_each_service() -> None:
    limits = {name: (limit.min_gb, limit.max_gb) for name, limit in BOOT_DISK_LIMITS.items()}

    assert limits == {"gke": (10, 64 * 1024), "vertex": (100, 64_000)}
    assert (VERTEX_BOOT_DISK_MIN_GB, VERTEX_BOOT_DISK_MAX_GB) == (100, 64_000)


def test_disks_are_charged_to_ssd_hdd_or_hyperdisk() -> None:
    charged = {name: disk.quota.quota_id for name, disk in DISK_TYPES.items() if disk.quota is not None}

    assert charged == {
        "pd-standard": "DISKS-TOTAL-GB-per-project-region",
        "pd-balanced": "SSD-TOTAL-GB-per-project-region",
        "pd-ssd": "SSD-TOTAL-GB-per-project-region",
        "hyperdisk-balanced": "HDB-TOTAL-GB-per-project-region",
    }
    on_vertex = {name: disk.vertex_quota for name, disk in DISK_TYPES.items() if disk.vertex_boot}
    assert on_vertex == {name: GENERAL_QUOTAS[f"vertex-{name}"] for name in DISK_TYPES if name != "pd-balanced"}


def test_filestore_tiers_have_the_bands_of_their_source() -> None:
    low, high = Band(1024, 39 * 256, 256), Band(10 * 1024, 100 * 1024, 2560)
    most = 65_433  # 63.9 TiB, rounded down

    assert {name: tier.bands for name, tier in FILESTORE_TIERS.items()} == {
        "BASIC_HDD": (Band(1024, most, 1),),
        "BASIC_SSD": (Band(2560, most, 1),),
        "ZONAL": (low, high),
        "HIGH_SCALE_SSD": (high,),
        "REGIONAL": (low, high),
        "ENTERPRISE": (Band(1024, 10 * 1024, 256),),
    }
    for tier in FILESTORE_TIERS.values():
        assert all((band.high_gib - band.low_gib) % band.step_gib == 0 for band in tier.bands)
        assert ("NFS_V4_1" in tier.protocols) == (not tier.name.startswith("BASIC_"))
        assert (tier.scope == "region") == (tier.name in {"REGIONAL", "ENTERPRISE"})


@pytest.mark.parametrize(
    ("tier", "capacity_gib", "quota_id"),
    [
        ("BASIC_HDD", 1024, "StandardStorageGbPerRegion"),
        ("BASIC_SSD", 2560, "PremiumStorageGbPerRegion"),
        ("ZONAL", 9984, "EnterpriseStorageGibPerRegion"),
        ("ZONAL", 10240, "HighScaleSSDStorageGibPerRegion"),
        ("REGIONAL", 10240, "EnterpriseStorageGibPerRegion"),
        ("ENTERPRISE", 1024, "EnterpriseStorageGibPerRegion"),
    ],
)
def test_a_filestore_instance_is_charged_by_tier_and_band(tier: str, capacity_gib: int, quota_id: str) -> None:
    assert FILESTORE_TIERS[tier].quota_for(capacity_gib).quota_id == quota_id


def test_the_charts_that_the_platform_installs_go_together() -> None:
    catalog = default()
    for row in catalog.releases.values():
        assert row.breaks.keys() <= row.goes_with.keys() <= catalog.charts.keys()
        for name, minors in row.breaks.items():
            installed = catalog.charts[row.chart].version.startswith(f"{row.minor}.")
            versions = {row.goes_with[name], *([catalog.charts[name].version] if installed else [])}
            assert not any(version.startswith(f"{minor}.") for version in versions for minor in minors), row.name


def test_ports_of_charts_were_read_from_the_version_that_is_installed() -> None:
    read = {name: row.source for name, row in default().chart_ports.items()}

    assert read == {name: f"{chart.source}, rendered by Helm" for name, chart in default().charts.items()}
