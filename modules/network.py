"""Networks: the VPC with its way out, the subnets of clusters, and the VPCs between GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute, dns, servicenetworking

from modules.register import register
from training_platform.config.gpu_fabric import GpuFabric
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources import network as resources
from training_platform.resources.gpu_networks import gpu_firewall, gpu_subnet, gpu_vpc
from training_platform.resources.network import (
    DOMAINS,
    Entrance,
    api_records,
    api_zone,
    cluster_subnet,
    existing_subnet,
    webhook_firewall,
)
from training_platform.resources.scope import Scope
from training_platform.resources.storage import lustre_firewall


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """What a network spans."""

    scope: Scope
    regions: tuple[str, ...]  # those with a cluster, in any order, repeated or not
    nat_addresses: int = 0  # reserved for each region's gateway
    services_range: str | None = None  # addresses for private service access
    lustre: bool = False  # whether servers of Managed Lustre have addresses of that range
    google_apis: Entrance | None = None  # where names of Google's APIs lead; None: to public addresses


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
    services: servicenetworking.Connection | None = None  # private service access, and the name of its range
    services_range: pulumi.Output[str] | None = None
    google_apis: pulumi.Output[str] | None = None

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:network:Network", name, {}, opts)
        vpc = register(compute.Network, resources.vpc(name, args.scope), self)
        for region in sorted(set(args.regions)):
            addresses = [
                register(compute.Address, address, self).self_link
                for address in resources.nat_addresses(name, region, args.scope, args.nat_addresses)
            ]
            router = register(compute.Router, resources.router(name, region, args.scope, vpc.id), self)
            register(compute.RouterNat, resources.nat(name, region, args.scope, router.name, addresses), self)
        if args.services_range:
            declared = resources.services_range(name, args.scope, args.services_range, vpc.id)
            self.services_range = register(compute.GlobalAddress, declared, self).name
            self.services = register(
                servicenetworking.Connection, resources.service_connection(name, vpc.id, self.services_range), self
            )
            if args.lustre:
                register(compute.Firewall, lustre_firewall(args.services_range, args.scope, vpc.id), self)
        if args.google_apis:
            self._google_apis(name, args.google_apis, args.scope, vpc.id)
        self.network_id = vpc.id
        self.network_name = vpc.name
        self.register_outputs({"network_id": self.network_id, "network_name": self.network_name})

    def _google_apis(self, name: str, found: Entrance, scope: Scope, network: pulumi.Output[str]) -> None:
        """Let names of Google's APIs lead to addresses that policies can name."""
        ids = []
        for domain in DOMAINS:
            zone = register(dns.ManagedZone, api_zone(name, domain, scope, network), self)
            records = api_records(name, domain, found, scope, zone.name)
            ids += [register(dns.RecordSet, record, self).id for record in records]
        self.google_apis = pulumi.Output.all(*ids).apply(lambda _: found.range)


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
        self.networks, self.subnetworks = {}, {}
        of = (args.scope, args.cluster, args.fabric)
        for vpc in args.fabric.vpcs:
            network = register(compute.Network, gpu_vpc(*of, vpc), self)
            self.networks[vpc.name] = network.name
            if firewall := gpu_firewall(*of, vpc, network.id):
                register(compute.Firewall, firewall, self)
            for nic in vpc.nics:
                subnet = register(compute.Subnetwork, gpu_subnet(*of, nic, network.id), self)
                self.subnetworks[nic.name] = subnet.name
        self.register_outputs({})
