"""Rules about existing networks, subnets and clusters, according to the stack files that use them.

These are not resources of any stack, so their address ranges are checked according to the files. One subnet may serve
clusters of several environments, so its use is summed over all of them. What only the owner knows is reported as not
checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network
from typing import NamedTuple

from training_platform.catalog.locations import region_of
from training_platform.config.model.cluster import SubnetSpec
from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import RULES, Draft, declare, finding
from training_platform.config.reading.section import listed
from training_platform.config.workspace import Workspace
from training_platform.resources.resource_types import SUBNETWORK
from training_platform.rules.network import (
    DEFAULT_PODS,
    RESERVED_ADDRESSES,
    node_range,
    pod_block,
    pod_range,
    prefix_with,
)
from training_platform.views.cluster import ClusterView
from training_platform.views.network import ExistingSubnetView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.view import View

_SOFTWARE = ("kueue", "jobset")
_MOST_NAMED = 4  # clusters that a message names
_RULE_OF = {row.check: row for row in RULES.values()}
NETWORK_NOT_JUDGED = declare(
    "network-not-judged",
    "Find an existing network, whose NAT gateways, firewall rules, ranges of services and other users are not known.",
    ruleset="addresses",
    severity="note",
    unjudged="network with unknown NAT gateways, firewall rules and other users",
)
CLUSTER_NOT_JUDGED = declare(
    "cluster-not-judged",
    "Find an existing cluster, whose version, settings and ranges are not known.",
    ruleset="clusters",
    severity="note",
    unjudged="cluster with unknown version, settings and ranges",
)
SOFTWARE_NOT_JUDGED = declare(
    "software-not-judged",
    "Find a cluster in which somebody else installs Kueue or JobSet: their versions and settings are not known.",
    ruleset="clusters",
    severity="note",
    unjudged="cluster with software of unknown version",
)


RANGE_NAMES = declare(
    "existing-range-names",
    "Find a range of an existing subnet that two clusters describe differently, or that both use for Services.",
    ruleset="addresses",
    refused_by="GKE. No source says whether GKE refuses two clusters with the same range for Services, so this case "
    "is a note",
    excuse="exemption",
)
CLUSTER_TWICE = declare(
    "cluster-twice",
    "Find a cluster that two sections describe and in which both install the same software.",
    ruleset="clusters",
    refused_by="Helm: the release exists already, and belongs to another stack",
    excuse="exemption",
)


class SubnetUse(NamedTuple):
    """What one cluster needs of an existing subnet: its maximum number of nodes, and the addresses of their pods.

    ``subnet`` is the subnet's host project, VPC, region and name. ``min_pod_addresses`` are needed when all pools have
    their minimum size.
    """

    stack: Stack
    cluster: str
    subnet: tuple[str, str, str, str]
    spec: SubnetSpec
    nodes: int
    pod_addresses: int
    min_pod_addresses: int

    @property
    def label(self) -> str:
        """The names of the cluster and its environment."""
        return f"{self.cluster} of {self.stack.name}"


def existing_subnets(stack: Stack) -> Iterator[View]:
    """Yield the address ranges that an environment's file gives for each existing subnet, as a view for rules."""
    for cluster, subnet, spec in _existing(stack):
        project, network, region, name = subnet
        ranges = [{"rangeName": field, "ipCidrRange": getattr(spec, field)} for field in ("pods", "services")]
        yield ExistingSubnetView(
            stack=stack.name,
            type=SUBNETWORK,
            name=name,
            origin=("clusters", cluster),
            inputs={
                "project": project, "network": network, "region": region, "name": name, "ipCidrRange": spec.nodes,
                "secondaryIpRanges": ranges,
            },
        )  # fmt: skip


