"""Views of node pools from the model: what the components make of a pool, worked out again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone
from training_platform.catalog.types import MachineType
from training_platform.config.expansion.gpu_fabric import GpuFabric
from training_platform.config.expansion.pools import (
    SYSTEM_POOL_SURGE,
    ZONES_OF_A_REGIONAL_CLUSTER,
    ExpandedPool,
    GkePool,
    cluster_pools,
    pool_labels,
)
from training_platform.config.names import Locator, system_pool_name
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.config.spec.environment import Environment
from training_platform.config.spec.node_options import Upgrades
from training_platform.config.spec.stack import Stack
from training_platform.resources.register import NODE_POOL
from training_platform.rules.adapters.model_settings import pool_settings, system_pool_settings
from training_platform.rules.views.node_pool import NodePoolView
from training_platform.rules.views.view import View

MANAGED_BY = "training-platform"
SYSTEM_POOL = "system"
SYSTEM_MAX_PODS, MAX_PODS, MAX_PODS_OF_A_SLICE_HOST = 64, 32, 16  # as the components of pools write them
# What a pool is unless its spec says otherwise.
_PLAIN: Mapping[str, Any] = {
    "version": None,
    "zones": (),
    "spot": False,
    "flex_start": False,
    "queued": False,
    "consume_reservation": None,
    "reservation": None,
    "placement_type": None,
    "tpu_topology": None,
    "initial_nodes": None,
    "node_count": None,
    "min_nodes": None,
    "max_nodes": None,
    "total_min_nodes": None,
    "total_max_nodes": None,
    "auto_repair": True,
    "auto_upgrade": True,
    "upgrade_strategy": "SURGE",
    "max_run_seconds": None,
    "accelerator_type": None,
    "accelerator_count": None,
    "local_ssd_count": None,
    "node_labels": {},
}


class Maker:
    """What every view of a stack starts from: its section of the file, and what all of its resources share."""

    def __init__(self, stack: Stack, home: Environment) -> None:
        team = stack.team
        assert stack.section is not None
        self.stack = stack.name
        self.environment = stack.environment_name
        self.prefix = f"{self.environment}-{team.name}" if team else self.environment
        self.project = (team.project if team else None) or home.project
        self.deletion_protection = home.deletion_protection
        self.labels = {**home.labels, **(team.labels if team else {}), "environment": self.environment}
        self.labels |= {"team": team.name} if team else {}
        self.labels["managed-by"] = MANAGED_BY
        self._locator = Locator(stack.section)

    def head(self, kind: str, name: str) -> dict[str, Any]:
        """Return a view's stack, type, name and section of the file."""
        return {"stack": self.stack, "type": kind, "name": name, "origin": self._locator.path(name)}

    def cluster(self, name: str) -> str:
        """Return a cluster's name in Google Cloud."""
        return f"{self.environment}-{name}"


def accelerator_pools(make: Maker, name: str, cluster: ClusterSpec, fabrics: Mapping[str, GpuFabric]) -> Iterator[View]:
    """Yield the views of a cluster's pools with TPUs or GPUs: two for each GKE node pool, three with settings."""
    for pool in cluster_pools(name, cluster):
        for gke_pool in pool.gke_pools:
            head = make.head(NODE_POOL, f"{gke_pool.name}-pool")
            values = {
                **_place(make, name, cluster),
                "pool": gke_pool.name.removeprefix(f"{name}-"),
                "max_pods": pool.spec.max_pods or (MAX_PODS_OF_A_SLICE_HOST if pool.multi_host else MAX_PODS),
                **_scaling(pool, gke_pool),
                **_machine(pool),
                **_capacity(pool),
                **_placement(pool),
            }
            values |= pool_settings(values["upgrade_strategy"], pool, fabrics, make.cluster(name))
            disk = pool.spec.boot_disk
            values |= {"disk_gb": disk.size_gb, "disk_type": disk.type or pool.machine.boot_disk_types[0]}
            yield _node_pool(make, head, pool.machine, values)


