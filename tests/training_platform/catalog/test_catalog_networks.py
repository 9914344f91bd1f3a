"""What joins machines: NICs, networks, placement; and the GKE that each use needs."""

from __future__ import annotations

import re

import pytest

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Capacity, MachineType

MACHINES = [pytest.param(machine, id=name) for name, machine in MACHINE_TYPES.items()]
GPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu"]
TPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "tpu"]


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

    assert joined == {"tpu7x-standard-4t": None, "a4x-highgpu-4g": "1x72"}
    assert [machine.name for machine in MACHINE_TYPES.values() if machine.architecture == "arm64"] == ["a4x-highgpu-4g"]
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
    assert MACHINE_TYPES["a4x-highgpu-4g"].capacities == ("reservation",)
    assert {MACHINE_TYPES[name].capacities for name in ("ct5p-hightpu-4t", "ct6e-standard-1t", "g2-standard-4")} == {
        everything
    }
    without = {m.name for m in GPUS + TPUS if "on-demand" not in m.capacities} - {"a4x-highgpu-4g"}
    assert without == {
        *(f"a3-highgpu-{gpus}g" for gpus in (1, 2, 4)), "a3-ultragpu-8g", "a4-highgpu-8g", "tpu7x-standard-1t",
        "tpu7x-standard-4t",
    }  # fmt: skip
    assert {m.name: m.allowlisted for m in GPUS + TPUS if m.allowlisted} == {
        f"tpu7x-standard-{chips}t": ("spot", "flex-start") for chips in (1, 4)
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_flex_start_machines_say_which_gke_they_need(machine: MachineType) -> None:
    assert ("flex-start" in machine.minimum_gke) == ("flex-start" in machine.capacities)
