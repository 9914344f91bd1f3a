"""Custom compute classes of a cluster: ``cloud.google.com/v1`` ComputeClass objects, a kind that GKE installs.

Sources, read 2026-11-21: GoogleCloudPlatform/compute-class-api 8067eae (2026-08-21), the types and their validation;
google/skills, gke-compute-classes, for zones in addition to a named reservation; GKE docs, ComputeClass reference.
Every field that is written here was compared with the types, and a test checks the names. No class was created on GKE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from training_platform.catalog.zones import zones_in
from training_platform.config.expansion import (
    ZONES_OF_A_REGIONAL_CLUSTER,
    ExpandedPool,
    GkePool,
    auto_provisioned_pools,
    cluster_pools,
)
from training_platform.config.model.capacity import ReservationSpec
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.compute_class import ComputeClassSpec, Priority
from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.names import name_in_cluster
from training_platform.config.reading.finding import Path
from training_platform.resources.kubernetes_objects import kubernetes_object
from training_platform.resources.node_pools import NETWORK_PROFILE, PoolPlace, accelerator_pool, node_pool_name
from training_platform.resources.plan import Resource
from training_platform.resources.resource_types import COMPUTE_CLASS
from training_platform.resources.scope import Scope

_HOUR = 3600  # seconds


def compute_classes(name: str, cluster: ClusterSpec, scope: Scope, service_account: Any) -> Iterator[Resource]:
    """Yield a cluster's compute classes. ``name`` is its key; nodes that GKE creates itself use the service account."""
    pools = {pool.name: pool for pool in cluster_pools(name, cluster)}
    for key, spec in cluster.compute_classes.items():
        logical_name = f"{name_in_cluster(name, 'compute_classes', key)}-object"
        class_spec = compute_class(spec, cluster, pools, service_account, scope.key(cluster.location))
        yield kubernetes_object(COMPUTE_CLASS, logical_name, scope, key, {"spec": class_spec})


def compute_class(
    spec: ComputeClassSpec,
    cluster: ClusterSpec,
    pools: Mapping[str, ExpandedPool],
    service_account: Any,
    key: str | None = None,
) -> dict[str, Any]:
    """Return the spec of a ComputeClass. ``pools`` are the cluster's pools by name; ``key`` encrypts boot disks."""
    object_spec: dict[str, Any] = {
        "priorities": [_priority(priority, cluster, pools, key) for priority in spec.priorities],
        "nodePoolAutoCreation": {"enabled": spec.makes_pools},
        "whenUnsatisfiable": "DoNotScaleUp",
        "activeMigration": {"optimizeRulePriority": spec.active_migration},
    }
    if spec.makes_pools:
        # Pools that GKE creates have our account and stream images. So do pools of ours, or they would not match.
        object_spec["nodePoolConfig"] = {"serviceAccount": service_account, "imageStreaming": {"enabled": True}}
        machines = [priority.as_pool.machine for priority in spec.priorities if priority.machine_type]
        if any(cluster.network_devices(machine) for machine in machines):
            object_spec["nodePoolConfig"]["dra"] = {"networking": {"enabled": True}}
    return object_spec


def _priority(
    priority: Priority, cluster: ClusterSpec, pools: Mapping[str, ExpandedPool], key: str | None
) -> dict[str, Any]:
    """Return one priority of a ComputeClass, with the names of its pools in GKE: each multi-host slice is a pool."""
    if priority.node_pools:
        members = (pools[name] for name in priority.node_pools)
        return {"nodepools": [node_pool_name(pool, gke_pool) for pool in members for gke_pool in pool.gke_pools]}
    return dict(_machine_fields(priority, cluster, priority.as_pool, key))


