"""The addresses of one cluster, and what may reach its nodes."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from modules.register import register
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.resources.network.cluster_subnet import cluster_subnet, webhook_firewall
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class ClusterSubnetArgs:
    """Which cluster the addresses are for."""

    scope: Scope
    spec: ClusterSpec
    network: pulumi.Input[str]
    node_service_account: pulumi.Input[str]  # e-mail: the account that tells nodes from other VMs of the network


class ClusterSubnet(pulumi.ComponentResource):
    """A subnet with ranges for nodes, pods and Services; its name is the cluster's."""

    subnetwork_id: pulumi.Output[str]  # projects/*/regions/*/subnetworks/*

    def __init__(self, name: str, args: ClusterSubnetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:network:ClusterSubnet", name, {}, opts)
        subnet = register(compute.Subnetwork, cluster_subnet(name, args.spec, args.scope, args.network), self)
        firewall = webhook_firewall(name, args.spec, args.scope, args.network, args.node_service_account)
        register(compute.Firewall, firewall, self)
        self.subnetwork_id = subnet.id
        self.register_outputs({"subnetwork_id": self.subnetwork_id})
