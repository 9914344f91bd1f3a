"""GKE node pools of every kind: names, places, sizes, placement and order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.plans import PlannedStack, composed
from training_platform.config.expansion import cluster_pools
from training_platform.config.model.cluster import AutoProvisioningSpec, ClusterSpec
from training_platform.resources.compute_classes import compute_class, created_pools
from training_platform.resources.gke import cluster_autoscaling
from training_platform.resources.node_pools import PoolPlace, accelerator_pool, class_taints, node_pool_name
from training_platform.resources.plan import Component, Resource
from training_platform.resources.resource_types import CLUSTER
from training_platform.resources.scope import Scope
from training_platform.resources.spelling import wire_inputs
from training_platform.resources.stack_resource import StackResource

NODE_POOL = "gcp:container/nodePool:NodePool"
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"}
KINDS: dict[str, dict[str, Any]] = {
    "v4 slices": {"machine_type": "ct4p-hightpu-4t", "topology": "2x2x4", "slices": 2, "min_slices": 1},
    "v5e hosts": {
        "machine_type": "ct5lp-hightpu-8t",
        "zone": "us-west4-a",
        "topology": "2x4",
        "slices": 8,
        "min_slices": 1,
        "capacity": "spot",
    },
    "H100 flex-start": {
        "machine_type": "a3-highgpu-8g",
        "zone": "us-west4-a",
        "capacity": "flex-start",
        "max_run_hours": 24,
        "max_nodes": 5,
    },
    "H100 reserved": {
        "machine_type": "a3-megagpu-8g",
        "zone": "us-west4-a",
        "capacity": "reservation",
        "reservation": "h100-training",
        "min_nodes": 4,
        "max_nodes": 6,
    },
    "A100": {"machine_type": "a2-highgpu-8g", "zone": "us-west4-a", "max_nodes": 3},
    "A100 80 GB": {"machine_type": "a2-ultragpu-8g", "zone": "us-west4-a", "max_nodes": 3},
}


@pytest.fixture
def pool_plan(scope: Scope) -> Callable[..., PlannedStack]:
    """Plan the pool ``train`` of cluster ``west``, of a kind and with some of its fields changed; v4 is in its zone."""

    def plan(kind: str, **changes: Any) -> PlannedStack:
        location = "us-central2-b" if kind == "v4 slices" else "us-west4"
        spec = {"location": location, "subnet": RANGES, "node_pools": {"train": {**KINDS[kind], **changes}}}
        (pool,) = cluster_pools("west", ClusterSpec.model_validate(spec))
        place = PoolPlace(scope=scope, location=location, cluster="prod-west", service_account="nodes@example.com")

        def compose(into: Component) -> None:
            for gke_pool in pool.gke_pools:
                into.add(accelerator_pool(pool, gke_pool, place))

        return composed(compose)

    return plan


@pytest.fixture
def planned(pool_plan: Callable[..., PlannedStack]) -> Callable[..., StackResource]:
    """Return what the first GKE node pool of such a pool is planned as."""
    return lambda kind, **changes: pool_plan(kind, **changes).of(NODE_POOL)[0]


@pytest.mark.parametrize("kind", ["v5e hosts", "H100 reserved", "A100"])
def test_vms_that_stand_alone_share_a_pool(kind: str, pool_plan: Callable[..., PlannedStack]) -> None:
    (pool,) = pool_plan(kind).of(NODE_POOL)

    assert (pool.name, pool.inputs["name"]) == ("west-train-pool", "train")


def test_the_longest_name_fits_gke() -> None:
    spec = {"machine_type": "ct4p-hightpu-4t", "topology": "2x2x4", "slices": 1000}
    cluster = {"location": "us-central2-b", "subnet": RANGES, "node_pools": {"p" * 30: spec}}
    (pool,) = cluster_pools("c" * 30, ClusterSpec.model_validate(cluster))

    names = {node_pool_name(pool, gke_pool) for gke_pool in pool.gke_pools}
    assert len(names) == 1000
    assert max(len(name) for name in names) <= 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_belongs_to_its_cluster_project_and_one_zone(kind: str, planned: Callable[..., StackResource]) -> None:
    inputs = planned(kind).inputs

    assert inputs["project"] == "example-train-prod"
    assert inputs["cluster"] == "prod-west"
    assert inputs["location"] == ("us-central2-b" if kind == "v4 slices" else "us-west4")
    assert inputs["nodeLocations"] == ["us-central2-b" if kind == "v4 slices" else "us-west4-a"]


def test_without_a_zone_a_regional_clusters_pool_takes_all_zones_and_counts_per_zone(
    planned: Callable[..., StackResource],
) -> None:
    inputs = planned("A100", zone=None, min_nodes=1).inputs

    assert "nodeLocations" not in inputs
    assert inputs["initialNodeCount"] == 1
    assert inputs["autoscaling"] == {"minNodeCount": 1, "maxNodeCount": 3, "locationPolicy": "ANY"}


@pytest.mark.parametrize(
    ("kind", "minimum", "maximum"),
    [
        ("v4 slices", 16 // 4, 16 // 4),  # the first of two slices is always there
        ("v5e hosts", 1, 8),
        ("H100 flex-start", 0, 5),
        ("H100 reserved", 4, 6),
        ("A100", 0, 3),
    ],
)
def test_a_pool_scales_by_the_pair_per_zone(
    kind: str, minimum: int, maximum: int, planned: Callable[..., StackResource]
) -> None:
    inputs = planned(kind).inputs

    assert inputs["autoscaling"] == {"minNodeCount": minimum, "maxNodeCount": maximum, "locationPolicy": "ANY"}
    assert inputs["initialNodeCount"] == minimum
    assert "nodeCount" not in inputs


@pytest.mark.parametrize(
    ("kind", "ignored"),
    [
        ("v4 slices", ["initialNodeCount"]),
        ("v5e hosts", ["initialNodeCount"]),
        ("H100 flex-start", ["initialNodeCount", "upgradeSettings"]),
        ("H100 reserved", ["initialNodeCount"]),
        ("A100", ["initialNodeCount"]),
    ],
)
def test_what_gke_changes_by_itself_is_no_change_of_ours(
    kind: str, ignored: list[str], planned: Callable[..., StackResource]
) -> None:
    assert planned(kind).options["ignoreChanges"] == ignored


@pytest.mark.parametrize(("kind", "pods"), [("v4 slices", 16), ("v5e hosts", 32), ("A100", 32)])
def test_a_vm_takes_the_block_of_addresses_that_its_pods_need(
    kind: str, pods: int, planned: Callable[..., StackResource]
) -> None:
    assert planned(kind).inputs["maxPodsPerNode"] == pods


def test_hosts_of_a_slice_are_joined_in_its_topology_from_one_chip_more_than_a_host_has(
    planned: Callable[..., StackResource],
) -> None:
    four = {"machine_type": "ct5lp-hightpu-4t", "slices": 1, "min_slices": 0}

    assert "placementPolicy" not in planned("v5e hosts", **four, topology="2x2").inputs
    joined = planned("v5e hosts", **four, topology="2x4").inputs["placementPolicy"]
    assert joined == {"type": "COMPACT", "tpuTopology": "2x4"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_pool_waits_for_the_old_ones_end(kind: str, planned: Callable[..., StackResource]) -> None:
    options = planned(kind).options

    assert options["deleteBeforeReplace"] is True
    assert options["customTimeouts"] == {"update": "8h"}
    assert options["protect"] is True


MACHINE_TYPES = {
    "v4 slices": "ct4p-hightpu-4t",
    "v5e hosts": "ct5lp-hightpu-8t",
    "H100 flex-start": "a3-highgpu-8g",
    "H100 reserved": "a3-megagpu-8g",
    "A100": "a2-highgpu-8g",
    "A100 80 GB": "a2-ultragpu-8g",
}


def test_spot_vms_take_no_reservation(planned: Callable[..., StackResource]) -> None:
    node = planned("v5e hosts").inputs["nodeConfig"]

    assert node["spot"] is True
    assert node["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert node.keys().isdisjoint({"flexStart", "preemptible", "maxRunDuration"})


def test_flex_start_is_as_gke_takes_it(planned: Callable[..., StackResource]) -> None:
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


def test_flex_start_without_a_limit_leaves_gkes(planned: Callable[..., StackResource]) -> None:
    assert "maxRunDuration" not in planned("H100 flex-start", max_run_hours=None).inputs["nodeConfig"]


@pytest.mark.parametrize("kind", ["v4 slices", "A100"])
def test_vms_on_demand_eat_no_reservation(kind: str, planned: Callable[..., StackResource]) -> None:
    node = planned(kind).inputs["nodeConfig"]

    assert node["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert node.keys().isdisjoint({"spot", "flexStart", "maxRunDuration"})


@pytest.mark.parametrize("kind", ["v4 slices", "v5e hosts", "H100 reserved", "A100"])
def test_an_upgrade_needs_no_vm_beyond_quota_and_reservation(kind: str, planned: Callable[..., StackResource]) -> None:
    inputs = planned(kind).inputs

    assert inputs["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}
    assert inputs["management"] == {"autoRepair": True, "autoUpgrade": True}


def test_gpus_are_written_out_with_their_driver_and_local_ssd(planned: Callable[..., StackResource]) -> None:
    node = planned("A100 80 GB").inputs["nodeConfig"]

    assert node["guestAccelerators"] == [
        {"type": "nvidia-a100-80gb", "count": 8, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
    ]
    assert node["ephemeralStorageLocalSsdConfig"] == {"localSsdCount": 8}
    assert "ephemeralStorageLocalSsdConfig" not in planned("A100").inputs["nodeConfig"]


@pytest.mark.parametrize(
    ("kind", "socket"), [("A100", True), ("A100 80 GB", True), ("H100 flex-start", False), ("H100 reserved", False)]
)
def test_fast_socket_is_for_gpus_without_gpudirect(
    kind: str, socket: bool, planned: Callable[..., StackResource]
) -> None:
    node = planned(kind).inputs["nodeConfig"]

    assert node["gvnic"] == {"enabled": True}
    assert node.get("fastSocket") == ({"enabled": True} if socket else None)


def test_a_boot_disk_is_written_out_in_one_form(planned: Callable[..., StackResource]) -> None:
    left_out = planned("v5e hosts").inputs["nodeConfig"]
    written_out = planned("v5e hosts", boot_disk={"type": "pd-ssd", "size_gb": 201}).inputs["nodeConfig"]

    assert left_out["bootDisk"] == {"sizeGb": 100, "diskType": "pd-balanced"}
    assert written_out["bootDisk"] == {"sizeGb": 201, "diskType": "pd-ssd"}
    assert left_out.keys().isdisjoint({"diskSizeGb", "diskType"})


@pytest.mark.parametrize("kind", MACHINE_TYPES)
def test_every_vm_is_private_streams_images_and_hides_its_account(
    kind: str, planned: Callable[..., StackResource]
) -> None:
    inputs = planned(kind).inputs
    node = inputs["nodeConfig"]

    assert inputs["networkConfig"] == {"enablePrivateNodes": True}
    assert node["machineType"] == MACHINE_TYPES[kind]
    assert node["imageType"] == "COS_CONTAINERD"
    assert node["gcfsConfig"] == {"enabled": True}
    assert node["serviceAccount"] == "nodes@example.com"
    assert node["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    assert node["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert node["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
    assert node["resourceLabels"] == {"environment": "prod", "managed-by": "training-platform"}


# Values that Google Cloud refuses, for rules to find in the plan


KEY = "compute.googleapis.com/reservation-name"
RANGES_WAYS = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
H100 = {"machine_type": "a3-highgpu-8g", "zone": "us-west4-a"}
SLICES = {"machine_type": "ct5lp-hightpu-4t", "zone": "us-west4-a", "topology": "4x8", "slices": 2}
PLAIN = ClusterSpec.model_validate({"location": "us-west4", "subnet": RANGES_WAYS})
Planner = Callable[..., StackResource]


def cluster(pools: dict[str, Any], *priorities: dict[str, Any], **fields: Any) -> ClusterSpec:
    spec = {"location": "us-west4", "subnet": RANGES_WAYS, "node_pools": pools}
    return ClusterSpec.model_validate({**spec, "compute_classes": {"best": {"priorities": priorities, **fields}}})


def class_spec(*priorities: dict[str, Any], **fields: Any) -> dict[str, Any]:
    spec = cluster({"h100": H100, "slices": SLICES}, *priorities, **fields)
    pools = {pool.name: pool for pool in cluster_pools("west", spec)}
    return compute_class(spec.compute_classes["best"], spec, pools, "nodes@example.com")


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


def test_nodes_of_a_class_are_kept_for_its_jobs() -> None:
    spec = cluster({"h100": H100, "other": H100}, {"node_pools": ("h100",)})
    taints = {pool.name: class_taints(pool) for pool in cluster_pools("west", spec)}

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
    ("reservation", "affinity"),
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
def test_a_class_takes_each_kind_of_reservation(reservation: Any, affinity: dict[str, Any]) -> None:
    priority = {"machine_type": "a3-highgpu-8g", "capacity": "reservation", "reservation": reservation}

    assert class_spec(priority)["priorities"][0]["reservations"] == affinity


def test_zones_of_a_reservation_by_name_are_beside_its_name_and_nowhere_else() -> None:
    reserved = {"machine_type": "a3-highgpu-8g", "capacity": "reservation", "reservation": {"name": "h100"}}
    (priority,) = class_spec({**reserved, "zones": ("us-west4-a",)})["priorities"]

    assert priority["reservations"]["specific"] == [{"name": "h100", "zones": ["us-west4-a"]}]
    assert "location" not in priority


def test_limits_are_named_as_gke_names_them() -> None:
    spec = AutoProvisioningSpec(
        cpu=512,
        memory_gb=4096,
        accelerators={"tpu-v6e-slice": 64},
        zones=("us-west4-a",),
    )
    spec_with_limits = PLAIN.model_copy(update={"auto_provisioning": spec})

    inputs = {"cluster_autoscaling": cluster_autoscaling(spec_with_limits, "nodes@example.com")}
    cluster = Resource(type="gcp:container/cluster:Cluster", name="west", inputs=inputs)
    (planned,) = composed(lambda into: into.add(cluster)).of(cluster.type)

    autoscaling = planned.inputs["clusterAutoscaling"]
    assert autoscaling["enabled"] is True
    assert autoscaling["autoscalingProfile"] == "OPTIMIZE_UTILIZATION"
    assert autoscaling["autoProvisioningLocations"] == ["us-west4-a"]
    assert autoscaling["resourceLimits"] == [
        {"resourceType": "cpu", "maximum": 512},
        {"resourceType": "memory", "maximum": 4096},
        {"resourceType": "tpu-v6e-slice", "maximum": 64},
    ]
    defaults = autoscaling["autoProvisioningDefaults"]
    assert defaults["diskType"] == "hyperdisk-balanced"
    assert defaults["serviceAccount"] == "nodes@example.com"
    assert defaults["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    assert defaults["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}


def test_a_cluster_without_limits_makes_no_pools_by_itself() -> None:
    autoscaling = wire_inputs(CLUSTER, {"cluster_autoscaling": cluster_autoscaling(PLAIN, "nodes@example.com")})

    assert autoscaling == {"clusterAutoscaling": {"enabled": False, "autoscalingProfile": "OPTIMIZE_UTILIZATION"}}


@pytest.mark.parametrize(
    ("minimum", "provisioning"), [(None, None), (3, {"enabled": True, "minProvisionNodes": 3})], ids=["all", "three"]
)
def test_a_pool_is_created_with_all_of_its_first_vms_unless_the_file_says_with_how_many(
    planned: Planner, minimum: int | None, provisioning: dict[str, Any] | None
) -> None:
    changes = {} if minimum is None else {"min_provision_nodes": minimum}

    assert planned("H100 reserved", **changes).inputs.get("bestEffortProvisioning") == provisioning


def test_a_pool_that_gke_would_create_for_a_class_starts_empty(scope: Scope) -> None:
    spec = cluster({}, {"machine_type": "a3-highgpu-8g", "capacity": "flex-start", "max_run_hours": 24})
    zonal = spec.model_copy(update={"location": "us-west4-a"})

    ((_, pool),) = created_pools("west", zonal, scope)

    assert pool.inputs["autoscaling"]["min_node_count"] == pool.inputs["initial_node_count"] == 0


def test_slices_are_created_whole(planned: Planner) -> None:
    with pytest.raises(ValueError, match="is not compatible with ct4p-hightpu-4t, which has TPUs"):
        planned("v4 slices", min_provision_nodes=1)


def test_another_strategy_of_gpudirect_is_another_pool(planned: Planner) -> None:
    strategy = {"provider_inputs": {"node_config": {"gpudirect_strategy": "RDMA"}}}
    pool = planned("H100 reserved", **strategy)

    assert pool.inputs["nodeConfig"]["gpudirectStrategy"] == "RDMA"
    assert "nodeConfig.gpudirectStrategy" in pool.options["replaceOnChanges"]
