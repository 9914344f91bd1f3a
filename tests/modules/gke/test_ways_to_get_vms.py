"""How the VMs of a pool are had, as GKE is told: queued, from each kind of reservation, for a compute class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pulumi_gcp import container

from training_platform.checks.planning.recorder import Plan
from training_platform.config.model.cluster import AutoProvisioningSpec, ClusterSpec
from training_platform.config.pools import cluster_pools
from training_platform.resources.compute_classes import compute_class
from training_platform.resources.declared import without_none
from training_platform.resources.gke import cluster_autoscaling
from training_platform.resources.node_pools import class_taints
from training_platform.resources.planned import Planned

KEY = "compute.googleapis.com/reservation-name"
RANGES = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
H100 = {"machine_type": "a3-highgpu-8g", "zone": "us-west4-a"}
SLICES = {"machine_type": "ct5lp-hightpu-4t", "zone": "us-west4-a", "topology": "4x8", "slices": 2}
PLAIN = ClusterSpec.model_validate({"location": "us-west4", "subnet": RANGES})
Planner = Callable[..., Planned]


def cluster(pools: dict[str, Any], *priorities: dict[str, Any], **fields: Any) -> ClusterSpec:
    spec = {"location": "us-west4", "subnet": RANGES, "node_pools": pools}
    return ClusterSpec.model_validate({**spec, "compute_classes": {"best": {"priorities": priorities, **fields}}})


def class_spec(*priorities: dict[str, Any], **fields: Any) -> dict[str, Any]:
    made = cluster({"h100": H100, "slices": SLICES}, *priorities, **fields)
    pools = {pool.name: pool for pool in cluster_pools("west", made)}
    return compute_class(made.compute_classes["best"], pools, "nodes@example.com")


def test_queued_vms_are_flex_start_vms_that_come_by_request(planned: Planner) -> None:
    inputs = planned("H100 flex-start", capacity="queued-provisioning").inputs
    node = inputs["nodeConfig"]

    assert inputs["queuedProvisioning"] == {"enabled": True}
    assert node["flexStart"] is True
    assert node["labels"]["cloud.google.com/gke-queued"] == "true"
    assert node["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert node["maxRunDuration"] == f"{24 * 60 * 60}s"
    assert (inputs["initialNodeCount"], inputs["autoscaling"]["minNodeCount"]) == (0, 0)
    assert inputs["management"]["autoRepair"] is False
    assert "upgradeSettings" not in inputs


@pytest.mark.parametrize(
    ("reservation", "affinity"),
    [
        ("any", {"consumeReservationType": "ANY_RESERVATION"}),
        (
            {"name": "h100", "project": "example-shared", "block": "b1"},
            {
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": KEY,
                "values": ["projects/example-shared/reservations/h100/reservationBlocks/b1"],
            },
        ),
    ],
)
def test_each_kind_of_reservation_reaches_gke(planned: Planner, reservation: Any, affinity: dict[str, Any]) -> None:
    assert planned("H100 reserved", reservation=reservation).inputs["nodeConfig"]["reservationAffinity"] == affinity


def test_the_days_of_a_future_reservation_are_on_its_nodes(planned: Planner) -> None:
    future = {"name": "h100", "starts": "2026-12-01", "ends": "2027-02-28"}
    labels = planned("H100 reserved", reservation=future).inputs["nodeConfig"]["labels"]

    assert labels["training-platform/reserved-from"] == "2026-12-01"
    assert labels["training-platform/reserved-until"] == "2027-02-28"


def test_nodes_of_a_class_are_kept_for_its_jobs() -> None:
    made = cluster({"h100": H100, "other": H100}, {"node_pools": ("h100",)})
    taints = {pool.name: class_taints(pool) for pool in cluster_pools("west", made)}

    (taint,) = taints["h100"]
    assert taint == {"key": "cloud.google.com/compute-class", "value": "best", "effect": "NO_SCHEDULE"}
    assert taints["other"] == []


def test_a_class_names_pools_as_gke_does_and_each_slice_by_itself() -> None:
    spec = class_spec({"node_pools": ("slices",)})

    assert spec["priorities"] == [{"nodepools": ["slices-0", "slices-1"]}]
    assert spec["nodePoolAutoCreation"] == {"enabled": False}
    assert spec["whenUnsatisfiable"] == "DoNotScaleUp"
    assert "nodePoolConfig" not in spec


def test_machines_of_a_class_say_all_that_gke_needs_to_make_pools_of_them() -> None:
    spec = class_spec(
        {
            "machine_type": "a3-highgpu-8g",
            "capacity": "flex-start",
            "zones": ("us-west4-a",),
            "max_run_hours": 2,
            "max_wait_minutes": 5,
            "boot_disk": {"size_gb": 200},
        }
    )

    assert spec["nodePoolAutoCreation"] == {"enabled": True}
    assert spec["nodePoolConfig"] == {"serviceAccount": "nodes@example.com", "imageStreaming": {"enabled": True}}
    assert spec["priorities"] == [
        {
            "machineType": "a3-highgpu-8g",
            "gpu": {"type": "nvidia-h100-80gb", "count": 8, "driverVersion": "default"},
            "flexStart": {"enabled": True},
            "reservations": {"affinity": "None"},
            "storage": {"bootDiskType": "pd-balanced", "bootDiskSize": 200},
            "location": {"zones": ["us-west4-a"]},
            "maxRunDurationSeconds": 2 * 3600,
            "capacityCheckWaitTimeSeconds": 5 * 60,
        }
    ]


def test_slices_of_a_class_have_type_count_and_topology() -> None:
    (priority,) = class_spec({"machine_type": "ct5lp-hightpu-4t", "topology": "4x8", "capacity": "spot"})["priorities"]

    assert priority["tpu"] == {"type": "tpu-v5-lite-podslice", "count": 4, "topology": "4x8"}
    assert priority["spot"] is True
    assert "gpu" not in priority


@pytest.mark.parametrize(
    ("reservation", "wanted"),
    [
        ("any", {"affinity": "AnyBestEffort"}),
        ({"name": "h100"}, {"affinity": "Specific", "specific": [{"name": "h100"}]}),
        (
            {"name": "h100", "project": "example-shared", "block": "b1", "sub_block": "s1"},
            {
                "affinity": "Specific",
                "specific": [
                    {
                        "name": "h100",
                        "project": "example-shared",
                        "reservationBlock": {"name": "b1", "reservationSubBlock": {"name": "s1"}},
                    }
                ],
            },
        ),
    ],
)
def test_a_class_takes_each_kind_of_reservation(reservation: Any, wanted: dict[str, Any]) -> None:
    said = {"machine_type": "a3-highgpu-8g", "capacity": "reservation", "reservation": reservation}

    assert class_spec(said)["priorities"][0]["reservations"] == wanted


def test_what_a_class_does_besides_is_written() -> None:
    said = {"when_unsatisfiable": "ScaleUpAnyway", "active_migration": True, "consolidation_delay_minutes": 10}
    spec = class_spec({"node_pools": ("h100",)}, **said)

    assert spec["whenUnsatisfiable"] == "ScaleUpAnyway"
    assert spec["activeMigration"] == {"optimizeRulePriority": True}
    assert spec["autoscalingPolicy"] == {"consolidationDelayMinutes": 10}


def test_limits_are_named_as_gke_names_them(deploy: Callable[[Callable[[], None]], Plan]) -> None:
    spec = AutoProvisioningSpec(
        cpu=512,
        memory_gb=4096,
        accelerators={"tpu-v6e-slice": 64},
        zones=("us-west4-a",),
    )
    given = PLAIN.model_copy(update={"auto_provisioning": spec})

    def program() -> None:
        autoscaling = without_none(cluster_autoscaling(given, "nodes@example.com"))
        container.Cluster("west", location="us-west4", cluster_autoscaling=autoscaling)

    (planned,) = deploy(program).of("gcp:container/cluster:Cluster")
    made = planned.inputs["clusterAutoscaling"]
    assert made["enabled"] is True
    assert made["autoscalingProfile"] == "OPTIMIZE_UTILIZATION"
    assert made["autoProvisioningLocations"] == ["us-west4-a"]
    assert made["resourceLimits"] == [
        {"resourceType": "cpu", "maximum": 512},
        {"resourceType": "memory", "maximum": 4096},
        {"resourceType": "tpu-v6e-slice", "maximum": 64},
    ]
    defaults = made["autoProvisioningDefaults"]
    assert defaults["diskType"] == "hyperdisk-balanced"
    assert defaults["serviceAccount"] == "nodes@example.com"
    assert defaults["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    assert defaults["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}


def test_a_cluster_without_limits_makes_no_pools_by_itself() -> None:
    assert cluster_autoscaling(PLAIN, "nodes@example.com") == {
        "enabled": False,
        "autoscaling_profile": "OPTIMIZE_UTILIZATION",
    }


def test_idle_nodes_stay_longer_where_the_file_says_so() -> None:
    balanced = PLAIN.model_copy(update={"autoscaling_profile": "BALANCED"})

    assert cluster_autoscaling(balanced, "nodes@example.com")["autoscaling_profile"] == "BALANCED"
