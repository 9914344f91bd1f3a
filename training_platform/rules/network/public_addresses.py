"""Public addresses of VMs, node pools and control planes."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.cluster import ClusterView
from training_platform.views.network import InterfaceView
from training_platform.views.node_pool import NodePoolView

_HOUSE = "house rule: machines reach the internet by NAT, and people reach control planes by name and IAM"


@rule("private-cluster", ruleset="network", owner="house", source=_HOUSE)
def private_cluster(cluster: ClusterView) -> Iterator[Draft]:
    """Find a cluster whose nodes have public addresses unless a pool says otherwise."""
    if not cluster.private_nodes:
        yield finding(
            cluster, "private_nodes", "nodes of this cluster have external IP addresses", allowed="private nodes"
        )


@rule("private-nodes", ruleset="network", owner="house", facts=("QTA-03",), source=_HOUSE)
def private_nodes(pool: NodePoolView) -> Iterator[Draft]:
    """Find a node pool whose nodes have public addresses, or may have them: the default is the cluster's setting."""
    if not pool.private_nodes:
        yield finding(pool, "private_nodes", "nodes of this pool can get public addresses", allowed="private nodes")


@rule("private-control-plane", ruleset="network", owner="house", source=_HOUSE)
def private_control_plane(cluster: ClusterView) -> Iterator[Draft]:
    """Find a control plane that answers at an address on the internet."""
    if cluster.public_endpoint:
        message = "the control plane answers at a public address"
        yield finding(cluster, "public_endpoint", message, allowed="the DNS-based endpoint alone")


@rule("no-external-address", ruleset="network", owner="house", source=_HOUSE)
def no_external_address(interface: InterfaceView) -> Iterator[Draft]:
    """Find a VM, or a template of VMs, with an address on the internet."""
    if interface.public:
        message = f"a network interface of {interface.name} has a public address"
        yield finding(interface, "public", message, allowed="none")
