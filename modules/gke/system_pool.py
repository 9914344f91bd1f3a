"""The pools for what is not training, and for heads of Pathways jobs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import container

from modules.gke.service_account import NodeAccount
from modules.register import register
from training_platform.config.model.node_pool import SystemPoolSpec
from training_platform.resources.gke.node_pool import PoolPlace
from training_platform.resources.gke.system_pool import cpu_pool
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class SystemPoolArgs:
    """Which cluster the pool is for."""

    scope: Scope
    spec: SystemPoolSpec
    cluster: pulumi.Input[str]  # name
    location: str  # of the cluster
    service_account: NodeAccount


class SystemPool(pulumi.ComponentResource):
    """A pool without accelerators: where controllers, their admission webhooks and system pods run, or heads."""

    node_pool_id: pulumi.Output[str]  # projects/*/locations/*/clusters/*/nodePools/*

    def __init__(self, name: str, args: SystemPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:SystemPool", name, {}, opts)
        place = PoolPlace(
            scope=args.scope,
            location=args.location,
            cluster=args.cluster,
            service_account=args.service_account.email,
        )
        declared = cpu_pool(name, args.spec, place)
        # Nodes without their roles do not join.
        self.node_pool_id = register(container.NodePool, declared, self, args.service_account.bindings).id
        self.register_outputs({"node_pool_id": self.node_pool_id})