def _machine_fields(
    priority: Priority, cluster: ClusterSpec, pool: NodePoolSpec, key: str | None
) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a priority that describes machines instead of naming pools."""
    machine = pool.machine
    assert machine.accelerator is not None  # the model takes machine types with chips of their own only
    yield "machineType", machine.name
    chips = {"type": machine.accelerator.gke_label, "count": machine.chips}
    if machine.kind == "tpu":
        yield "tpu", {**chips, "topology": priority.topology}
    else:
        yield "gpu", {**chips, "driverVersion": "default"}
    if cluster.network_devices(machine):
        yield "acceleratorNetworkProfile", NETWORK_PROFILE
    if priority.capacity == "spot":
        yield "spot", True
    if priority.capacity == "flex-start":
        yield "flexStart", {"enabled": True}
    yield "reservations", reservations(priority.reservation, priority.zones)
    disk: dict[str, Any] = {
        "bootDiskType": pool.boot_disk.type_on(machine),
        "bootDiskSize": pool.boot_disk.size_gb,
    }
    if key:
        disk["bootDiskKMSKey"] = key
    yield "storage", disk
    if priority.zones and not priority.names_reservation:
        yield "location", {"zones": list(priority.zones)}
    if priority.max_run_hours:
        yield "maxRunDurationSeconds", priority.max_run_hours * _HOUR
    if priority.max_wait_minutes:
        yield "capacityCheckWaitTimeSeconds", priority.max_wait_minutes * 60


def reservations(reservation: ReservationSpec | None, zones: Sequence[str] = ()) -> dict[str, Any]:
    """Return the reservations that a priority uses. Without this field, GKE would use any reservation that fits.

    ``zones`` are the zones of a named reservation. GKE refuses them in a priority that has its own zones.
    """
    if reservation is None:
        return {"affinity": "None"}
    if reservation.any:
        return {"affinity": "AnyBestEffort"}
    specific: dict[str, Any] = {"name": reservation.name}
    if reservation.project:
        specific["project"] = reservation.project
    if zones:
        specific["zones"] = list(zones)
    if reservation.block:
        block: dict[str, Any] = {"name": reservation.block}
        if reservation.sub_block:
            block["reservationSubBlock"] = {"name": reservation.sub_block}
        specific["reservationBlock"] = block
    return {"affinity": "Specific", "specific": [specific]}


def created_pools(cluster_name: str, cluster: ClusterSpec, environment_scope: Scope) -> Iterator[tuple[Path, Resource]]:
    """Yield the node pool that GKE would create for each priority that describes machines, and the priority's path.

    These pools are never registered. Rules check a priority through its pool, which has one slice, or one VM per zone.
    For a priority without zones, GKE uses a zone of the cluster; here it is the first zone that has the machine.
    """
    account = f"nodes@{environment_scope.project}.iam.gserviceaccount.com"  # any but the default one
    place = PoolPlace(scope=environment_scope, location=cluster.location, cluster=cluster_name, service_account=account)
    pools = {pool.name: pool for pool in auto_provisioned_pools(cluster_name, cluster)}
    for class_name, compute_class in cluster.compute_classes.items():
        for index, priority in enumerate(compute_class.priorities):
            if priority.machine_type is None:
                continue
            pool = pools[f"{class_name}-{index}"]
            without_fabric = pool.spec.model_copy(update={"gpu_direct": False})  # a class has no more networks
            zone_count = 1 if pool.zone else ZONES_OF_A_REGIONAL_CLUSTER
            gke_pool = GkePool(f"{cluster_name}-{pool.name}", 0, max_nodes=pool.hosts * zone_count)
            resource = accelerator_pool(replace(pool, spec=without_fabric), gke_pool, place)
            zones = list(priority.zones) or ([pool.zone] if pool.zone else _likely_zones(pool))
            resource.inputs = {**resource.inputs, "node_locations": zones}
            yield ("clusters", cluster_name, "compute_classes", class_name, "priorities", index), resource


def _likely_zones(pool: ExpandedPool) -> list[str]:
    """Return one zone of a pool's region, if any is known: the first that has the machine, or else the first."""
    zones = zones_in(pool.region)
    return [*(zone for zone in zones if zone in pool.machine.zones), *zones][:1]
