"""Clusters by themselves: network settings, Autopilot, the default pool, names."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone, region_of
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.cluster import ClusterView
from training_platform.views.cluster_pools import pools_of
from training_platform.views.node_pool import InlinePoolView
from training_platform.views.program import Program
from training_platform.views.view import View

_TOOLKIT = "Cluster Toolkit v1.95.0, gke-cluster, preconditions, read 2026-06-25"
_SCHEMA = "terraform-provider-google-beta 93c65b2, resource_container_cluster.go"
DATAPLANE_V2 = "ADVANCED_DATAPATH"
NAME_LENGTH = 40
MOST_TAGS = 5
DEFAULT_MACHINE = "e2-medium"
ROUTES = "ROUTES"
MAX_PODS = (8, 256)
PODS_SOURCE = "compute-class-api 8067eae, maxPodsPerNode; terraform-provider-google-beta 93c65b2, max_pods_per_node"


@rule("cluster-name", ruleset="clusters", facts=("NAM-03",), source="GKE API, Cluster.name: at most 40 characters")
def cluster_name(cluster: ClusterView) -> Iterator[Draft]:
    """Find a cluster whose name is longer than GKE allows."""
    name = cluster.cluster
    if name and len(name) > NAME_LENGTH:
        message = f"cluster {name} has a name of {len(name)} characters"
        yield finding(
            cluster, "cluster", message, allowed=f"at most {NAME_LENGTH}", nearest=name[:NAME_LENGTH].rstrip("-")
        )


@rule("dataplane-policies", ruleset="clusters", facts=("CLU-01",), source=f"{_TOOLKIT}; cloud-foundation-fabric")
def dataplane_policies(cluster: ClusterView) -> Iterator[Draft]:
    """Find Calico beside Dataplane V2, which enforces policies itself, and policies of Dataplane V2 without it."""
    if cluster.network_policy and cluster.datapath == DATAPLANE_V2:
        message = "network policy is enabled with Dataplane V2, which enforces policies itself"
        yield finding(cluster, "network_policy", message, allowed="no network_policy block")
    if cluster.dataplane_policies and cluster.datapath != DATAPLANE_V2:
        message = "FQDN and cluster-wide Cilium network policies need Dataplane V2"
        yield finding(cluster, "dataplane_policies", message, allowed=DATAPLANE_V2, nearest=DATAPLANE_V2)


@rule("multi-networking", ruleset="clusters", facts=("CLU-02",), source=f"{_TOOLKIT}; {_SCHEMA}")
def multi_networking(cluster: ClusterView) -> Iterator[Draft]:
    """Find multi-networking without its prerequisites; both are set at creation: a change replaces the cluster.

    A cluster whose networking mode is not written is VPC-native.
    """
    if not cluster.multi_networking:
        return
    for field, wanted in (("datapath", DATAPLANE_V2), ("networking_mode", "VPC_NATIVE")):
        have = getattr(cluster, field)
        if have != wanted and (field == "datapath" or have is not None):
            message = f"multi-networking needs {field.replace('_', ' ')} {wanted}, and it is {have or 'not written'}"
            yield finding(cluster, field, message, allowed=wanted, nearest=wanted)


@rule("default-pool", ruleset="clusters", owner="provider", facts=("CLU-05",), source=_SCHEMA)
def default_pool(cluster: ClusterView) -> Iterator[Draft]:
    """Find a cluster that the provider cannot create: no first pool to remove, or a version of removed nodes."""
    first = cluster.initial_nodes or cluster.pools_inside
    if cluster.remove_default_pool and not cluster.autopilot and first < 1:
        message = "the default pool is removed after creation, and initial_node_count is not at least 1"
        yield finding(cluster, "initial_nodes", message, allowed="at least 1", nearest=1)
    if cluster.node_version is None:
        return
    if cluster.remove_default_pool:
        yield finding(
            cluster, "node_version", "node_version applies to the default pool, which is removed", allowed="none"
        )
    elif cluster.node_version != cluster.version:
        message = f"node_version is {cluster.node_version}, and min_master_version {cluster.version}"
        yield finding(cluster, "node_version", message, allowed="the same at creation", nearest=cluster.version)


@rule("default-max-pods", ruleset="clusters", facts=("CLU-13",), source=PODS_SOURCE)
def default_max_pods(cluster: ClusterView) -> Iterator[Draft]:
    """Find a default number of pods per node that GKE does not support."""
    pods = cluster.max_pods
    if pods is None:
        return
    if cluster.networking_mode == ROUTES:
        message = "pods per node are set, but the cluster is not VPC-native"
        yield finding(cluster, "max_pods", message, allowed="networking_mode VPC_NATIVE", nearest="VPC_NATIVE")
    yield from pods_beyond(cluster, pods)


def pods_beyond(view: View, pods: int) -> Iterator[Draft]:
    """Find a number of pods per node, ``max_pods`` of a view, that GKE does not take."""
    low, high = MAX_PODS
    if not low <= pods <= high:
        nearest = min(max(pods, low), high)
        yield finding(view, "max_pods", f"{pods} pods per node", allowed=f"{low} to {high}", nearest=nearest)


@rule("cluster-zones", ruleset="clusters", facts=("CLU-05", "REG-02"), source=f"{_SCHEMA}; Cluster Toolkit v1.95.0")
def cluster_zones(cluster: ClusterView) -> Iterator[Draft]:
    """Find a zonal cluster that lists its own zone again, and zones outside the cluster's region."""
    if not cluster.zones:
        return
    place = cluster.location
    for zone in cluster.zones:
        if zone == place:
            message = f"node_locations lists {zone}, the cluster's own zone"
            yield finding(cluster, "zones", message, allowed=f"other zones of {region_of(place)}")
        elif region_of(zone) != region_of(place):
            message = f"node_locations lists {zone}, which is not in {region_of(place)}"
            yield finding(cluster, "zones", message, allowed=f"zones of {region_of(place)}")