def subnet_uses(stack: Stack, views: Iterable[View]) -> Iterator[SubnetUse]:
    """Yield what each cluster of an environment needs of its existing subnet, according to the environment's plan."""
    of_pools: dict[str, list[NodePoolView]] = defaultdict(list)
    clusters: dict[str, ClusterView] = {}
    for view in views:
        if view.origin[:1] == ("clusters",) and isinstance(view, NodePoolView):
            of_pools[str(view.origin[1])].append(view)
        elif view.origin[:1] == ("clusters",) and isinstance(view, ClusterView):
            clusters[str(view.origin[1])] = view
    for cluster, subnet, spec in _existing(stack):
        pools = of_pools[cluster]
        by_default = clusters[cluster].max_pods if cluster in clusters else None
        blocks = {pool: pod_block(pool.max_pods or by_default or DEFAULT_PODS) for pool in pools}
        yield SubnetUse(
            stack=stack,
            cluster=cluster,
            subnet=subnet,
            spec=spec,
            nodes=sum(pool.most_vms for pool in pools),
            pod_addresses=sum(block * pool.most_vms for pool, block in blocks.items()),
            min_pod_addresses=sum(block * pool.least_vms for pool, block in blocks.items()),
        )


def _existing(stack: Stack) -> Iterator[tuple[str, tuple[str, str, str, str], SubnetSpec]]:
    """Yield an environment's clusters that are on existing subnets, each with the subnet and its ranges in the file."""
    environment = stack.environment
    if environment is None or environment.network is None:
        return
    for name, cluster in environment.clusters.items():
        if cluster.subnet is not None and cluster.subnet.name is not None:
            region = region_of(cluster.location)
            subnet = (environment.network_project, environment.network.name, region, cluster.subnet.name)
            yield name, subnet, cluster.subnet


def existing_networks(uses: Sequence[SubnetUse], workspace: Workspace) -> Iterator[Draft]:
    """Find an existing subnet that is too small for all of its clusters, and report what is unknown about it."""
    of_subnet: dict[tuple[object, ...], list[SubnetUse]] = defaultdict(list)
    of_pods: dict[tuple[object, ...], list[SubnetUse]] = defaultdict(list)
    for use in uses:
        of_subnet[use.subnet].append(use)
        of_pods[(*use.subnet, use.spec.pods)].append(use)
    for sharing in of_subnet.values():
        yield from _range_names(sharing)
        for use in sharing:
            yield from _nodes(use, sharing)
    for sharing in of_pods.values():
        for use in sharing:
            yield from _pods(use, sharing)
    yield from _clusters_twice(workspace)
    yield from _not_judged(workspace)


def _not_judged(workspace: Workspace) -> Iterator[Draft]:
    """Report once what is unknown about each existing network, cluster and software installation."""
    for stack, environment in workspace.environments():
        if environment.network is not None:
            message = (
                "exists already: its NAT gateways, its firewall rules, the ranges of Google's services and its other "
                "users are not known here"
            )
            yield finding(stack, ("network",), message, rule=NETWORK_NOT_JUDGED)
        for name, cluster in environment.clusters.items():
            if cluster.existing is not None:
                message = "exists already: its version, its settings and its ranges are not known here"
                yield finding(stack, ("clusters", name, "existing"), message, rule=CLUSTER_NOT_JUDGED)
            software = [name for name in _SOFTWARE if getattr(cluster.software, name) == "existing"]
            if software:
                message = f"{' and '.join(software)} of somebody else: versions and settings are not known here"
                yield finding(stack, ("clusters", name, "software"), message, rule=SOFTWARE_NOT_JUDGED)


def _nodes(use: SubnetUse, sharing: Sequence[SubnetUse]) -> Iterator[Draft]:
    """Find a primary range with fewer addresses than the maximum number of nodes of all clusters on the subnet."""
    path = ("clusters", use.cluster, "subnet", "nodes")
    room = IPv4Network(use.spec.nodes)
    another = next((other for other in sharing if other.spec.nodes != use.spec.nodes), None)
    if another is not None:
        message = f"is {use.spec.nodes}, but {another.label} has {another.spec.nodes} for the same subnet"
        yield finding(use.stack, path, message, rule=_RULE_OF[node_range], allowed="the primary range of the subnet")
        return
    nodes = sum(other.nodes for other in sharing)
    addresses = room.num_addresses - RESERVED_ADDRESSES
    if nodes > addresses:
        parts = listed([f"{other.label} {other.nodes:,}" for other in sharing], _MOST_NAMED)
        message = f"{room} of subnet {use.subnet[-1]} has {addresses:,} addresses for {nodes:,} nodes: {parts}"
        prefix = prefix_with(nodes + RESERVED_ADDRESSES)
        yield finding(use.stack, path, message, rule=_RULE_OF[node_range], allowed=_grown(prefix, use))


