"""Amounts are worked out from the machine types' own numbers, as Google Cloud documents them."""

from __future__ import annotations

from typing import Any

import pytest

from training_platform.quota.charges import (
    Usage,
    VertexUsage,
    VmUsage,
    accelerator_usage,
    filestore_usage,
    nat_usage,
    vertex_usage,
    vm_usage,
)
from training_platform.quota.keys import Holder


def vms(machine_type: str, **changes: Any) -> VmUsage:
    defaults = {"nodes": 1, "capacity": "on-demand", "disk_type": "pd-balanced", "disk_gb": 100}
    values: dict[str, Any] = {"project": "p", "location": "us-central1-a", **defaults, **changes}
    return VmUsage(machine_type=machine_type, **values)


def amounts(usages: list[Usage]) -> dict[str, float]:
    """Return amounts by quota id; an id that is charged twice would hide, so it is refused."""
    found = {usage.keys[0].quota_id: usage.amount for usage in usages}
    assert len(found) == len(usages)
    return found


def test_h100_charges_family_global_disk_and_instances_for_every_vm() -> None:
    assert amounts(vm_usage(vms("a3-highgpu-8g", nodes=3, disk_gb=200))) == {
        "INSTANCES-per-project-region": 3,
        "GPUS-PER-GPU-FAMILY-per-project-region": 3 * 8,
        "GPUS-ALL-REGIONS-per-project": 3 * 8,
        "SSD-TOTAL-GB-per-project-region": 3 * 200,
        "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region": 3 * 16 * 375,
    }


def test_a100_charges_its_own_vcpus_and_the_global_ones() -> None:
    found = amounts(vm_usage(vms("a2-highgpu-8g", nodes=2, disk_type="pd-standard")))

    assert found["NVIDIA-A100-GPUS-per-project-region"] == 2 * 8
    assert found["A2-CPUS-per-project-region"] == found["CPUS-ALL-REGIONS-per-project"] == 2 * 96
    assert found["DISKS-TOTAL-GB-per-project-region"] == 2 * 100
    assert "LOCAL-SSD-TOTAL-GB-per-project-region" not in found


def test_spot_charges_preemptible_quota() -> None:
    found = amounts(vm_usage(vms("a2-highgpu-8g", capacity="spot")))

    assert found["PREEMPTIBLE-NVIDIA-A100-GPUS-per-project-region"] == 8
    assert found["PREEMPTIBLE-CPUS-per-project-region"] == 96
    assert "NVIDIA-A100-GPUS-per-project-region" not in found


def test_flex_start_falls_back_to_standard_quota() -> None:
    (usage,) = [each for each in vm_usage(vms("ct5lp-hightpu-8t", capacity="flex-start")) if each.unit == "chips"]

    assert [key.quota_id for key in usage.keys] == [
        "PREEMPTIBLE-TPU-LITE-PODSLICE-V5-per-project-region",
        "TPU-LITE-PODSLICE-V5-per-project-region",
    ]
    assert usage.amount == 8


def test_reserved_tpu_charges_no_chips_and_no_gpu_quota() -> None:
    found = amounts(vm_usage(vms("ct5lp-hightpu-4t", nodes=8, capacity="reservation")))

    assert found == {"INSTANCES-per-project-region": 8, "SSD-TOTAL-GB-per-project-region": 8 * 100}


@pytest.mark.parametrize(("count", "gb"), [(None, 8 * 375), (8, 8 * 375), (0, None)])
def test_local_ssd_is_what_the_machine_brings_unless_given(count: int | None, gb: float | None) -> None:
    found = amounts(vm_usage(vms("a2-ultragpu-8g", local_ssd_count=count)))

    assert found.get("LOCAL-SSD-TOTAL-GB-per-project-region") == gb


def test_place_is_the_region_and_empty_for_the_whole_project() -> None:
    places = {usage.keys[0].quota_id: usage.keys[0].location for usage in vm_usage(vms("a3-highgpu-8g"))}

    assert places["GPUS-ALL-REGIONS-per-project"] == ""
    assert set(places.values()) == {"", "us-central1"}


