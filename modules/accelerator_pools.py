"""The accelerator pools of one cluster, with the networks and policies that their VMs are joined by."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from modules.gke.node_pool import AcceleratorPool, AcceleratorPoolArgs
from modules.gke.service_account import NodeAccount
from modules.gke.workload_policies import WorkloadPolicies
from modules.network.gpu_networks import GpuNetworks, GpuNetworksArgs
from training_platform.config.gpu_fabric import fabric_name, gpu_fabrics
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.pools import ExpandedPool, cluster_pools
from training_platform.resources.gke.workload_policies import workload_policies
from training_platform.resources.network.gpu_networks import gpu_nics
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class ClusterPoolsArgs:
    """Which cluster; ``key`` is its key in the stack file, ``cluster`` its name in Google Cloud."""

    scope: Scope
    key: str
    spec: ClusterSpec
    cluster: pulumi.Input[str]
    nodes: NodeAccount


class ClusterPools:
    """What was created for a cluster's pools: ``fabrics`` and their ``networks``, by the fabric's name."""

    def __init__(self, args: ClusterPoolsArgs, opts: pulumi.ResourceOptions) -> None:
        self.fabrics = gpu_fabrics(args.key, args.spec)
        self.networks = {
            fabric.name: GpuNetworks(
                fabric.component, GpuNetworksArgs(scope=args.scope, cluster=args.key, fabric=fabric), opts
            )
            for fabric in self.fabrics.values()
        }
        pools = tuple(cluster_pools(args.key, args.spec))
        policies = _policies(args, pools, opts)
        for pool in pools:
            for gke_pool in pool.gke_pools:
                AcceleratorPool(
                    gke_pool.name,
                    AcceleratorPoolArgs(
                        scope=args.scope,
                        pool=pool,
                        gke_pool=gke_pool,
                        cluster=self._cluster(args.cluster, pool),
                        location=args.spec.location,
                        service_account=args.nodes,
                        nics=gpu_nics(args.scope, args.key, self.fabrics, pool),
                        workload_policy=policies.get(pool.policy_topology or ""),
                    ),
                    opts,
                )

    def _cluster(self, cluster: pulumi.Input[str], pool: ExpandedPool) -> pulumi.Input[str]:
        """Return the name of the cluster, known once the networks of a pool's cards are there.

        A subnet that is replaced takes its pools along by it: with the names in ``networkConfig`` unknown instead, as
        the engine asks then, the provider (10.2.0) ends in a panic.
        """
        name = fabric_name(pool)
        if name is None:
            return cluster
        subnets = self.networks[name].subnetworks
        joined = [subnets[nic.name] for _, nic in self.fabrics[name].nics(pool)]
        return pulumi.Output.all(cluster, *joined).apply(lambda known: str(known[0]))


def _policies(
    args: ClusterPoolsArgs, pools: tuple[ExpandedPool, ...], opts: pulumi.ResourceOptions
) -> dict[str, pulumi.Output[str]]:
    policies = dict(workload_policies(args.scope, args.key, args.spec.location, pools))
    return WorkloadPolicies(f"{args.key}-slices", policies, opts).names if policies else {}