def _range_names(sharing: Sequence[SubnetUse]) -> Iterator[Draft]:
    """Find secondary ranges of one subnet that have the same name but different addresses.

    Also find a range that two clusters use for Services.
    """
    first_uses: dict[str, tuple[SubnetUse, str]] = {}
    for use in sharing:
        for field in ("pods", "services"):
            name = getattr(use.spec, f"{field}_range")
            addresses = getattr(use.spec, field)
            first, first_field = first_uses.setdefault(name, (use, field))
            path = ("clusters", use.cluster, "subnet", field)
            if first is use:
                continue
            if getattr(first.spec, first_field) != addresses:
                first_addresses = getattr(first.spec, first_field)
                message = (
                    f"is {addresses}, but {first.label} has {first_addresses} for the range {name} of the same subnet"
                )
                yield finding(use.stack, path, message, rule=RANGE_NAMES, allowed=f"the addresses of the range {name}")
            elif field == "services":
                message = (
                    f"is the range {name} of subnet {use.subnet[-1]}, which {first.label} already uses; no source "
                    f"says whether GKE refuses this"
                )
                allowed = "a separate range for the Services of each cluster, set with services_range"
                unjudged = "range of Services of two clusters"
                yield finding(
                    use.stack, path, message, rule=RANGE_NAMES, severity="note", allowed=allowed, unjudged=unjudged
                )


def _clusters_twice(workspace: Workspace) -> Iterator[Draft]:
    """Find a cluster that occurs in two sections which both install Kueue or JobSet."""
    installers: dict[tuple[str, str, str, str], str] = {}
    for stack, environment in workspace.environments():
        for name, cluster in environment.clusters.items():
            gke_name = cluster.existing or f"{stack.name}-{name}"
            section = f"{name} of {stack.name}"
            twice = []
            for software in _SOFTWARE:
                if getattr(cluster.software, software) == "installed":
                    first = installers.setdefault((environment.project, cluster.location, gke_name, software), section)
                    if first != section:
                        twice.append((software, first))
            if twice:
                names = " and ".join(software for software, _ in twice)
                message = (
                    f"{gke_name} and {twice[0][1]} are the same cluster, and the latter already installs {names} in it"
                )
                allowed = (
                    f"in the software of one of the two: {', '.join(f'{software}: existing' for software, _ in twice)}"
                )
                path = ("clusters", name, "existing" if cluster.existing else "location")
                yield finding(stack, path, message, rule=CLUSTER_TWICE, allowed=allowed)


def _pods(use: SubnetUse, sharing: Sequence[SubnetUse]) -> Iterator[Draft]:
    """Find a pod range that is too small for the maximum number of nodes of all clusters that use it."""
    room = IPv4Network(use.spec.pods)
    needed = sum(other.pod_addresses for other in sharing)
    if needed > room.num_addresses:
        parts = listed([f"{other.label} {other.pod_addresses:,}" for other in sharing], _MOST_NAMED)
        message = (
            f"{room} of subnet {use.subnet[-1]} has {room.num_addresses:,} addresses, but the maximum number of "
            f"nodes needs {needed:,}: {parts}"
        )
        minimum = sum(other.min_pod_addresses for other in sharing)
        yield finding(
            use.stack,
            ("clusters", use.cluster, "subnet", "pods"),
            message,
            rule=_RULE_OF[pod_range],
            severity=None if minimum > room.num_addresses else "warning",  # as of a subnet of the stack
            allowed=_grown(prefix_with(needed), use),
        )


def _grown(prefix: int, use: SubnetUse) -> str:
    """Return what the owner of a subnet has to do to enlarge it."""
    return (
        f"a /{prefix} or larger: the owner of project {use.subnet[0]} has to enlarge the range, then change this field"
    )