def test_machine_type_outside_the_catalogue_is_an_error() -> None:
    with pytest.raises(KeyError):
        vm_usage(vms("a9-highgpu-8g"))


def test_vertex_charges_its_own_quotas_and_none_of_compute_engine() -> None:
    usages = vertex_usage(VertexUsage("p", "a2-highgpu-1g", 4, "on-demand", "us-central1", "pd-ssd", 200))

    assert amounts(usages) == {
        "CustomModelTrainingA100GPUsPerProjectPerRegion": 4 * 1,
        "CustomModelTrainingPDSSDPerProjectPerRegion": 4 * 200,
    }
    assert {usage.keys[0].service for usage in usages} == {"aiplatform.googleapis.com"}


def test_vertex_cpu_machine_charges_vcpus() -> None:
    usages = vertex_usage(VertexUsage("p", "n2-standard-8", 3, "on-demand", "us-central1", "pd-standard", 100))

    assert amounts(usages) == {
        "CustomModelTrainingN2CPUsPerProjectPerRegion": 3 * 8,
        "CustomModelTrainingPDHDDPerProjectPerRegion": 3 * 100,
    }


@pytest.mark.parametrize(
    ("tier", "capacity", "quota_id"),
    [
        ("BASIC_HDD", 1024, "StandardStorageGbPerRegion"),
        ("BASIC_SSD", 2560, "PremiumStorageGbPerRegion"),
        ("ZONAL", 9984, "EnterpriseStorageGibPerRegion"),
        ("ZONAL", 10240, "HighScaleSSDStorageGibPerRegion"),
        ("REGIONAL", 10240, "EnterpriseStorageGibPerRegion"),
    ],
)
def test_filestore_charges_the_quota_of_its_tier_and_band(tier: str, capacity: int, quota_id: str) -> None:
    (usage,) = filestore_usage("p", tier, capacity, "us-central1-a")

    assert (usage.keys[0].quota_id, usage.keys[0].location, usage.amount) == (quota_id, "us-central1", capacity)


def test_nat_charges_one_address() -> None:
    (usage,) = nat_usage("p", "us-west4")

    assert usage.by(Holder("dev", (), "NAT")).amount == 1
    assert str(usage.keys[0]) == "IN-USE-ADDRESSES-per-project-region in us-west4"


def auto_provisioned(gke_label: str, chips: int, most_vcpus: int = 99_999) -> dict[str, float]:
    return amounts(accelerator_usage("example-train", gke_label, chips, "us-central1", most_vcpus))


def test_auto_provisioned_a100_charge_the_fewest_vcpus_that_they_can_have() -> None:
    charged = auto_provisioned("nvidia-tesla-a100", 32)

    assert charged["NVIDIA-A100-GPUS-per-project-region"] == charged["GPUS-ALL-REGIONS-per-project"] == 32
    assert charged["A2-CPUS-per-project-region"] == 32 * 96 / 16  # as many as a2-megagpu-16g has of them
    assert charged["CPUS-ALL-REGIONS-per-project"] == 32 * 96 / 16


def test_auto_provisioned_vcpus_stay_below_the_limit_of_cpu() -> None:
    assert auto_provisioned("nvidia-tesla-a100", 32, 191)["A2-CPUS-per-project-region"] == 191
    assert auto_provisioned("nvidia-tesla-a100", 32, 192)["A2-CPUS-per-project-region"] == 192
    assert auto_provisioned("nvidia-tesla-a100", 32, 193)["A2-CPUS-per-project-region"] == 192


@pytest.mark.parametrize("gke_label", ["nvidia-h100-80gb", "tpu-v5-lite-podslice", "nvidia-tesla-t4"])
def test_machines_whose_vcpus_no_quota_of_their_own_counts_charge_none(gke_label: str) -> None:
    assert [quota for quota in auto_provisioned(gke_label, 32) if "CPUS" in quota] == []
