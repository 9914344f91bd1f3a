"""Views of settings from the model, as far as a stack file decides them: upkeep, sharing of GPUs, networks, classes.

A pool that keeps every default has no view of them: there is nothing for the rules to find, and large fleets stay fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from training_platform.config.expansion.gpu_fabric import GpuFabric, fabric_name
from training_platform.config.expansion.pools import CLASS_LABEL, ExpandedPool
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.compute_class import ComputeClassSpec, Priority
from training_platform.config.spec.maintenance import Maintenance
from training_platform.resources.planned import UNKNOWN
from training_platform.rules.gke.identities import CLOUD_PLATFORM
from training_platform.rules.gke.nodes import COS
from training_platform.rules.views.cluster import AutoProvisioningView, ClusterView, Exclusion, Limit, Window
from training_platform.rules.views.compute_class import ClassPriority, ComputeClassView
from training_platform.rules.views.node_pool import Nic, Taint
from training_platform.rules.views.view import View

NETWORK = "network-vpc"
NAME_LIMIT = 63
_AUTO_PROVISIONED = ("clusterAutoscaling.enabled", "clusterAutoscaling.resourceLimits")
_ALIKE: Mapping[str, Any] = {
    "spot_twice": False,
    "min_cpu_platform": None,
    "image_type": COS,
    "gvnic": True,
    "fast_socket": False,
    "image_streaming": True,
    "secondary_disks": 0,
    "driver": None,
    "partition": None,
    "sharing": None,
    "sharing_clients": None,
    "confidential": None,
    "maintenance": None,
    "shutdown_seconds": None,
    "policy": None,
    "reservation_path": None,
    "nics": (),
    "network_profile": None,
    "metadata_mode": "GKE_METADATA",
    "scopes": (CLOUD_PLATFORM,),
    "service_account": "nodes-account",
    "tags": 0,
    "taints": (),
    "provisioned": False,
    "storage_pools": 0,
    "disk_twice": False,
    "replaced_first": True,
}
_DRIVERS = {"default": "DEFAULT", "latest": "LATEST", "disabled": "INSTALLATION_DISABLED"}


def uncut(name: str) -> Any:
    """Return a name that Google Cloud takes as it is; the component cuts a longer one, in a way of its own."""
    return name if len(name) <= NAME_LIMIT else UNKNOWN


def cluster_settings(project: str, cluster: ClusterSpec) -> dict[str, Any]:
    """Return a cluster's settings."""
    return {
        "network": NETWORK,
        "datapath": "ADVANCED_DATAPATH",
        "networking_mode": "VPC_NATIVE",
        "multi_networking": True,
        "network_policy": False,
        "dataplane_policies": False,
        "autopilot": False,
        "clashing": (
            *_AUTO_PROVISIONED * bool(cluster.auto_provisioning), "removeDefaultNodePool", "enableShieldedNodes",
        ),
        "zones": (),
        "node_version": None,
        "remove_default_pool": True,
        "initial_nodes": 1,
        "inline_pools": 0,
        "default_machine": cluster.system_pool.machine_type,
        "workload_pool": f"{project}.svc.id.goog",
        "tags": 0,
        "window": Window(cluster.maintenance.start, cluster.maintenance.end, cluster.maintenance.recurrence),
        "exclusions": tuple(_exclusions(cluster.maintenance)),
    }  # fmt: skip


def auto_provisioning(view: ClusterView, cluster: ClusterSpec) -> Iterator[View]:
    """Yield the view of a cluster's auto-provisioning, where it has any."""
    auto = cluster.auto_provisioning
    if auto:
        limits = {"cpu": auto.cpu, "memory": auto.memory_gb, **auto.accelerators}
        found = AutoProvisioningView(
            **_head(view),
            limits=tuple(Limit(resource, most) for resource, most in limits.items()),
            zones=auto.zones,
            written=True,
            disk_type=auto.boot_disk_type,
            disk_gb=auto.boot_disk.size_gb,
            strategy="SURGE",
            max_surge=auto.max_surge,
        )
        found.__dict__["cluster"] = view
        yield found


def _exclusions(spec: Maintenance) -> Iterator[Exclusion]:
    for name, each in sorted(spec.exclusions.items()):
        yield Exclusion(name, each.start, each.end, each.scope.upper().replace("-", "_"))


def system_pool_settings(max_surge: int) -> dict[str, Any]:
    """Return a system pool's settings."""
    own = {"upgrades": True, "max_surge": max_surge, "max_unavailable": 0, "ignored": ("initialNodeCount",)}
    return {**_ALIKE, **own}


