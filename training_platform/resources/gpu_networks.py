"""The VPCs between the GPUs of different VMs, with a subnet for each NIC and a firewall rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from training_platform.config.expansion import ExpandedPool
from training_platform.config.gpu_fabric import GpuFabric, GpuVpc, Nic, fabric_name
from training_platform.resources import gcp
from training_platform.resources.network import allowed
from training_platform.resources.plan import Component, Options, Resource
from training_platform.resources.scope import NAME_LIMIT, Scope, short_name

if TYPE_CHECKING:
    from pulumi_gcp.container import NodePoolNetworkConfigAdditionalNodeNetworkConfigArgsDict as CardInputs

PROTOCOLS = ("tcp", "udp", "icmp")
# All three have fixed names, which are taken until the old resource is gone. A VPC cannot be deleted before its
# subnets, and a subnet's range is taken as well.
_OPTIONS = Options(delete_before_replace=True)
# To the provider, a rule's new network is an update: the old rule would keep a replaced VPC from being deleted.
_OF_A_NETWORK = replace(_OPTIONS, replace_on_changes=("network",))


class GpuNetworks(NamedTuple):
    """The names of VPCs and subnets in Google Cloud, keyed by the names of VPCs and NICs in the fabric."""

    networks: dict[str, Any]
    subnetworks: dict[str, Any]


def gpu_network_resources(scope: Scope, cluster: str, fabric: GpuFabric, into: Component) -> GpuNetworks:
    """Add the VPCs of one kind of GPUDirect in a cluster. Only nodes use these isolated networks.

    ``cluster`` is the cluster's key.
    """
    networks: dict[str, Any] = {}
    subnetworks: dict[str, Any] = {}
    for part in fabric.vpcs:
        vpc = into.add(gpu_vpc(scope, cluster, fabric, part))
        networks[part.name] = vpc.output("name")
        if firewall := gpu_firewall(scope, cluster, fabric, part, vpc.output("id")):
            into.add(firewall)
        for nic in part.nics:
            subnetworks[nic.name] = into.add(gpu_subnet(scope, cluster, fabric, nic, vpc.output("id"))).output("name")
    return GpuNetworks(networks, subnetworks)


def gpu_vpc(scope: Scope, cluster: str, fabric: GpuFabric, vpc: GpuVpc) -> Resource:
    """Return one VPC, which Kubernetes refers to by name; ``cluster`` is the cluster's key."""
    profile = f"projects/{scope.project}/global/networkProfiles/{vpc.profile}" if vpc.profile else None
    return gcp.network(
        f"{_logical_name(fabric, vpc.name)}-vpc",
        _OPTIONS,
        project=scope.project,
        name=cloud_name(scope, cluster, vpc.name),
        auto_create_subnetworks=False,
        mtu=vpc.mtu,
        network_profile=profile,
    )


def gpu_subnet(scope: Scope, cluster: str, fabric: GpuFabric, nic: Nic, network: Any) -> Resource:
    """Return the subnet of one NIC."""
    return gcp.subnetwork(
        f"{_logical_name(fabric, nic.name)}-subnet",
        _OPTIONS,
        project=scope.project,
        region=fabric.region,
        name=cloud_name(scope, cluster, nic.name),
        network=network,
        ip_cidr_range=nic.cidr,
    )


def gpu_firewall(scope: Scope, cluster: str, fabric: GpuFabric, vpc: GpuVpc, network: Any) -> Resource | None:
    """Return the firewall rule that allows traffic between GPUs in a VPC; None for RDMA, which supports no rules."""
    if vpc.profile is not None:
        return None
    name = f"{_logical_name(fabric, vpc.name)}-internal"
    return gcp.firewall(
        name,
        _OF_A_NETWORK,
        project=scope.project,
        name=cloud_name(scope, cluster, f"{vpc.name}-internal"),  # Pulumi's name could be too long
        network=network,
        description=f"Traffic between GPUs of cluster {cluster}",
        direction="INGRESS",
        source_ranges=[nic.cidr for nic in vpc.nics],
        allows=[allowed(protocol) for protocol in PROTOCOLS],
    )


def gpu_nics(scope: Scope, cluster: str, fabrics: Mapping[str, GpuFabric], pool: ExpandedPool) -> list[CardInputs]:
    """Return the networks of the additional NICs of a pool's VMs; empty if they have none."""
    fabric = fabrics.get(fabric_name(pool) or "")
    if fabric is None:
        return []
    return [
        {"network": cloud_name(scope, cluster, vpc.name), "subnetwork": cloud_name(scope, cluster, nic.name)}
        for vpc, nic in fabric.nics(pool)
    ]


def cloud_name(scope: Scope, cluster: str, name: str) -> str:
    """Return the name of a VPC, subnet or firewall rule, ``{environment}-{cluster}-{name}``, cut to 63 characters."""
    return short_name(f"{scope.environment}-{cluster}-{name}", NAME_LIMIT)


def _logical_name(fabric: GpuFabric, name: str) -> str:
    return f"{fabric.component}{name.removeprefix(fabric.name)}"
