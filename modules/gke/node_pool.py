"""Pools of VMs with TPUs or GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import container

from modules.gke.consumption import class_taints, queued_provisioning, reservation_affinity
from modules.gke.gpu_node import (
    confidential_nodes,
    guest_accelerators,
    local_ssds,
    secondary_boot_disks,
    taints,
)
from modules.gke.node_config import common_node_config
from modules.gke.service_account import NodeServiceAccount
from modules.gke.upkeep import management, upgrade_settings
from training_platform.config.expansion.pools import ZONES_OF_A_REGIONAL_CLUSTER, ExpandedPool, GkePool, pool_labels
from training_platform.config.spec.node_pool import NodePoolSpec
from training_platform.resources.scope import Scope

# A VM's block of the pods' range is twice its pods, rounded up to a power of two: a /27 for 16, so that a /16 holds
# 2,048 VMs, and a /26 for 32, 1,024 VMs. A host of a slice runs one training pod beside some ten of GKE's own (xpk
# allows 15 in all); other hosts may run a pod per chip or GPU.
MAX_PODS_OF_A_SLICE_HOST = 16
MAX_PODS = 32


@dataclass(frozen=True, kw_only=True)
class AcceleratorPoolArgs:
    """Which pool of which cluster."""

    scope: Scope
    pool: ExpandedPool
    gke_pool: GkePool  # one of the pool's: each slice over several VMs is one of its own
    cluster: pulumi.Input[str]  # name
    location: str  # of the cluster
    service_account: NodeServiceAccount
    nics: Sequence[container.NodePoolNetworkConfigAdditionalNodeNetworkConfigArgs] = ()  # beside the first
    workload_policy: pulumi.Input[str] | None = None  # its name, where one joins the VMs


class AcceleratorPool(pulumi.ComponentResource):
    """One GKE node pool of a pool in the stack file; its name is ``gke_pool``'s."""

    node_pool_id: pulumi.Output[str]  # projects/*/locations/*/clusters/*/nodePools/*

    def __init__(self, name: str, args: AcceleratorPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:AcceleratorPool", name, {}, opts)
        pool = args.pool
        least, most = nodes_per_zone(pool, args.gke_pool)
        node_pool = container.NodePool(
            f"{name}-pool",
            project=args.scope.project,
            cluster=args.cluster,
            location=args.location,
            name=node_pool_name(pool, args.gke_pool),
            node_locations=[pool.zone] if pool.zone else None,
            # The pair per zone, never the totals, which GKE refuses for slices. A slice that is always there has the
            # same minimum and maximum: made with a node count instead, it would be replaced once it may go to 0.
            initial_node_count=least,
            autoscaling=container.NodePoolAutoscalingArgs(
                min_node_count=least, max_node_count=most, location_policy="ANY"
            ),
            max_pods_per_node=max_pods(pool),
            management=management(pool.spec),
            upgrade_settings=upgrade_settings(pool.spec),
            placement_policy=placement_policy(pool, args.workload_policy),
            queued_provisioning=queued_provisioning(pool.spec),
            network_config=container.NodePoolNetworkConfigArgs(
                enable_private_nodes=True, additional_node_network_configs=list(args.nics) or None
            ),
            node_config=node_config(pool, args.service_account.email, args.scope),
            opts=_options(self, args),
        )
        self.node_pool_id = node_pool.id
        self.register_outputs({"node_pool_id": self.node_pool_id})


def node_pool_name(pool: ExpandedPool, gke_pool: GkePool) -> str:
    """Return the name that GKE knows the pool by, ``{pool}[-{slice}]``, at most 40 characters."""
    return gke_pool.name.removeprefix(f"{pool.cluster}-")


def nodes_per_zone(pool: ExpandedPool, gke_pool: GkePool) -> tuple[int, int]:
    """Return fewest and most VMs in each zone, as GKE counts them."""
    zones = 1 if pool.zone else ZONES_OF_A_REGIONAL_CLUSTER
    return gke_pool.min_nodes // zones, gke_pool.max_nodes // zones


def max_pods(pool: ExpandedPool) -> int:
    """Return the most pods of one VM; a change recreates the pool."""
    return pool.spec.max_pods or (MAX_PODS_OF_A_SLICE_HOST if pool.multi_host else MAX_PODS)


def placement_policy(
    pool: ExpandedPool, workload_policy: pulumi.Input[str] | None = None
) -> container.NodePoolPlacementPolicyArgs | None:
    """Return what joins the hosts of one slice, or places GPUs close together.

    GKE refuses a topology on one-host slices, and knows theirs. A workload policy stands beside both, as Cluster
    Toolkit writes it; that GKE stores it without the type is in ``_options``.
    """
    if not pool.multi_host and not pool.spec.compact and workload_policy is None:
        return None
    return container.NodePoolPlacementPolicyArgs(
        type="COMPACT", tpu_topology=pool.spec.topology if pool.multi_host else None, policy_name=workload_policy
    )


def node_config(
    pool: ExpandedPool, service_account: pulumi.Input[str], scope: Scope
) -> container.NodePoolNodeConfigArgs:
    """Return what every VM of a pool is."""
    spec, machine = pool.spec, pool.machine
    ephemeral, block = local_ssds(spec, machine)
    return container.NodePoolNodeConfigArgs(
        **common_node_config(machine, spec.boot_disk, service_account, scope),
        labels=pool_labels(pool),
        taints=[*(taints(spec, machine) or []), *class_taints(pool)] or None,
        guest_accelerators=guest_accelerators(spec, machine),
        fast_socket=container.NodePoolNodeConfigFastSocketArgs(enabled=True) if machine.fast_socket else None,
        ephemeral_storage_local_ssd_config=ephemeral,
        local_nvme_ssd_block_config=block,
        secondary_boot_disks=secondary_boot_disks(spec),
        confidential_nodes=confidential_nodes(spec),
        reservation_affinity=reservation_affinity(spec),
        spot=True if spec.capacity == "spot" else None,
        flex_start=True if _flex_start(spec) else None,
        max_run_duration=f"{spec.max_run_hours * 3600}s" if spec.max_run_hours else None,
    )


def _flex_start(spec: NodePoolSpec) -> bool:
    return spec.charged == "flex-start"  # queued VMs are flex-start VMs that come all at once


def _ignored(args: AcceleratorPoolArgs) -> Iterator[str]:
    """Yield the inputs whose changes are not sent."""
    yield "initialNodeCount"  # it matters at creation alone, and a change of it would replace the pool
    if args.pool.spec.charged == "flex-start" and not args.pool.spec.upgrades.says_how:
        yield "upgradeSettings"  # what GKE writes there is nothing that the provider could send back
    if args.workload_policy is not None:
        yield "placementPolicy"  # GKE keeps it without its type, and each difference would replace the pool


def _options(parent: pulumi.Resource, args: AcceleratorPoolArgs) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(
        parent=parent,
        # A replacement gives up capacity that may not come back, and ends every job on it.
        protect=args.scope.deletion_protection and args.pool.spec.deletion_protection,
        # The provider takes another topology for a change in place, and then sends none of it; another machine type it
        # sends, and GKE then recreates every VM of the pool under its jobs. As replacements the guard meets both.
        replace_on_changes=["placementPolicy", "nodeConfig.machineType"],
        # Where changes of the placement are not sent, another slice is another pool all the same.
        replacement_trigger=args.pool.policy_topology if args.workload_policy is not None else None,
        depends_on=args.service_account.bindings,  # nodes without their roles do not join or pull
        ignore_changes=list(_ignored(args)),
        # Neither the name nor the capacity is there twice.
        delete_before_replace=True,
        # An update replaces VM by VM, each waiting up to an hour for its pods to leave.
        custom_timeouts=pulumi.CustomTimeouts(update="8h"),
    )
