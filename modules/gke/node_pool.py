"""Pools of VMs with TPUs or GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi
from pulumi_gcp import container

from modules.gke.service_account import NodeAccount
from modules.register import register
from training_platform.config.pools import ExpandedPool, GkePool
from training_platform.resources.gke.node_pool import PoolPlace, accelerator_pool
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolNetworkConfigAdditionalNodeNetworkConfigArgsDict as Nic


@dataclass(frozen=True, kw_only=True)
class AcceleratorPoolArgs:
    """Which pool of which cluster."""

    scope: Scope
    pool: ExpandedPool
    gke_pool: GkePool  # one of the pool's: each slice over several VMs is one of its own
    cluster: pulumi.Input[str]  # name
    location: str  # of the cluster
    service_account: NodeAccount
    nics: Sequence[Nic] = ()  # beside the first
    workload_policy: pulumi.Input[str] | None = None  # its name, where one joins the VMs


class AcceleratorPool(pulumi.ComponentResource):
    """One GKE node pool of a pool in the stack file; its name is ``gke_pool``'s."""

    node_pool_id: pulumi.Output[str]  # projects/*/locations/*/clusters/*/nodePools/*

    def __init__(self, name: str, args: AcceleratorPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:AcceleratorPool", name, {}, opts)
        place = PoolPlace(
            scope=args.scope,
            location=args.location,
            cluster=args.cluster,
            service_account=args.service_account.email,
            nics=args.nics,
            workload_policy=args.workload_policy,
        )
        declared = accelerator_pool(args.pool, args.gke_pool, place)
        # Nodes without their roles do not join or pull.
        self.node_pool_id = register(container.NodePool, declared, self, args.service_account.bindings).id
        self.register_outputs({"node_pool_id": self.node_pool_id})