def pool_settings(
    strategy: str | None, pool: ExpandedPool, fabrics: Mapping[str, GpuFabric], prefix: str
) -> dict[str, Any]:
    """Return a pool's settings; ``prefix`` starts the names of its cluster's own."""
    reservation = pool.spec.reservation
    fabric = fabrics.get(fabric_name(pool) or "")
    policy = uncut(f"{prefix}-{pool.policy_topology}") if pool.policy_topology else None
    own = {
        **_upgrades(strategy, pool),
        **(_gpu(pool) if pool.machine.kind == "gpu" else {}),
        "fast_socket": pool.machine.fast_socket,
        "secondary_disks": len(pool.spec.preload_images),
        "confidential": pool.spec.confidential,
        "policy": policy,
        "reservation_path": reservation.path if reservation else None,
        "nics": tuple(_nics(fabric, pool, prefix)) if fabric else (),
        "taints": tuple(_taints(pool)),
        "ignored": tuple(_ignored(strategy, policy)),
    }
    return {**_ALIKE, **own}


def _head(view: View) -> dict[str, Any]:
    return {"stack": view.stack, "type": view.type, "name": view.name, "origin": view.origin}


def _upgrades(strategy: str | None, pool: ExpandedPool) -> dict[str, Any]:
    by_surge = strategy == "SURGE"
    return {
        "upgrades": strategy is not None,
        "max_surge": pool.spec.upgrades.max_surge if by_surge else None,
        "max_unavailable": pool.spec.upgrades.max_unavailable if by_surge else None,
    }


def _gpu(pool: ExpandedPool) -> dict[str, Any]:
    sharing = pool.spec.sharing
    return {
        "driver": _DRIVERS[pool.spec.driver],
        "partition": pool.spec.partition,
        "sharing": sharing.strategy.upper().replace("-", "_") if sharing else None,
        "sharing_clients": sharing.max_clients if sharing else None,
    }


def _nics(fabric: GpuFabric, pool: ExpandedPool, prefix: str) -> Iterator[Nic]:
    for vpc, nic in fabric.nics(pool):
        yield Nic(uncut(f"{prefix}-{vpc.name}"), uncut(f"{prefix}-{nic.name}"))


def _taints(pool: ExpandedPool) -> Iterator[Taint]:
    if pool.machine.kind == "gpu":
        yield Taint(pool.accelerator.resource, "NO_SCHEDULE")
    yield from (Taint(key, taint.effect) for key, taint in sorted(pool.spec.taints.items()))
    if pool.compute_class:
        yield Taint(CLASS_LABEL, "NO_SCHEDULE")


def _ignored(strategy: str | None, policy: object) -> Iterator[str]:
    yield "initialNodeCount"
    if strategy is None:
        yield "upgradeSettings"
    if policy is not None:
        yield "placementPolicy"


def compute_class(
    head: Mapping[str, Any], name: str, spec: ComputeClassSpec, pools: Iterable[ExpandedPool]
) -> ComputeClassView:
    """Return the view of a compute class; ``pools`` are those of its cluster."""
    by_name = {pool.name: pool for pool in pools}
    return ComputeClassView(
        **head,
        compute_class=name,
        makes_pools=spec.makes_pools,
        priorities=tuple(_priority(each, by_name) for each in spec.priorities),
    )


def _priority(priority: Priority, pools: Mapping[str, ExpandedPool]) -> ClassPriority:
    if priority.machine_type is None:
        members = (pools[name] for name in priority.node_pools)
        named = tuple(each.name.removeprefix(f"{pool.cluster}-") for pool in members for each in pool.gke_pools)
        return ClassPriority(("nodepools",), named, None, False, False, None, 0, False, None, None)
    machine, reservation = priority.as_pool.machine, priority.reservation
    assert machine.accelerator is not None  # the model takes machine types with chips of their own only
    return ClassPriority(
        written=tuple(sorted(_written(priority, machine.kind))),
        node_pools=(),
        machine_type=machine.name,
        spot=priority.capacity == "spot",
        flex_start=priority.capacity == "flex-start",
        affinity="None" if reservation is None else "AnyBestEffort" if reservation.any else "Specific",
        reservations=int(priority.names_reservation),
        tpu=machine.kind == "tpu",
        accelerator=machine.accelerator.gke_label,
        wait_seconds=priority.max_wait_minutes * 60 if priority.max_wait_minutes else None,
        zones=0 if priority.names_reservation else len(priority.zones),
    )


def _written(priority: Priority, kind: str) -> Iterator[str]:
    yield from ("machineType", kind, "reservations", "storage")
    optional = {
        "spot": priority.capacity == "spot",
        "flexStart": priority.capacity == "flex-start",
        "location": bool(priority.zones) and not priority.names_reservation,
        "maxRunDurationSeconds": priority.max_run_hours is not None,
        "capacityCheckWaitTimeSeconds": priority.max_wait_minutes is not None,
    }
    yield from (name for name, said in optional.items() if said)
