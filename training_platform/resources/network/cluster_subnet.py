"""The addresses of one cluster, and what may reach its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training_platform.catalog.locations import region_of
from training_platform.config.model.cluster import ClusterSpec, SubnetSpec
from training_platform.resources import gcp
from training_platform.resources.declared import Declared, Options, shared
from training_platform.resources.register import FIREWALL, SUBNETWORK
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp import compute

# Of Kueue and JobSet (9443; metrics and visibility 8443), and of a service mesh's injector (15017). GKE itself opens
# 443 and 10250. Sources: both Helm charts; default ports of terraform-google-kubernetes-engine.
WEBHOOK_PORTS = ("8443", "9443", "15017")
_OPTIONS = Options(
    # Google Cloud changes no range that a cluster uses; the cluster goes with its subnet.
    replace_on_changes=("secondaryIpRanges",),
    # A network takes no two subnets with a range in common.
    delete_before_replace=True,
)


def cluster_subnet(name: str, spec: ClusterSpec, scope: Scope, network: Any) -> Declared:
    """Return a cluster's subnet, with ranges for nodes, pods and Services; ``name`` is the cluster's key."""
    ranges = own_ranges(spec)
    inputs = gcp.subnetwork(
        project=scope.project,
        region=region_of(spec.location),
        network=network,
        ip_cidr_range=ranges.nodes,
        secondary_ip_ranges=[
            {"range_name": ranges.pods_range, "ip_cidr_range": ranges.pods},
            {"range_name": ranges.services_range, "ip_cidr_range": ranges.services},
        ],
        private_ip_google_access=True,  # Google's APIs and registries without the NAT gateway
        log_config=_flow_logs(),
    )
    return Declared(type=SUBNETWORK, name=f"{name}-subnet", inputs=inputs, options=_OPTIONS)


@shared
def _flow_logs() -> compute.SubnetworkLogConfigArgsDict:
    """Return a sample, seldom: hosts of one slice exchange more than anybody would pay to have logged."""
    return {"aggregation_interval": "INTERVAL_10_MIN", "flow_sampling": 0.1, "metadata": "INCLUDE_ALL_METADATA"}


@shared
def allowed(protocol: str, *ports: str) -> compute.FirewallAllowArgsDict:
    """Return what a firewall rule lets through: all ports of a protocol unless some are named."""
    return {"protocol": protocol, "ports": list(ports)} if ports else {"protocol": protocol}


def own_ranges(spec: ClusterSpec) -> SubnetSpec:
    """Return the ranges of a cluster of the environment's own, which the model asks for."""
    assert spec.subnet is not None, "a cluster that is somebody else's has no subnet here"
    return spec.subnet


def existing_subnet(spec: ClusterSpec, project: str) -> str | None:
    """Return the id of the subnet that is there already; None where one is made. ``project`` is the network's."""
    name = own_ranges(spec).name
    return f"projects/{project}/regions/{region_of(spec.location)}/subnetworks/{name}" if name else None


def webhook_firewall(name: str, spec: ClusterSpec, scope: Scope, network: Any, node_service_account: Any) -> Declared:
    """Return the rule by which the control plane calls admission webhooks.

    That it does so from the subnet's primary range, where a cluster with a DNS-based endpoint has its control plane's
    internal address, is (unverified).
    """
    inputs = gcp.firewall(
        project=scope.project,
        network=network,
        description=f"Control plane of cluster {name} to admission webhooks on its nodes",
        direction="INGRESS",
        source_ranges=[own_ranges(spec).nodes],
        target_service_accounts=[node_service_account],
        allows=[allowed("tcp", *WEBHOOK_PORTS)],
    )
    return Declared(type=FIREWALL, name=f"{name}-webhooks", inputs=inputs)
