"""GKE node pools of every kind: how their VMs are had, and what each VM is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_platform.resources.planned import UNKNOWN, Planned

MACHINE_TYPES = {
    "v4 slices": "ct4p-hightpu-4t",
    "v5e hosts": "ct5lp-hightpu-8t",
    "H100 flex-start": "a3-highgpu-8g",
    "H100 reserved": "a3-megagpu-8g",
    "A100": "a2-highgpu-8g",
    "A100 80 GB": "a2-ultragpu-8g",
}


def test_spot_vms_take_no_reservation(planned: Callable[..., Planned]) -> None:
    node = planned("v5e hosts").inputs["nodeConfig"]

    assert node["spot"] is True
    assert node["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert node.keys().isdisjoint({"flexStart", "preemptible", "maxRunDuration"})


def test_flex_start_is_as_gke_takes_it(planned: Callable[..., Planned]) -> None:
    inputs = planned("H100 flex-start").inputs
    node = inputs["nodeConfig"]

    assert node["flexStart"] is True
    assert node["maxRunDuration"] == f"{24 * 60 * 60}s"
    assert node["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert inputs["management"] == {"autoRepair": False, "autoUpgrade": True}
    assert inputs["initialNodeCount"] == 0
    assert "upgradeSettings" not in inputs
    assert "queuedProvisioning" not in inputs
    assert "spot" not in node


def test_flex_start_without_a_limit_leaves_gkes(planned: Callable[..., Planned]) -> None:
    assert "maxRunDuration" not in planned("H100 flex-start", max_run_hours=None).inputs["nodeConfig"]


def test_a_reserved_pool_takes_the_reservation_that_is_named(planned: Callable[..., Planned]) -> None:
    node = planned("H100 reserved").inputs["nodeConfig"]

    assert node["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["h100-training"],
    }
    assert node.keys().isdisjoint({"spot", "flexStart"})


@pytest.mark.parametrize("kind", ["v4 slices", "A100"])
def test_vms_on_demand_eat_no_reservation(kind: str, planned: Callable[..., Planned]) -> None:
    node = planned(kind).inputs["nodeConfig"]

    assert node["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert node.keys().isdisjoint({"spot", "flexStart", "maxRunDuration"})


@pytest.mark.parametrize("kind", ["v4 slices", "v5e hosts", "H100 reserved", "A100"])
def test_an_upgrade_needs_no_vm_beyond_quota_and_reservation(kind: str, planned: Callable[..., Planned]) -> None:
    inputs = planned(kind).inputs

    assert inputs["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}
    assert inputs["management"] == {"autoRepair": True, "autoUpgrade": True}


@pytest.mark.parametrize(
    ("kind", "accelerator"),
    [
        ("H100 flex-start", "nvidia-h100-80gb"),
        ("H100 reserved", "nvidia-h100-mega-80gb"),
        ("A100", "nvidia-tesla-a100"),
        ("A100 80 GB", "nvidia-a100-80gb"),
    ],
)
def test_gpus_are_written_out_with_their_driver_and_kept_for_those_who_ask(
    kind: str, accelerator: str, planned: Callable[..., Planned]
) -> None:
    node = planned(kind).inputs["nodeConfig"]

    assert node["guestAccelerators"] == [
        {"type": accelerator, "count": 8, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
    ]
    assert node["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]


@pytest.mark.parametrize("kind", ["v4 slices", "v5e hosts"])
def test_tpus_come_with_their_machine_type(kind: str, planned: Callable[..., Planned]) -> None:
    node = planned(kind).inputs["nodeConfig"]

    assert node.keys().isdisjoint({"guestAccelerators", "taints", "fastSocket", "ephemeralStorageLocalSsdConfig"})


@pytest.mark.parametrize(
    ("kind", "count"), [("H100 flex-start", 16), ("H100 reserved", 16), ("A100 80 GB", 8), ("A100", None)]
)
def test_local_ssds_that_come_with_a_machine_are_written_out(
    kind: str, count: int | None, planned: Callable[..., Planned]
) -> None:
    node = planned(kind).inputs["nodeConfig"]

    assert node.get("ephemeralStorageLocalSsdConfig") == (None if count is None else {"localSsdCount": count})


@pytest.mark.parametrize(
    ("kind", "socket"), [("A100", True), ("A100 80 GB", True), ("H100 flex-start", False), ("H100 reserved", False)]
)
def test_fast_socket_is_for_gpus_without_gpudirect(kind: str, socket: bool, planned: Callable[..., Planned]) -> None:
    node = planned(kind).inputs["nodeConfig"]

    assert node["gvnic"] == {"enabled": True}
    assert node.get("fastSocket") == ({"enabled": True} if socket else None)


@pytest.mark.parametrize(
    ("kind", "default"), [("v4 slices", "pd-standard"), ("v5e hosts", "pd-balanced"), ("A100", "pd-standard")]
)
def test_a_boot_disk_is_written_out_in_one_form(kind: str, default: str, planned: Callable[..., Planned]) -> None:
    left_out = planned(kind).inputs["nodeConfig"]
    given = planned(kind, boot_disk={"type": "pd-ssd", "size_gb": 201}).inputs["nodeConfig"]

    assert left_out["bootDisk"] == {"sizeGb": 100, "diskType": default}
    assert given["bootDisk"] == {"sizeGb": 201, "diskType": "pd-ssd"}
    assert left_out.keys().isdisjoint({"diskSizeGb", "diskType"})


@pytest.mark.parametrize("kind", MACHINE_TYPES)
def test_every_vm_is_private_streams_images_and_hides_its_account(kind: str, planned: Callable[..., Planned]) -> None:
    inputs = planned(kind).inputs
    node = inputs["nodeConfig"]

    assert inputs["networkConfig"] == {"enablePrivateNodes": True}
    assert node["machineType"] == MACHINE_TYPES[kind]
    assert node["imageType"] == "COS_CONTAINERD"
    assert node["gcfsConfig"] == {"enabled": True}
    assert node["serviceAccount"] is UNKNOWN
    assert node["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    assert node["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert node["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
    assert node["resourceLabels"] == {"environment": "prod", "managed-by": "training-platform"}


def test_nodes_carry_their_flavor_and_the_files_labels_and_none_that_gke_sets(planned: Callable[..., Planned]) -> None:
    labels = planned("H100 flex-start", labels={"example.com/use": "eval"}).inputs["nodeConfig"]["labels"]

    assert labels == {"training-platform/flavor": "h100-flex-start", "example.com/use": "eval"}


def test_a_label_of_the_file_does_not_change_the_flavor(planned: Callable[..., Planned]) -> None:
    labels = planned("A100", labels={"training-platform/flavor": "mine"}).inputs["nodeConfig"]["labels"]

    assert labels == {"training-platform/flavor": "a100-40"}


# Values that Google Cloud refuses, for rules to find in the plan


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("v4 slices", {"topology": "3x5x7"}),
        ("v4 slices", {"topology": "cube"}),
        ("v4 slices", {"capacity": "flex-start"}),
        ("v5e hosts", {"zone": None, "topology": "16x16"}),
        ("H100 flex-start", {"max_run_hours": 10_000, "min_nodes": 5}),
        ("A100", {"boot_disk": {"type": "hyperdisk-balanced", "size_gb": 700_000}}),
        ("A100", {"max_run_hours": 1}),
    ],
)
def test_what_google_cloud_refuses_is_planned_all_the_same(
    kind: str, changes: dict[str, Any], planned: Callable[..., Planned]
) -> None:
    assert planned(kind, **changes).inputs["nodeConfig"]["machineType"] == MACHINE_TYPES[kind]
