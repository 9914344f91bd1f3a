"""The VPCs that carry what the GPUs of different VMs exchange, beside the network of everything else."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from training_platform.config.expansion.gpu_fabric import GpuFabric, GpuVpc
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.scope import Scope

PROTOCOLS = ("tcp", "udp", "icmp")


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
        for vpc in args.fabric.vpcs:
            network = self._network(_logical(name, args.fabric, vpc.name), args, vpc)
            self.networks[vpc.name] = network.name
            for nic in vpc.nics:
                subnet = compute.Subnetwork(
                    f"{_logical(name, args.fabric, nic.name)}-subnet",
                    project=args.scope.project,
                    region=args.fabric.region,
                    name=cloud_name(args.scope, args.cluster, nic.name),
                    network=network.id,
                    ip_cidr_range=nic.cidr,
                    # The name is taken while the old subnet is there, and so is its range.
                    opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
                )
                self.subnetworks[nic.name] = subnet.name
        self.register_outputs({})

    def _network(self, name: str, args: GpuNetworksArgs, vpc: GpuVpc) -> compute.Network:
        network = compute.Network(
            f"{name}-vpc",
            project=args.scope.project,
            name=cloud_name(args.scope, args.cluster, vpc.name),  # Kubernetes refers to it by this name
            auto_create_subnetworks=False,
            mtu=vpc.mtu,
            network_profile=_profile(args.scope, vpc),
            # Its subnets would keep it from going first.
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        if vpc.profile is None:  # RDMA takes no firewall rule
            compute.Firewall(
                f"{name}-internal",
                project=args.scope.project,
                name=cloud_name(args.scope, args.cluster, f"{vpc.name}-internal"),  # Pulumi's own could be too long
                network=network.id,
                description=f"GPUs of cluster {args.cluster} among each other",
                direction="INGRESS",
                source_ranges=[nic.cidr for nic in vpc.nics],
                allows=[compute.FirewallAllowArgs(protocol=protocol) for protocol in PROTOCOLS],
                opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),  # the name is taken
            )
        return network


def cloud_name(scope: Scope, cluster: str, name: str) -> str:
    """Return the name of a VPC, subnet or firewall rule, ``{environment}-{cluster}-{name}``, cut to 63 characters."""
    return short_name(f"{scope.environment}-{cluster}-{name}", NAME_LIMIT)


def _logical(component: str, fabric: GpuFabric, name: str) -> str:
    return f"{component}{name.removeprefix(fabric.name)}"


def _profile(scope: Scope, vpc: GpuVpc) -> str | None:
    return f"projects/{scope.project}/global/networkProfiles/{vpc.profile}" if vpc.profile else None
