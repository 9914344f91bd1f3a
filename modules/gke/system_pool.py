"""The pool for everything that is no training."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import container

from modules.gke.node_config import common_node_config
from modules.gke.service_account import NodeServiceAccount
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone
from training_platform.config.expansion.pools import SYSTEM_POOL_SURGE, ZONES_OF_A_REGIONAL_CLUSTER
from training_platform.config.spec.node_pool import SystemPoolSpec
from training_platform.resources.scope import Scope

POOL_NAME = "system"
# A /25 of the pods' range per VM: half of what GKE's default of 110 pods takes, and more than controllers fill.
MAX_PODS = 64


@dataclass(frozen=True, kw_only=True)
class SystemPoolArgs:
    """Which cluster the pool is for."""

    scope: Scope
    spec: SystemPoolSpec
    cluster: pulumi.Input[str]  # name
    location: str  # of the cluster
    service_account: NodeServiceAccount


class SystemPool(pulumi.ComponentResource):
    """The pool without taints or accelerators, where controllers, their admission webhooks and system pods run."""

    node_pool_id: pulumi.Output[str]  # projects/*/locations/*/clusters/*/nodePools/*

    def __init__(self, name: str, args: SystemPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:SystemPool", name, {}, opts)
        pool = container.NodePool(
            f"{name}-pool",
            project=args.scope.project,
            cluster=args.cluster,
            location=args.location,
            name=POOL_NAME,
            initial_node_count=initial_nodes_per_zone(args.spec, args.location),
            # Over all zones, so that a minimum of 2 is 2 VMs in a region as in a zone.
            autoscaling=container.NodePoolAutoscalingArgs(
                total_min_node_count=args.spec.min_nodes,
                total_max_node_count=args.spec.max_nodes,
                location_policy="BALANCED",
            ),
            max_pods_per_node=MAX_PODS,
            management=container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=True),
            # A new VM before an old one goes: webhooks fail closed, and with them every job.
            upgrade_settings=container.NodePoolUpgradeSettingsArgs(
                strategy="SURGE", max_surge=SYSTEM_POOL_SURGE, max_unavailable=0
            ),
            network_config=container.NodePoolNetworkConfigArgs(enable_private_nodes=True),
            node_config=container.NodePoolNodeConfigArgs(
                **common_node_config(
                    MACHINE_TYPES[args.spec.machine_type],
                    args.spec.boot_disk,
                    args.service_account.email,
                    args.scope,
                )
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.service_account.bindings,  # nodes without their roles do not join
                # It matters at creation alone, and a change of it would replace the pool.
                ignore_changes=["initialNodeCount"],
                # The name is taken while the old pool is there. Running jobs stay; new ones wait for the controllers.
                delete_before_replace=True,
                # An update replaces VM by VM, each waiting up to an hour for its pods to leave.
                custom_timeouts=pulumi.CustomTimeouts(update="8h"),
            ),
        )
        self.node_pool_id = pool.id
        self.register_outputs({"node_pool_id": self.node_pool_id})


def initial_nodes_per_zone(spec: SystemPoolSpec, location: str) -> int:
    """Return how many VMs each zone starts with: together at least the minimum, unless that passes the maximum."""
    zones = 1 if is_zone(location) else ZONES_OF_A_REGIONAL_CLUSTER
    return min(-(-spec.min_nodes // zones), spec.max_nodes // zones)
