"""The GKE node pools without TPUs or GPUs: for everything that is not training, and for heads of Pathways jobs."""

from __future__ import annotations

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone
from training_platform.config.model.node_pool import PathwaysPoolSpec, SystemPoolSpec
from training_platform.config.pools import HEADS_NAME, HEADS_TAINT, SYSTEM_POOL_SURGE, ZONES_OF_A_REGIONAL_CLUSTER
from training_platform.resources import gcp
from training_platform.resources.declared import Declared, Options
from training_platform.resources.gke.node_config import common_node_config
from training_platform.resources.gke.node_pool import UPDATE_TIMEOUT, PoolPlace
from training_platform.resources.register import NODE_POOL

POOL_NAME = "system"
# A /25 of the pods' range per VM: half of what GKE's default of 110 pods takes, and more than controllers fill.
MAX_PODS = 64
_OPTIONS = Options(
    # It matters at creation alone, and a change of it would replace the pool.
    ignore_changes=("initialNodeCount",),
    # The name is taken while the old pool is there. Running jobs stay; new ones wait for the controllers.
    delete_before_replace=True,
    timeouts=UPDATE_TIMEOUT,
)


def cpu_pool(name: str, spec: SystemPoolSpec, place: PoolPlace) -> Declared:
    """Return a cluster's system pool, or that of heads; ``name`` is the component's."""
    heads = isinstance(spec, PathwaysPoolSpec)
    key, value = HEADS_TAINT
    node = common_node_config(
        MACHINE_TYPES[spec.machine_type], spec.boot_disk, place.service_account, place.scope, place.location
    )
    if heads:
        node["taints"] = [{"key": key, "value": value, "effect": "NO_SCHEDULE"}]
    inputs = gcp.node_pool(
        project=place.scope.project,
        cluster=place.cluster,
        location=place.location,
        name=HEADS_NAME if heads else POOL_NAME,
        initial_node_count=initial_nodes_per_zone(spec, place.location),
        # Over all zones, so that a minimum of 2 is 2 VMs in a region as in a zone.
        autoscaling={
            "total_min_node_count": spec.min_nodes,
            "total_max_node_count": spec.max_nodes,
            "location_policy": "BALANCED",
        },
        max_pods_per_node=MAX_PODS,
        management={"auto_repair": True, "auto_upgrade": True},
        # A new VM before an old one goes: webhooks fail closed, and with them every job.
        upgrade_settings={"strategy": "SURGE", "max_surge": SYSTEM_POOL_SURGE, "max_unavailable": 0},
        network_config={"enable_private_nodes": True},
        node_config=node,
    )
    return Declared(type=NODE_POOL, name=f"{name}-pool", inputs=inputs, options=_OPTIONS)


def initial_nodes_per_zone(spec: SystemPoolSpec, location: str) -> int:
    """Return how many VMs each zone starts with: together at least the minimum, unless that passes the maximum."""
    zones = 1 if is_zone(location) else ZONES_OF_A_REGIONAL_CLUSTER
    return min(-(-spec.min_nodes // zones), spec.max_nodes // zones)
