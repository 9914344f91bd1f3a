"""Networks: the VPC with its way out, the subnets of clusters, and the VPCs between GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from modules.register import children_of
from training_platform.config.gpu_fabric import GpuFabric
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources.gpu_networks import gpu_network_resources
from training_platform.resources.network import NetworkParts, network_resources, subnet_resources
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class NetworkArgs(NetworkParts):
    """The parts of a network, and its scope."""

    scope: Scope


@dataclass(frozen=True, kw_only=True)
class ExistingNetwork:
    """A VPC that is somebody else's: clusters and instances join it, and nothing of it is registered.

    ``google_apis`` is the range that its owner lets names of Google's APIs lead to.
    """

    network_id: str  # projects/*/global/networks/*
    network_name: str  # as storage drivers take it: the id where it is another project's
    google_apis: str | None
    services: None = None
    services_range: None = None


class Network(pulumi.ComponentResource):
    """A VPC without subnets of its own, and one NAT gateway per region. Clusters bring their subnets.

    ``google_apis`` is the range that names of Google's APIs lead to, known once they do; None where it is public.
    """

    network_id: pulumi.Output[str]  # projects/*/global/networks/*
    network_name: pulumi.Output[str]
    services: pulumi.Resource | None = None  # private service access, and the name of its range
    services_range: pulumi.Output[str] | None = None
    google_apis: pulumi.Output[str] | None = None

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:network:Network", name, {}, opts)
        composed = network_resources(name, args.scope, args, children_of(self))
        self.network_id, self.network_name = composed.network.id, composed.network.name
        self.services, self.services_range = composed.services, composed.services_range
        if entrance := args.google_apis:
            ids = [record.id for record in composed.records]
            self.google_apis = pulumi.Output.all(*ids).apply(lambda _: entrance.range)
        self.register_outputs({"network_id": self.network_id, "network_name": self.network_name})


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
        subnet = subnet_resources(
            name, args.spec, args.scope, network=args.network, nodes=args.node_service_account,
            host_project=args.host_project, register=children_of(self),
        )  # fmt: skip
        self.subnetwork_id = pulumi.Output.from_input(subnet)
        self.register_outputs({"subnetwork_id": self.subnetwork_id})


@dataclass(frozen=True, kw_only=True)
class GpuNetworksArgs:
    """Which networks of which cluster."""

    scope: Scope
    cluster: str  # its key in the stack file
    fabric: GpuFabric


class GpuNetworks(pulumi.ComponentResource):
    """The VPCs and subnets of one kind of GPUDirect in one cluster; nodes alone are in them, and nothing leaves them.

    ``networks`` and ``subnetworks`` are names in Google Cloud, by the names that the fabric gives to VPCs and cards.
    """

    networks: dict[str, pulumi.Output[str]]
    subnetworks: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: GpuNetworksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:network:GpuNetworks", name, {}, opts)
        self.networks, self.subnetworks = gpu_network_resources(
            args.scope, args.cluster, args.fabric, children_of(self)
        )
        self.register_outputs({})
