"""Accelerators: chips, partitions, and what Vertex AI makes of them."""

from __future__ import annotations

import pytest

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES, REGIONS
from training_platform.catalog.topologies import legal_for
from training_platform.catalog.types import Accelerator

GPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "gpu"]
TPUS = [machine for machine in MACHINE_TYPES.values() if machine.kind == "tpu"]


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
        ("b200", "nvidia-b200", 180, None), ("gb200", "nvidia-gb200", 186, None),
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
    assert {name for name, a in ACCELERATORS.items() if a.kind == "gpu" and not a.partitions} == {"t4", "v100", "l4"}
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
        "tpu-v4", "tpu-v5e-device", "tpu-v5p",
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
        "a3-edgegpu-8g",
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
