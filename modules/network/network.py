"""The network that all clusters of an environment share, with a way out for machines without public addresses."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from training_platform.resources.scope import Scope

# The largest packets that a VPC takes, so that traffic between hosts and from Filestore spends less on headers. The
# VMs of a network must stop before a change of it reaches them. What leaves the VPC is clamped to what its path takes.
MTU_BYTES = 8896
# Ports per VM and destination. 64 let one address serve 1,008 VMs; what many pods on a large host open at once when
# they pull images or data sets is found by growing to 4,096.
NAT_MIN_PORTS = 64
NAT_MAX_PORTS = 4096


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """What a network spans."""

    scope: Scope
    regions: tuple[str, ...]  # those with a cluster, in any order, repeated or not


class Network(pulumi.ComponentResource):
    """A VPC without subnets of its own, and one NAT gateway per region. Clusters bring their subnets."""

    network_id: pulumi.Output[str]  # projects/*/global/networks/*
    network_name: pulumi.Output[str]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:network:Network", name, {}, opts)
        vpc = compute.Network(
            f"{name}-vpc",
            project=args.scope.project,
            name=network_name(args.scope),  # peerings and people refer to it from outside
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",  # routes to subnets are global anyway, and no router here learns others
            mtu=MTU_BYTES,
            delete_default_routes_on_create=False,  # the NAT gateways reach the internet by the default route
            # Everything else of the environment is inside it.
            opts=pulumi.ResourceOptions(parent=self, protect=args.scope.deletion_protection),
        )
        for region in sorted(set(args.regions)):
            self._nat(f"{name}-{region}", region, vpc, args.scope)
        self.network_id = vpc.id
        self.network_name = vpc.name
        self.register_outputs({"network_id": self.network_id, "network_name": self.network_name})

    def _nat(self, name: str, region: str, vpc: compute.Network, scope: Scope) -> None:
        """Create a region's way out: private nodes pull from registry.k8s.io and other places off Google Cloud."""
        router = compute.Router(
            f"{name}-router",
            project=scope.project,
            region=region,
            network=vpc.id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        compute.RouterNat(
            f"{name}-nat",
            project=scope.project,
            region=region,
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,  # excludes dynamic ports
            min_ports_per_vm=NAT_MIN_PORTS,
            max_ports_per_vm=NAT_MAX_PORTS,
            log_config=compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
            opts=pulumi.ResourceOptions(parent=self),
        )


def network_name(scope: Scope) -> str:
    """Return the VPC's name, ``{environment}-network``: two environments may share a project."""
    return f"{scope.prefix}-network"
