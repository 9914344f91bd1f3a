"""GKE node pools of VMs with TPUs or GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from training_platform.config.model.node_pool import NodePoolSpec
from training_platform.config.pools import ZONES_OF_A_REGIONAL_CLUSTER, ExpandedPool, GkePool, pool_labels
from training_platform.resources import gcp
from training_platform.resources.declared import Alike, Declared, Options, shared
from training_platform.resources.gke.consumption import class_taints, queued_provisioning, reservation_affinity
from training_platform.resources.gke.gpu_node import (
    confidential_nodes,
    guest_accelerators,
    local_ssds,
    secondary_boot_disks,
    taints,
)
from training_platform.resources.gke.node_config import common_node_config
from training_platform.resources.gke.upkeep import management, upgrade_settings, upgrades_unsaid
from training_platform.resources.register import NODE_POOL
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolAutoscalingArgsDict as Autoscaling
    from pulumi_gcp.container import NodePoolNetworkConfigAdditionalNodeNetworkConfigArgsDict as Nic
    from pulumi_gcp.container import NodePoolNetworkConfigArgsDict as NetworkConfig
    from pulumi_gcp.container import NodePoolNodeConfigArgsDict as NodeConfig
    from pulumi_gcp.container import NodePoolNodeConfigFastSocketArgsDict as FastSocket
    from pulumi_gcp.container import NodePoolNodeConfigLinuxNodeConfigArgsDict as LinuxNodeConfig
    from pulumi_gcp.container import NodePoolNodeConfigLinuxNodeConfigHugepagesConfigArgsDict as Hugepages
    from pulumi_gcp.container import NodePoolPlacementPolicyArgsDict as PlacementPolicy

# A VM's block of the pods' range is twice its pods, rounded up to a power of two: a /27 for 16, so that a /16 holds
# 2,048 VMs, and a /26 for 32, 1,024 VMs. A host of a slice runs one training pod beside some ten of GKE's own (xpk
# allows 15 in all); other hosts may run a pod per chip or GPU.
MAX_PODS_OF_A_SLICE_HOST = 16
MAX_PODS = 32
# An update replaces VM by VM, each waiting up to an hour for its pods to leave.
UPDATE_TIMEOUT = {"update": "8h"}


@dataclass(frozen=True, kw_only=True)
class PoolPlace:
    """Where a pool stands: names and addresses of what it is in, as outputs, or as far as they are known."""

    scope: Scope
    location: str  # of the cluster
    cluster: Any  # name
    service_account: Any  # e-mail
    nics: Sequence[Nic] = ()  # beside the first
    workload_policy: Any = None  # its name, where one joins the VMs


def accelerator_pools(pool: ExpandedPool, place: PoolPlace) -> Iterator[Declared]:
    """Yield the GKE node pools of a pool: each slice over several VMs is one of its own."""
    alike, options = Alike(_alike(pool, place)), _options(pool, place)
    for gke_pool in pool.gke_pools:
        yield _declared(pool, gke_pool, alike, options)


def accelerator_pool(pool: ExpandedPool, gke_pool: GkePool, place: PoolPlace) -> Declared:
    """Return one of them."""
    return _declared(pool, gke_pool, Alike(_alike(pool, place)), _options(pool, place))


def _declared(pool: ExpandedPool, gke_pool: GkePool, alike: Alike, options: Options) -> Declared:
    inputs = _own(pool, gke_pool)
    return Declared(type=NODE_POOL, name=f"{gke_pool.name}-pool", inputs=inputs, alike=alike, options=options)


def _own(pool: ExpandedPool, gke_pool: GkePool) -> dict[str, Any]:
    """Return what tells a GKE node pool from the others of its pool.

    The pair per zone, never the totals, which GKE refuses for slices. A slice that is always there has the same minimum
    and maximum: made with a node count instead, it would be replaced once it may go to 0.
    """
    least, most = nodes_per_zone(pool, gke_pool)
    return gcp.node_pool(
        name=node_pool_name(pool, gke_pool),
        initial_node_count=least,
        autoscaling=_autoscaling(least, most),
    )


@shared
def _autoscaling(least: int, most: int) -> Autoscaling:
    return {"min_node_count": least, "max_node_count": most, "location_policy": "ANY"}


def _alike(pool: ExpandedPool, place: PoolPlace) -> dict[str, Any]:
    return gcp.node_pool(
        project=place.scope.project,
        cluster=place.cluster,
        location=place.location,
        node_locations=[pool.zone] if pool.zone else None,
        max_pods_per_node=pool.spec.max_pods or (MAX_PODS_OF_A_SLICE_HOST if pool.multi_host else MAX_PODS),
        management=management(pool.spec),
        upgrade_settings=upgrade_settings(pool.spec),
        placement_policy=placement_policy(pool, place.workload_policy),
        queued_provisioning=queued_provisioning(pool.spec),
        network_config=network_config(place),
        node_config=node_config(pool, place),
    )


def node_pool_name(pool: ExpandedPool, gke_pool: GkePool) -> str:
    """Return the name that GKE knows the pool by, ``{pool}[-{slice}]``, at most 40 characters."""
    return gke_pool.name.removeprefix(f"{pool.cluster}-")


def nodes_per_zone(pool: ExpandedPool, gke_pool: GkePool) -> tuple[int, int]:
    """Return fewest and most VMs in each zone, as GKE counts them."""
    zones = 1 if pool.zone else ZONES_OF_A_REGIONAL_CLUSTER
    return gke_pool.min_nodes // zones, gke_pool.max_nodes // zones


def network_config(place: PoolPlace) -> NetworkConfig:
    """Return the networks of a pool's VMs, which have no addresses of the internet."""
    private = _private()
    return {**private, "additional_node_network_configs": list(place.nics)} if place.nics else private


