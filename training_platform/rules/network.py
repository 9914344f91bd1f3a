"""Rules about networks: ranges for nodes and pods, overlaps, webhook firewall rules, NAT gateways, public addresses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Network, ip_network
from itertools import chain

from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.locations import region_of
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.quota.charges import nat_addresses
from training_platform.quota.demand import vms_behind
from training_platform.resources.network import control_plane_ports
from training_platform.views.cluster import ClusterView, pools_of, regions_of
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.network import (
    AttachmentView,
    ExistingSubnetView,
    FirewallView,
    GatewayView,
    InterfaceView,
    NetworkView,
    ServicesRangeView,
    SubnetView,
)
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import FilestoreView, LustreView
from training_platform.views.whole_stack import Program

RangeOwner = SubnetView | ServicesRangeView
"""A resource that uses ranges of a VPC, as rules see it."""
_ARITHMETIC = (
    "GKE's block of pod addresses per node; general knowledge (unverified), consistent with the pool sizes of xpk "
    "367c838"
)
DEFAULT_PODS = 110
WEBHOOK_PORT = 9443
RESERVED_ADDRESSES = 4  # of a subnet's primary range
_DIRECT = (None, "DIRECT_PEERING")  # how an instance joins its VPC with a range of its own
_PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
_RFC_1918 = _PRIVATE[:3]
_FILESTORE_OWN = IPv4Network("172.17.0.0/16")
_PROHIBITED = tuple(map(IPv4Network, (
    "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "199.36.153.4/30", "199.36.153.8/30", "224.0.0.0/4",
    "255.255.255.255/32",
)))  # fmt: skip
_UNROUTED = tuple(map(IPv4Network, ("100.64.0.0/10", "240.0.0.0/4")))
LONGEST_PREFIX = 29  # of a subnet's primary range


@rule("pod-range", ruleset="addresses", across=True, source=_ARITHMETIC)
def pod_range(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a pod range that is too small for the maximum number of nodes in the pools."""
    subnet = subnet_named(cluster.subnetwork, program)
    room = network_of(subnet.ranges.get(cluster.pods_range or "")) if subnet else None
    if subnet is None or room is None:
        return
    pods = {pool: pool.max_pods or cluster.max_pods or DEFAULT_PODS for pool in pools_of(cluster, program)}
    blocks = {pool: pod_block(max_pods) for pool, max_pods in pods.items()}
    total = sum(block * pool.most_vms for pool, block in blocks.items())
    if total > room.num_addresses:
        largest = max(blocks, key=lambda pool: blocks[pool] * pool.most_vms)
        message = (
            f"the pods' range {room} has {room.num_addresses:,} addresses, but the maximum number of nodes needs "
            f"{total:,} (most of them for {largest.name})"
        )
        prefix = prefix_with(total)
        min_addresses = sum(block * pool.least_vms for pool, block in blocks.items())
        yield finding(
            cluster, "pods_range", message, allowed=f"a /{prefix} or larger",
            nearest=f"{room.network_address}/{prefix}",
            # An autoscaler may never reach its maximum.
            severity=None if min_addresses > room.num_addresses else "warning",
            views=pods,
        )  # fmt: skip


def prefix_with(addresses: int) -> int:
    """Return the prefix length of the smallest range with this number of addresses: 24 for 200."""
    return 32 - (addresses - 1).bit_length()


def pod_block(max_pods: int) -> int:
    """Return the number of pod addresses per node: twice its pods, as a power of two, and at least those of a /28."""
    return max(16, 1 << (2 * max_pods - 1).bit_length())


@rule(
    "range-names",
    ruleset="addresses",
    source="terraform-google-gke (gruntwork-io) #118: the API refuses it since 2021-03, read 2026-11-29",
)
def range_names(cluster: ClusterView) -> Iterator[Draft]:
    """Find a cluster that uses the same range for pods and Services."""
    if cluster.pods_range and cluster.pods_range == cluster.services_range:
        message = f"pods and Services use the same range, {cluster.pods_range}"
        yield finding(cluster, "services_range", message, allowed="a separate range for Services")


