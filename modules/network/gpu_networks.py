"""The VPCs that carry what the GPUs of different VMs exchange, beside the network of everything else."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from modules.register import register
from training_platform.config.gpu_fabric import GpuFabric
from training_platform.resources.network.gpu_networks import gpu_firewall, gpu_subnet, gpu_vpc
from training_platform.resources.scope import Scope


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