@shared
def _private() -> NetworkConfig:
    return {"enable_private_nodes": True}


def placement_policy(pool: ExpandedPool, workload_policy: Any = None) -> PlacementPolicy | None:
    """Return what joins the hosts of one slice, or places GPUs close together.

    GKE refuses a topology on one-host slices, and knows theirs. A workload policy stands beside both, as Cluster
    Toolkit writes it; that GKE stores it without the type is in ``_ignored``.
    """
    if not pool.multi_host and not pool.spec.compact and workload_policy is None:
        return None
    compact = _compact(pool.spec.topology if pool.multi_host else None)
    return compact if workload_policy is None else {**compact, "policy_name": workload_policy}


@shared
def _compact(tpu_topology: str | None) -> PlacementPolicy:
    return {"type": "COMPACT", "tpu_topology": tpu_topology}


def node_config(pool: ExpandedPool, place: PoolPlace) -> NodeConfig:
    """Return what every VM of a pool is."""
    spec, machine = pool.spec, pool.machine
    ephemeral, block = local_ssds(spec, machine)
    own: NodeConfig = {
        "labels": pool_labels(pool),
        "taints": [*taints(spec, machine), *class_taints(pool)] or None,
        "guest_accelerators": guest_accelerators(spec, machine),
        "fast_socket": _fast_socket() if machine.fast_socket else None,
        "ephemeral_storage_local_ssd_config": ephemeral,
        "local_nvme_ssd_block_config": block,
        "secondary_boot_disks": secondary_boot_disks(spec),
        "confidential_nodes": confidential_nodes(spec),
        "linux_node_config": _linux_node_config(spec),
        "reservation_affinity": reservation_affinity(spec),
        "spot": True if spec.capacity == "spot" else None,
        # Queued VMs are flex-start VMs that come all at once.
        "flex_start": True if spec.charged == "flex-start" else None,
        "max_run_duration": f"{spec.max_run_hours * 3600}s" if spec.max_run_hours else None,
    }
    common = common_node_config(machine, spec.boot_disk, place.service_account, place.scope, place.location)
    return {**common, **own}


@shared
def _fast_socket() -> FastSocket:
    return {"enabled": True}


def _linux_node_config(spec: NodePoolSpec) -> LinuxNodeConfig | None:
    """Return the kernel settings of a pool's VMs; a pool that says none has GKE's."""
    pages: Hugepages = {"hugepage_size2m": spec.hugepages.size_2m, "hugepage_size1g": spec.hugepages.size_1g}
    written = any(size is not None for size in (spec.hugepages.size_2m, spec.hugepages.size_1g))
    if not spec.sysctls and not written:
        return None
    return {"sysctls": spec.sysctls or None, "hugepages_config": pages if written else None}


def _options(pool: ExpandedPool, place: PoolPlace) -> Options:
    # Where changes of the placement are not sent, another slice is another pool all the same.
    trigger = pool.policy_topology if place.workload_policy is not None else None
    protected = place.scope.deletion_protection and pool.spec.deletion_protection
    return _options_of(protected, trigger, tuple(_ignored(pool, place)))


@lru_cache(maxsize=256)  # most pools have the same
def _options_of(protected: bool, trigger: str | None, ignored: tuple[str, ...]) -> Options:
    return Options(
        # A replacement gives up capacity that may not come back, and ends every job on it.
        protect=protected,
        # The provider takes another topology for a change in place, and then sends none of it; another machine type it
        # sends, and GKE then recreates every VM of the pool under its jobs. As replacements the guard meets both.
        replace_on_changes=("placementPolicy", "nodeConfig.machineType"),
        replacement_trigger=trigger,
        ignore_changes=ignored,
        # Neither the name nor the capacity is there twice.
        delete_before_replace=True,
        timeouts=UPDATE_TIMEOUT,
    )


def _ignored(pool: ExpandedPool, place: PoolPlace) -> Iterator[str]:
    """Yield the inputs whose changes are not sent."""
    yield "initialNodeCount"  # it matters at creation alone, and a change of it would replace the pool
    if upgrades_unsaid(pool.spec):
        yield "upgradeSettings"  # what GKE writes there is nothing that the provider could send back
    if place.workload_policy is not None:
        yield "placementPolicy"  # GKE keeps it without its type, and each difference would replace the pool