@rule("node-range", ruleset="addresses", across=True, source=_ARITHMETIC)
def node_range(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a subnet with fewer addresses than the maximum number of nodes in the pools."""
    subnet = subnet_named(cluster.subnetwork, program)
    room = network_of(subnet.cidr) if subnet else None
    if subnet is None or room is None:
        return
    pools = list(pools_of(cluster, program))
    nodes = sum(pool.most_vms for pool in pools)
    if nodes > room.num_addresses - RESERVED_ADDRESSES:
        prefix = prefix_with(nodes + RESERVED_ADDRESSES)
        message = (
            f"the nodes' range {room} has {room.num_addresses - RESERVED_ADDRESSES:,} addresses, but there can be "
            f"{nodes:,} nodes"
        )
        yield finding(
            subnet, "cidr", message, allowed=f"a /{prefix} or larger", nearest=f"{room.network_address}/{prefix}",
            views=pools,
        )  # fmt: skip


@rule(
    "ranges-overlap", ruleset="addresses", across=True, source="Compute docs, subnets: ranges of one VPC do not overlap"
)
def ranges_overlap(program: Program) -> Iterator[Draft]:
    """Find two overlapping ranges in one VPC."""
    for network, every_range in sorted(program.once(_taken).items()):
        # Clusters may share an existing subnet, which a rule on all stack files compares.
        ranges_of = [row for row in every_range if not isinstance(row[2], ExistingSubnetView)]
        widest: tuple[IPv4Network, RangeOwner] | None = None
        for room, field, view in sorted(ranges_of, key=lambda row: (row[0].network_address, row[0].prefixlen)):
            if widest and room.network_address <= widest[0].broadcast_address:
                message = f"{room} overlaps {widest[0]} of {widest[1].name}"
                files = [other for other in program.all(FilestoreView) if _network_name(other, program) == network]
                yield finding(
                    view, field, message, allowed="ranges of one VPC that do not overlap",
                    nearest=_free(_rooms(network, files, program), room.prefixlen),
                )  # fmt: skip
            # A range that overlaps any earlier one overlaps the one that reaches farthest.
            if not widest or room.broadcast_address > widest[0].broadcast_address:
                widest = room, view


@rule(
    "public-range",
    ruleset="addresses",
    across=True,
    severity="warning",
    owner="house",
    source="house rule: a VPC with public addresses of others cannot reach those others (RFC 1918; IANA's "
    "special-purpose registry)",
)
def public_range(subnet: SubnetView) -> Iterator[Draft]:
    """Find a range of public addresses. Pods and nodes could not reach the internet hosts with these addresses."""
    for field, room in _ranges(subnet):
        if room.is_global:
            alike = (block for block in _PRIVATE if str(block).split(".")[0] == str(room).split(".")[0])
            private = next(alike, _PRIVATE[0])
            start = private.network_address + int(room.network_address) % private.num_addresses
            nearest = f"{start}/{room.prefixlen}" if room.prefixlen >= private.prefixlen else None
            message = f"{room} is not a private range: its addresses are public and belong to others"
            yield finding(subnet, field, message, allowed=f"ranges in {', '.join(map(str, _PRIVATE))}", nearest=nearest)


@rule(
    "subnet-range",
    ruleset="addresses",
    source="Service Networking's API document v1: Compute refuses subnets smaller than /29, read 2026-11-28; VPC docs, "
    "prohibited ranges (general knowledge, not read)",
)
def subnet_range(subnet: SubnetView) -> Iterator[Draft]:
    """Find a subnet with fewer than eight addresses, or with addresses that VPCs do not support."""
    for field, room in _ranges(subnet):
        closed = next((block for block in _PROHIBITED if room.overlaps(block)), None)
        if closed is not None:
            message = f"{room} overlaps {closed}, which subnets do not support"
            yield finding(subnet, field, message, allowed=f"ranges in {', '.join(map(str, _PRIVATE))}")
        elif field == "cidr" and room.prefixlen > LONGEST_PREFIX:
            message = f"{room} has {room.num_addresses} addresses"
            nearest = f"{room.network_address}/{LONGEST_PREFIX}"
            yield finding(subnet, field, message, allowed=f"a /{LONGEST_PREFIX} or larger", nearest=nearest)


@rule(
    "attachment-range",
    ruleset="addresses",
    severity="warning",
    across=True,
    source="Vertex AI docs, Private Service Connect interfaces (general knowledge, not read)",
)
def attachment_range(attachment: AttachmentView, program: Program) -> Iterator[Draft]:
    """Find a network attachment on a subnet with an address range that Vertex AI does not route."""
    subnet = subnet_named(attachment.subnet, program)
    room = network_of(subnet.cidr) if subnet else None
    if subnet is not None and room is not None and any(room.overlaps(block) for block in _UNROUTED):
        message = f"{room} is in {' or '.join(map(str, _UNROUTED))}, which Vertex AI does not route"
        yield finding(subnet, "cidr", message, allowed=f"ranges in {', '.join(map(str, _PRIVATE[:3]))}")


@rule(
    "webhook-firewall",
    ruleset="addresses",
    across=True,
    severity="warning",
    source="charts of Kueue and JobSet; default ports of terraform-google-kubernetes-engine; otel-operator #100",
)
def webhook_firewall(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find private nodes in a VPC of this program that has no firewall rule for webhook calls."""
    network = _network_of(cluster, program)
    if not cluster.private_nodes or network is None:
        return
    rules = [row for row in program.all(FirewallView) if network.is_meant(row.network, "network")]
    if any(row.opens(WEBHOOK_PORT) for row in rules):
        return
    queues = bool(program.all(FlavorView) or program.all(FlavorQuotaView))
    message = f"no firewall rule of {network.name} allows the control plane to reach webhooks on tcp {WEBHOOK_PORT}"
    yield finding(
        cluster, "network", message, allowed=f"tcp {', '.join(control_plane_ports())} from the control plane's range",
        nearest="a Firewall of that VPC", severity="error" if queues else None,
    )  # fmt: skip


@rule(
    "private-nodes-way-out",
    ruleset="addresses",
    across=True,
    severity="warning",
    source="GKE docs, private clusters; it is (inferred) that images then cannot be pulled",
)
def private_nodes_way_out(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find private nodes in a region without NAT, which cannot pull images from outside Google Cloud."""
    network = _network_of(cluster, program)
    region = region_of(cluster.location)
    if not cluster.private_nodes or network is None:
        return
    if not any(gateway.region == region for gateway in program.all(GatewayView)):
        message = f"{network.name} has no NAT in {region}, but private nodes pull from registry.k8s.io and ghcr.io"
        yield finding(cluster, "network", message, allowed="a RouterNat, or a remote repository for images")


@rule(
    "filestore-range-free",
    ruleset="addresses",
    across=True,
    source="filestore API (googleapis f8291d2); Filestore CSI driver 2edb466",
)
def filestore_range_free(instance: FilestoreView, program: Program) -> Iterator[Draft]:
    """Find a Filestore instance's range that overlaps a subnet, another instance, or the range of Google's services."""
    reserved = network_of(instance.reserved_range)
    if reserved is None:
        return
    other_ranges = [
        (view.name, room) for room, _, view in program.once(_taken).get(_network_name(instance, program), ())
    ]
    for other in _beside(instance, program):
        room = network_of(other.reserved_range)
        if room is not None and other.name < instance.name:
            other_ranges.append((other.name, room))
    for name, room in other_ranges:
        if reserved.overlaps(room):
            message = f"{reserved} overlaps {room} of {name}"
            nearest = _free_range(instance, program, reserved.prefixlen)
            yield finding(instance, "reserved_range", message, allowed="a free range of the VPC", nearest=nearest)


@rule(
    "filestore-clients",
    ruleset="addresses",
    across=True,
    source="Filestore docs, create an instance, and access control by addresses, read 2026-04-10",
)
def filestore_clients(instance: FilestoreView, program: Program) -> Iterator[Draft]:
    """Find nodes that cannot use a Filestore instance, and an instance with a range that Filestore refuses.

    Filestore reserves 172.17.0.0/16 for its own components. Clients outside RFC 1918 need their own access rule. A
    share is mounted by nodes, not by pods.
    """
    reserved = network_of(instance.reserved_range)
    if reserved is not None and reserved.overlaps(_FILESTORE_OWN):
        message = f"{reserved} is in {_FILESTORE_OWN}, which Filestore reserves for its own components"
        yield finding(instance, "reserved_range", message, allowed=f"a range outside {_FILESTORE_OWN}")
    served = [network_of(text) for export in instance.exports for text in export.ranges]
    for room, field, view in program.once(_taken).get(_network_name(instance, program), ()):
        if field != "cidr" or not isinstance(view, SubnetView) or not view.is_of_nodes:
            continue
        if room.overlaps(_FILESTORE_OWN):
            message = f"nodes in {room} cannot connect to {instance.name}, because Filestore reserves {_FILESTORE_OWN}"
            yield finding(view, field, message, allowed=f"a range outside {_FILESTORE_OWN}")
        elif not any(map(room.subnet_of, _RFC_1918)) and not any(block and room.subnet_of(block) for block in served):
            message = f"nodes in {room} are outside RFC 1918, but no export of the instance contains that range"
            yield finding(
                instance, "exports", message, allowed=f"an export with {room}", nearest=room, severity="warning"
            )


@rule(
    "filestore-range-given",
    ruleset="addresses",
    across=True,
    severity="warning",
    owner="house",
    source="house rule: the addresses of a VPC are planned; filestore API (googleapis f8291d2), reserved_ip_range",
)
def filestore_range_given(instance: FilestoreView, program: Program) -> Iterator[Draft]:
    """Find a Filestore instance without a range. Google Cloud may choose a range that a later cluster needs."""
    if instance.reserved_range or instance.connect_mode not in _DIRECT:
        return
    tier = FILESTORE_TIERS.get(instance.tier)
    size = f"/{tier.reserved_prefixes[0]}" if tier else "range"
    yield finding(
        instance, "reserved_range",
        "has no address range: Google Cloud chooses one at creation, and no later subnet can use that range",
        allowed=f"a free {size} in the VPC; for an existing instance, the range that it has",
        nearest=_free_range(instance, program, tier.reserved_prefixes[0]) if tier else None,
    )  # fmt: skip


def _free_range(instance: FilestoreView, program: Program, prefix: int) -> IPv4Network | None:
    """Return an unused range in the instance's VPC. Each instance without a range gets a different one."""
    network = _network_name(instance, program)
    other_instances = _beside(instance, program)
    earlier = sum(not other.reserved_range and other.name < instance.name for other in other_instances)
    return _free(_rooms(network, other_instances, program), prefix, earlier)


def _rooms(network: str, files: Iterable[FilestoreView], program: Program) -> list[IPv4Network]:
    """Return the ranges of a VPC that subnets, Google's services and the Filestore instances in ``files`` use."""
    taken = [room for room, _, _ in program.once(_taken).get(network, ())]
    reserved = [network_of(other.reserved_range) for other in files if other.known("reserved_range")]
    return taken + [room for room in reserved if room]


def _free(taken: Collection[IPv4Network], prefix: int, skipped: int = 0) -> IPv4Network | None:
    """Return an unused range in the private block to which the ranges in ``taken`` belong.

    The first ``skipped`` unused ranges are skipped.
    """
    block = next((block for block in _PRIVATE if taken and block.overlaps(min(taken))), None)
    if block is None:
        return None
    size = 2 ** (32 - prefix)
    start = int(min(taken).network_address) // size * size
    for _ in range(1 + skipped):
        for room in sorted(taken):
            if int(room.network_address) < start + size and start <= int(room.broadcast_address):
                start = -(-(int(room.broadcast_address) + 1) // size) * size
        free = IPv4Network((start, prefix))
        start += size
    return free if free.subnet_of(block) else None


def _beside(instance: FilestoreView, program: Program) -> list[FilestoreView]:
    """Return the other Filestore instances in the same VPC for which a range is set."""
    network = _network_name(instance, program)
    return [
        other
        for other in program.all(FilestoreView)
        if other is not instance and other.known("network") and _network_name(other, program) == network
        if other.known("reserved_range") and other.connect_mode in _DIRECT
    ]


@rule(
    "filestore-region",
    ruleset="addresses",
    across=True,
    severity="warning",
    source="terraform-provider-google-beta 93c65b2; Filestore docs, read 2026-04-10",
)
def filestore_region(instance: FilestoreView, program: Program) -> Iterator[Draft]:
    """Find a Filestore instance in a region without clusters. Pods would mount it across regions."""
    yield from far_from_clusters(instance, program)


@rule("subnet-region", ruleset="addresses", across=True, source="terraform-provider-google-beta 93c65b2")
def subnet_region(cluster: ClusterView, program: Program) -> Iterator[Draft]:
    """Find a cluster whose subnet is in another region."""
    subnet = subnet_named(cluster.subnetwork, program)
    if subnet is not None and subnet.region and subnet.region != region_of(cluster.location):
        message = f"subnet {subnet.name} is in {subnet.region}, but the cluster is in {region_of(cluster.location)}"
        yield finding(cluster, "subnetwork", message, allowed="one region", nearest=region_of(cluster.location))


def far_from_clusters(instance: FilestoreView | LustreView, program: Program) -> Iterator[Draft]:
    """Find an instance in a region without clusters. A program without any clusters is not checked."""
    regions = regions_of(program)
    if regions and region_of(instance.location) not in regions:
        message = f"{instance.location} has no cluster"
        yield finding(instance, "location", message, allowed=", ".join(sorted(regions)), nearest=min(regions))


def subnet_named(reference: str | None, program: Program) -> SubnetView | None:
    """Return a subnet of the program, given by its logical name or its name in Google Cloud."""
    return program.once(_subnets).get(reference) if isinstance(reference, str) else None


def subnet_of(cluster: ClusterView, program: Program) -> SubnetView | None:
    """Return a cluster's subnet in the program, or the existing subnet with the ranges in the stack file."""
    existing = (view for view in program.all(ExistingSubnetView) if cluster.origin and view.origin == cluster.origin)
    return subnet_named(cluster.subnetwork, program) or next(existing, None)


def _subnets(program: Program) -> dict[str, SubnetView]:
    subnets = [subnet for subnet in program.all(SubnetView) if not isinstance(subnet, ExistingSubnetView)]
    by_cloud_name = {
        subnet.subnetwork: subnet for subnet in subnets if subnet.known("subnetwork") and subnet.subnetwork
    }
    return {subnet.name: subnet for subnet in subnets} | by_cloud_name


def _network_of(cluster: ClusterView, program: Program) -> NetworkView | None:
    return next((network for network in program.all(NetworkView) if network.is_meant(cluster.network, "network")), None)


def _taken(program: Program) -> dict[str, list[tuple[IPv4Network, str, RangeOwner]]]:
    """Return the ranges of subnets and of Google's services in each VPC, with the fields that set them."""
    taken: dict[str, list[tuple[IPv4Network, str, RangeOwner]]] = defaultdict(list)
    every: Iterable[RangeOwner] = chain(program.all(SubnetView), program.all(ServicesRangeView))
    for view in every:
        if view.known("network") and (network := _network_name(view, program)):
            taken[network].extend((room, field, view) for field, room in _ranges(view))
    return taken


def _network_name(view: RangeOwner | FilestoreView, program: Program) -> str:
    """Return the logical name of a resource's VPC, or else the name that the program uses; empty without a VPC."""
    networks = (network.name for network in program.all(NetworkView) if network.is_meant(view.network, "network"))
    return next(networks, view.network or "")


def _ranges(subnet: RangeOwner) -> Iterator[tuple[str, IPv4Network]]:
    """Yield the known ranges of a subnet, each with its field."""
    ranges = {"cidr": subnet.cidr if subnet.known("cidr") else None}
    if subnet.known("ranges"):
        ranges |= subnet.ranges
    for field, text in ranges.items():
        room = network_of(text)
        if room is not None:
            yield field, room


@lru_cache(maxsize=4096)
def network_of(text: str | None) -> IPv4Network | None:
    """Return an IPv4 range, or None for a name, IPv6, and any other string."""
    try:
        network = ip_network(text or "", strict=False)
    except ValueError:
        return None
    return network if isinstance(network, IPv4Network) else None


@rule(
    "nat-addresses",
    ruleset="addresses",
    severity="warning",
    across=True,
    owner="house",
    source="Cloud NAT docs, addresses and ports, read 2026-11-28: at most 300 automatic addresses per gateway",
)
def nat_addresses_enough(gateway: GatewayView, program: Program) -> Iterator[Draft]:
    """Find a NAT gateway with too few addresses for the ports of all VMs. Additional connections would fail.

    It is an error if a gateway cannot have enough addresses for the minimum number of ports. For the maximum number,
    which is only reached under load, it is a note.
    """
    vms = vms_behind(gateway, program.all(NodePoolView))
    available = gateway.addresses or MOST_NAT_ADDRESSES
    severity: Severity = "warning" if gateway.addresses else "error"
    ports = gateway.least_ports
    if nat_addresses(vms, ports) <= available:
        severity = "note"
        ports = gateway.most_ports
    needed = nat_addresses(vms, ports)
    if needed <= available:
        return
    has = "a gateway has at most 300"
    allowed = "fewer VMs in the region, or fewer ports per VM"
    nearest = None
    if gateway.addresses:
        has = f"{available} are reserved"
        allowed = f"at least {needed:,}, or 0: Google Cloud then allocates them"
        nearest = needed
    message = f"{vms:,} VMs with {ports:,} ports each need {needed:,} addresses, but {has}"
    yield finding(gateway, "addresses", message, severity=severity, allowed=allowed, nearest=nearest)


MOST_NAT_ADDRESSES = 300


_HOUSE = "house rule: machines reach the internet through NAT, and people reach control planes by DNS name and with IAM"


@rule("private-cluster", ruleset="network", owner="house", source=_HOUSE)
def private_cluster(cluster: ClusterView) -> Iterator[Draft]:
    """Find a cluster whose nodes have public addresses by default."""
    if not cluster.private_nodes:
        message = "nodes of this cluster have public addresses"
        yield finding(cluster, "private_nodes", message, allowed="private nodes")


@rule("private-nodes", ruleset="network", owner="house", source=_HOUSE)
def private_nodes(pool: NodePoolView) -> Iterator[Draft]:
    """Find a node pool whose nodes have public addresses, or may get them by the cluster's default."""
    if not pool.private_nodes:
        yield finding(pool, "private_nodes", "nodes of this pool can get public addresses", allowed="private nodes")


@rule("private-control-plane", ruleset="network", owner="house", source=_HOUSE)
def private_control_plane(cluster: ClusterView) -> Iterator[Draft]:
    """Find a control plane with a public address."""
    if cluster.public_endpoint:
        message = "the control plane has a public address"
        yield finding(cluster, "public_endpoint", message, allowed="only the DNS-based endpoint")


@rule("no-external-address", ruleset="network", owner="house", source=_HOUSE)
def no_external_address(interface: InterfaceView) -> Iterator[Draft]:
    """Find a VM or an instance template with a public address."""
    if interface.public:
        message = f"a network interface of {interface.name} has a public address"
        yield finding(interface, "public", message, allowed="none")