def system_pool(make: Maker, name: str, cluster: ClusterSpec) -> Iterator[View]:
    """Yield the views of a cluster's system pool; it is counted over all zones."""
    spec = cluster.system_pool
    machine = MACHINE_TYPES[spec.machine_type]
    head = make.head(NODE_POOL, f"{system_pool_name(name)}-pool")
    zones = 1 if is_zone(cluster.location) else ZONES_OF_A_REGIONAL_CLUSTER
    values = {
        **_place(make, name, cluster),
        "pool": SYSTEM_POOL,
        "max_pods": SYSTEM_MAX_PODS,
        "initial_nodes": min(-(-spec.min_nodes // zones), spec.max_nodes // zones),
        "total_min_nodes": spec.min_nodes,
        "total_max_nodes": spec.max_nodes,
        "location_policy": "BALANCED",
    }
    values |= system_pool_settings(SYSTEM_POOL_SURGE)
    values |= {"disk_gb": spec.boot_disk.size_gb, "disk_type": spec.boot_disk.type or machine.boot_disk_types[0]}
    yield _node_pool(make, head, machine, values)


def _node_pool(make: Maker, head: dict[str, Any], machine: MachineType, values: dict[str, Any]) -> NodePoolView:
    common: dict[str, Any] = {"machine_type": machine.name, "private_nodes": True, "labels": make.labels}
    return NodePoolView(**head, **common, **{**_PLAIN, **values})


def _place(make: Maker, name: str, cluster: ClusterSpec) -> dict[str, Any]:
    return {"project": make.project, "cluster": make.cluster(name), "location": cluster.location}


def _scaling(pool: ExpandedPool, gke_pool: GkePool) -> dict[str, Any]:
    zones = 1 if pool.zone else ZONES_OF_A_REGIONAL_CLUSTER
    least, most = gke_pool.min_nodes // zones, gke_pool.max_nodes // zones
    return {"initial_nodes": least, "min_nodes": least, "max_nodes": most, "location_policy": "ANY"}


def _machine(pool: ExpandedPool) -> dict[str, Any]:
    machine = pool.machine
    values: dict[str, Any] = {"local_ssd_count": pool.spec.local_ssd.count or machine.local_ssd.bundled or None}
    if machine.kind == "gpu" and machine.accelerator:
        values |= {"accelerator_type": machine.accelerator.gke_label, "accelerator_count": machine.chips}
    return values


def _capacity(pool: ExpandedPool) -> dict[str, Any]:
    spec = pool.spec
    flex = spec.charged == "flex-start"
    return {
        "spot": spec.capacity == "spot",
        "flex_start": flex,
        **_upkeep(spec.upgrades, flex=flex),
        "queued": spec.capacity == "queued-provisioning",
        "consume_reservation": spec.reservation.affinity if spec.reservation else "NO_RESERVATION",
        "reservation": (spec.reservation.path or "").rpartition("/")[2] or None if spec.reservation else None,
        "max_run_seconds": spec.max_run_hours * 3600 if spec.max_run_hours else None,
    }


def _upkeep(upgrades: Upgrades, *, flex: bool) -> dict[str, Any]:
    written = not flex or upgrades.says_how
    return {
        "auto_repair": not flex if upgrades.auto_repair is None else upgrades.auto_repair,
        "auto_upgrade": upgrades.auto_upgrade,
        "upgrade_strategy": upgrades.strategy.upper().replace("-", "_") if written else None,
    }


def _placement(pool: ExpandedPool) -> dict[str, Any]:
    joined = pool.multi_host or pool.spec.compact or bool(pool.machine.nvlink_domain)
    return {
        "zones": (pool.zone,) if pool.zone else (),
        "placement_type": "COMPACT" if joined else None,
        "tpu_topology": pool.spec.topology if pool.multi_host else None,
        "node_labels": pool_labels(pool),
    }
