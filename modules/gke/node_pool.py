"""Pools of VMs with TPUs or GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import container

from modules.catalog.types import MachineType
from modules.config.fleet import FLAVOR_LABEL, ZONES_OF_A_REGIONAL_CLUSTER, GkePool, Pool, flavor_name
from modules.config.node_pool import NodePool as NodePoolSpec
from modules.gke.node_config import common_node_config
from modules.gke.service_account import NodeServiceAccount
from modules.scope import Scope

RESERVATION_KEY = "compute.googleapis.com/reservation-name"
# A VM's block of the pods' range is twice its pods, rounded up to a power of two: a /27 for 16, so that a /16 holds
# 2,048 VMs, and a /26 for 32, 1,024 VMs. A host of a slice runs one training pod beside some ten of GKE's own (xpk
# allows 15 in all); other hosts may run a pod per chip or GPU.
MAX_PODS_OF_A_SLICE_HOST = 16
MAX_PODS = 32


@dataclass(frozen=True, kw_only=True)
class AcceleratorPoolArgs:
    """Which pool of which cluster."""

    scope: Scope
    pool: Pool
    gke_pool: GkePool  # one of the pool's: each slice over several VMs is one of its own
    cluster: pulumi.Input[str]  # name
    location: str  # of the cluster
    service_account: NodeServiceAccount


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
            max_pods_per_node=MAX_PODS_OF_A_SLICE_HOST if pool.multi_host else MAX_PODS,
            management=container.NodePoolManagementArgs(auto_repair=not _flex_start(pool.spec), auto_upgrade=True),
            upgrade_settings=upgrade_settings(pool.spec),
            placement_policy=placement_policy(pool),
            network_config=container.NodePoolNetworkConfigArgs(enable_private_nodes=True),
            node_config=node_config(pool, args.service_account.email, args.scope),
            opts=_options(self, args),
        )
        self.node_pool_id = node_pool.id
        self.register_outputs({"node_pool_id": self.node_pool_id})


def node_pool_name(pool: Pool, gke_pool: GkePool) -> str:
    """Return the name that GKE knows the pool by, ``{pool}[-{slice}]``, at most 40 characters."""
    return gke_pool.name.removeprefix(f"{pool.cluster}-")


def nodes_per_zone(pool: Pool, gke_pool: GkePool) -> tuple[int, int]:
    """Return fewest and most VMs in each zone, as GKE counts them."""
    zones = 1 if pool.zone else ZONES_OF_A_REGIONAL_CLUSTER
    return gke_pool.min_nodes // zones, gke_pool.max_nodes // zones


def upgrade_settings(spec: NodePoolSpec) -> container.NodePoolUpgradeSettingsArgs | None:
    """Return how VMs are upgraded: one goes before its successor comes, as no quota or reservation has room for both.

    GKE upgrades flex-start VMs in its own way, under a name that the provider does not take. A slice is recreated as
    a whole whatever this says.
    """
    if _flex_start(spec):
        return None
    return container.NodePoolUpgradeSettingsArgs(strategy="SURGE", max_surge=0, max_unavailable=1)


def placement_policy(pool: Pool) -> container.NodePoolPlacementPolicyArgs | None:
    """Return what joins the hosts of one slice; GKE refuses a topology on one-host slices, and knows theirs."""
    if not pool.multi_host:
        return None
    return container.NodePoolPlacementPolicyArgs(type="COMPACT", tpu_topology=pool.spec.topology)


def node_config(pool: Pool, service_account: pulumi.Input[str], scope: Scope) -> container.NodePoolNodeConfigArgs:
    """Return what every VM of a pool is."""
    spec, machine = pool.spec, pool.machine
    return container.NodePoolNodeConfigArgs(
        **common_node_config(machine, spec.boot_disk, service_account, scope),
        labels={**spec.labels, FLAVOR_LABEL: flavor_name(pool)},
        taints=taints(machine),
        guest_accelerators=guest_accelerators(machine),
        fast_socket=container.NodePoolNodeConfigFastSocketArgs(enabled=True) if machine.fast_socket else None,
        ephemeral_storage_local_ssd_config=local_ssd(machine),
        reservation_affinity=reservation_affinity(spec),
        spot=True if spec.capacity == "spot" else None,
        flex_start=True if _flex_start(spec) else None,
        max_run_duration=f"{spec.max_run_hours * 3600}s" if spec.max_run_hours else None,
    )


def guest_accelerators(machine: MachineType) -> list[container.NodePoolNodeConfigGuestAcceleratorArgs] | None:
    """Return the GPUs that a machine type has, with GKE's default driver for them; TPUs are implied by the type."""
    if machine.kind != "gpu" or machine.accelerator is None:
        return None
    driver = container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(gpu_driver_version="DEFAULT")
    return [
        container.NodePoolNodeConfigGuestAcceleratorArgs(
            type=machine.accelerator.gke_label, count=machine.chips, gpu_driver_installation_config=driver
        )
    ]


def taints(machine: MachineType) -> list[container.NodePoolNodeConfigTaintArgs] | None:
    """Return the taint that keeps other pods off GPUs.

    GKE adds it by itself only once the cluster has a pool without GPUs, and no order is kept between the two; it always
    adds that of TPUs.
    """
    if machine.kind != "gpu":
        return None
    return [container.NodePoolNodeConfigTaintArgs(key="nvidia.com/gpu", value="present", effect="NO_SCHEDULE")]


def local_ssd(machine: MachineType) -> container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs | None:
    """Return the local SSDs that come with a machine type.

    Left out, GKE fills them in, and the difference would replace the pool.
    """
    if not machine.local_ssd.bundled:
        return None
    return container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(local_ssd_count=machine.local_ssd.bundled)


def reservation_affinity(spec: NodePoolSpec) -> container.NodePoolNodeConfigReservationAffinityArgs:
    """Return which reservation VMs come from: the one that is named, else none.

    Left out, GKE would take any that fits: refused for spot and flex-start, and on demand it would eat what somebody
    else reserved.
    """
    if spec.capacity != "reservation" or spec.reservation is None:
        return container.NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
    return container.NodePoolNodeConfigReservationAffinityArgs(
        consume_reservation_type="SPECIFIC_RESERVATION", key=RESERVATION_KEY, values=[spec.reservation]
    )


def _flex_start(spec: NodePoolSpec) -> bool:
    return spec.capacity == "flex-start"


def _options(parent: pulumi.Resource, args: AcceleratorPoolArgs) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(
        parent=parent,
        depends_on=args.service_account.bindings,  # nodes without their roles do not join or pull
        # A pool's first size matters at creation alone, and a change of it would replace the pool; what GKE writes into
        # a flex-start pool's upgrade settings is nothing that the provider could send back.
        ignore_changes=["initialNodeCount", *(["upgradeSettings"] if _flex_start(args.pool.spec) else [])],
        # Neither the name nor the capacity is there twice.
        delete_before_replace=True,
        # An update replaces VM by VM, each waiting up to an hour for its pods to leave.
        custom_timeouts=pulumi.CustomTimeouts(update="8h"),
    )
