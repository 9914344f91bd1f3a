"""Which quota each capacity of each machine is charged to."""

from __future__ import annotations

import pytest

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES, QUOTAS
from training_platform.catalog.loader import default
from training_platform.catalog.types import Capacity, MachineType

MACHINES = [pytest.param(machine, id=name) for name, machine in MACHINE_TYPES.items()]
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