@rule("autopilot-settings", ruleset="clusters", owner="provider", facts=("CLU-06",), source=f"{_SCHEMA}, ConflictsWith")
def autopilot_settings(cluster: ClusterView) -> Iterator[Draft]:
    """Find settings that an Autopilot cluster does not support."""
    if cluster.autopilot and cluster.clashing:
        message = f"an Autopilot cluster does not support {', '.join(cluster.clashing)}"
        yield finding(
            cluster, "clashing", message, allowed="none of them; pods and ComputeClasses request TPUs and GPUs"
        )
    if cluster.autopilot and is_zone(cluster.location or ""):
        message = f"{cluster.location} is a zone, and Autopilot clusters are regional"
        yield finding(cluster, "location", message, allowed="a region", nearest=region_of(cluster.location))


@rule(
    "default-pool-machine",
    ruleset="clusters",
    severity="warning",
    facts=("CLU-07",),
    source="keras kinetic #305; zone tables of the pricing calculator, read 2026-08-10",
)
def default_pool_machine(cluster: ClusterView) -> Iterator[Draft]:
    """Find a default pool of a machine type that its zone does not offer; a warning, since lists of zones age."""
    place = cluster.location
    if not is_zone(place) or cluster.autopilot:
        return
    name = cluster.default_machine or DEFAULT_MACHINE
    series = name.partition("-")[0]
    known = MACHINE_TYPES.get(name)
    rows = [known] if known else [row for row in MACHINE_TYPES.values() if row.name.partition("-")[0] == series]
    if any(place in row.missing_zones for row in rows):
        there = sorted(
            row.name for row in MACHINE_TYPES.values() if row.kind == "cpu" and place not in row.missing_zones
        )
        message = f"the default pool has machine type {name}, which {place} does not offer"
        nearest = next((other for other in there if other.endswith("standard-4")), None)
        yield finding(
            cluster, "default_machine", message, allowed="a machine type that the zone offers", nearest=nearest
        )


@rule("resource-tags", ruleset="clusters", facts=("NAM-03",), source=f"{_SCHEMA}, resource_manager_tags")
def resource_tags(cluster: ClusterView) -> Iterator[Draft]:
    """Find more resource manager tags than a cluster's nodes support."""
    if cluster.tags > MOST_TAGS:
        yield finding(cluster, "tags", f"has {cluster.tags} resource manager tags", allowed=f"at most {MOST_TAGS}")


@rule(
    "inline-pools",
    ruleset="together",
    across=True,
    facts=("CLU-05",),
    source=f"{_SCHEMA}, resource_container_cluster.go",
)
def inline_pools(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find inline pools in a cluster that also has NodePool resources: each update undoes the other."""
    if cluster.inline_pools and not all(isinstance(pool, InlinePoolView) for pool in pools_of(cluster, program)):
        message = (
            f"cluster {cluster.name} declares {cluster.inline_pools} pools inline, and others as NodePool resources"
        )
        yield finding(cluster, "inline_pools", message, allowed="NodePool resources alone")


@rule("autopilot-pools", ruleset="together", across=True, facts=("CLU-06",), source=f"{_SCHEMA}, ConflictsWith")
def autopilot_pools(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a node pool in an Autopilot cluster."""
    for pool in pools_of(cluster, program) if cluster.autopilot else ():
        message = f"{cluster.name} is an Autopilot cluster, which does not support node pools"
        yield finding(pool, "cluster", message, allowed="pods with selectors, or a ComputeClass")


@rule("routes-max-pods", ruleset="together", across=True, facts=("CLU-13",), source=f"{_SCHEMA}, max_pods_per_node")
def routes_max_pods(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find pods per node of a pool whose cluster is not VPC-native."""
    for pool in pools_of(cluster, program) if cluster.networking_mode == ROUTES else ():
        if pool.max_pods is not None:
            message = f"pods per node are set, but cluster {cluster.name} is not VPC-native"
            yield finding(pool, "max_pods", message, allowed="a VPC-native cluster, or no max_pods_per_node")
