"""The addresses of one cluster, and what may reach its nodes."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from modules.register import register
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources.network.cluster_subnet import cluster_subnet, existing_subnet, webhook_firewall
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class ClusterSubnetArgs:
    """Which cluster the addresses are for."""

    scope: Scope
    spec: ClusterSpec
    network: pulumi.Input[str]
    node_service_account: pulumi.Input[str]  # e-mail: the account that tells nodes from other VMs of the network
    host_project: str | None = None  # of a Shared VPC, whose subnets and firewall are its owner's


class ClusterSubnet(pulumi.ComponentResource):
    """A subnet with ranges for nodes, pods and Services, or one that exists already; its name is the cluster's."""

    subnetwork_id: pulumi.Output[str]  # projects/*/regions/*/subnetworks/*

    def __init__(self, name: str, args: ClusterSubnetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:network:ClusterSubnet", name, {}, opts)
        existing = existing_subnet(args.spec, args.host_project or args.scope.project)
        if existing:
            self.subnetwork_id = pulumi.Output.from_input(existing)
        else:
            declared = cluster_subnet(name, args.spec, args.scope, args.network)
            self.subnetwork_id = register(compute.Subnetwork, declared, self).id
        if args.host_project is None:
            firewall = webhook_firewall(name, args.spec, args.scope, args.network, args.node_service_account)
            register(compute.Firewall, firewall, self)
        self.register_outputs({"subnetwork_id": self.subnetwork_id})
