"""The addresses of one cluster, and what may reach its nodes."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import compute

from training_platform.catalog.locations import region_of
from training_platform.config.spec.cluster import ClusterSpec
from training_platform.resources.scope import Scope

PODS_RANGE = "pods"
SERVICES_RANGE = "services"
# Of Kueue and JobSet (9443; metrics and visibility 8443), and of a service mesh's injector (15017). GKE itself opens
# 443 and 10250. Sources: both Helm charts; default ports of terraform-google-kubernetes-engine.
WEBHOOK_PORTS = ("8443", "9443", "15017")


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
        subnet = compute.Subnetwork(
            f"{name}-subnet",
            project=args.scope.project,
            region=region_of(args.spec.location),
            network=args.network,
            ip_cidr_range=args.spec.subnet.nodes,
            secondary_ip_ranges=secondary_ranges(args.spec),
            private_ip_google_access=True,  # Google's APIs and registries without the NAT gateway
            # A sample, seldom: hosts of one slice exchange more than anybody would pay to have logged.
            log_config=compute.SubnetworkLogConfigArgs(
                aggregation_interval="INTERVAL_10_MIN", flow_sampling=0.1, metadata="INCLUDE_ALL_METADATA"
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                # Google Cloud changes no range that a cluster uses; the cluster goes with its subnet.
                replace_on_changes=["secondaryIpRanges"],
                # A network takes no two subnets with a range in common.
                delete_before_replace=True,
            ),
        )
        # The control plane calls admission webhooks. That it does so from the subnet's primary range, where a cluster
        # with a DNS-based endpoint has its control plane's internal address, is (unverified).
        compute.Firewall(
            f"{name}-webhooks",
            project=args.scope.project,
            network=args.network,
            description=f"Control plane of cluster {name} to admission webhooks on its nodes",
            direction="INGRESS",
            source_ranges=[args.spec.subnet.nodes],
            target_service_accounts=[args.node_service_account],
            allows=[compute.FirewallAllowArgs(protocol="tcp", ports=list(WEBHOOK_PORTS))],
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.subnetwork_id = subnet.id
        self.register_outputs({"subnetwork_id": self.subnetwork_id})


def secondary_ranges(spec: ClusterSpec) -> list[compute.SubnetworkSecondaryIpRangeArgs]:
    """Return the ranges that the cluster takes pods' and Services' addresses from."""
    return [
        compute.SubnetworkSecondaryIpRangeArgs(range_name=PODS_RANGE, ip_cidr_range=spec.subnet.pods),
        compute.SubnetworkSecondaryIpRangeArgs(range_name=SERVICES_RANGE, ip_cidr_range=spec.subnet.services),
    ]
