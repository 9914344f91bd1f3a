"""An environment's network: VPC, NAT, cluster subnets, private zones for Google's APIs, Vertex AI's attachment.

The private zones resolve names of Google's APIs to fixed addresses, which network policies can then allow. Nodes reach
these addresses through Private Google Access and the VPC's default route. Nothing else in the VPC changes.

Source: Google Cloud docs, Configure Private Google Access (addresses, zones and records), read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from training_platform.catalog import CHART_PORTS
from training_platform.catalog.locations import region_of
from training_platform.config.model.cluster import ClusterSpec, SubnetSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import OWN_ATTACHMENT
from training_platform.config.names import declared_name, vpc_name
from training_platform.resources import gcp
from training_platform.resources.plan import Component, Options, Resource, once
from training_platform.resources.scope import NAME_LIMIT, Scope, short_name

if TYPE_CHECKING:
    from pulumi_gcp import compute

# The largest packets that a VPC supports, so that traffic between hosts and from Filestore spends less on headers. A
# change takes effect only after VMs are stopped. Traffic that leaves the VPC is clamped to the MTU of its path.
MTU_BYTES = 8896
# Ports per VM and destination. With 64, one address serves 1,008 VMs; a large host whose pods pull images or data sets
# at once grows to 4,096.
NAT_MIN_PORTS = 64
NAT_MAX_PORTS = 4096


def existing_network(environment: Environment) -> str | None:
    """Return the id of the existing VPC, or None if the environment creates its own."""
    network = environment.network
    return f"projects/{environment.network_project}/global/networks/{network.name}" if network else None


def existing_network_name(environment: Environment) -> str | None:
    """Return an existing VPC as storage drivers need it: its name, or its id if it is in another project."""
    existing = existing_network(environment)
    return existing if existing is None or environment.host_project else existing.rpartition("/")[2]


@dataclass(frozen=True, kw_only=True)
class NetworkParts:
    """The regions and address ranges of a network."""

    regions: tuple[str, ...]  # those with a cluster, in any order, repeated or not
    nat_addresses: int = 0  # reserved for each region's gateway
    services_range: str | None = None  # addresses for private service access
    lustre: bool = False  # whether servers of Managed Lustre have addresses in this range
    google_apis: Entrance | None = None  # the entrance of Google's APIs; None for public addresses


class NetworkResources(NamedTuple):
    """The parts of a network that other resources use. Ids and names are references, or strings for an existing VPC."""

    network_id: Any  # projects/*/global/networks/*
    network_name: Any
    services: Resource | None  # private service access, and the name of its addresses; None without it
    services_range: Any
    google_apis: Any  # the range to which names of Google's APIs resolve, known once they do; None if it is public


def network_resources(name: str, scope: Scope, parts: NetworkParts, into: Component) -> NetworkResources:
    """Add a VPC with a NAT gateway in each region, private service access, and DNS zones for Google's APIs."""
    network = into.add(vpc(name, scope))
    network_id = network.output("id")
    for region in sorted(set(parts.regions)):
        addresses = [
            into.add(address).output("self_link") for address in nat_addresses(name, region, scope, parts.nat_addresses)
        ]
        gateway = into.add(router(name, region, scope, network_id))
        into.add(nat(name, region, scope, gateway.output("name"), addresses))
    services = range_name = None
    if parts.services_range:
        range_name = into.add(services_range(name, scope, parts.services_range, network_id)).output("name")
        services = into.add(service_connection(name, network_id, range_name))
        if parts.lustre:
            into.add(lustre_firewall(parts.services_range, scope, network_id))
    google_apis = None
    if parts.google_apis:
        records: list[Resource] = []
        for domain in DOMAINS:
            zone = into.add(api_zone(name, domain, scope, network_id)).output("name")
            records += [into.add(record) for record in api_records(name, domain, parts.google_apis, scope, zone)]
        google_apis = once(parts.google_apis.range, *(record.output("id") for record in records))
    joined = range_name if services is None else once(range_name, services.output("id"))
    into.outputs = {"network_id": network_id, "network_name": network.output("name"), "services_range": joined}
    return NetworkResources(
        network_id, network.output("name"), services=services, services_range=range_name, google_apis=google_apis
    )


def vpc(name: str, scope: Scope) -> Resource:
    """Return a VPC without subnets, because clusters add their own."""
    # It contains everything else of the environment.
    options = Options(protect=scope.deletion_protection)
    return gcp.network(
        f"{name}-vpc",
        options,
        project=scope.project,
        name=vpc_name(scope.prefix),  # peerings and people refer to it from outside
        auto_create_subnetworks=False,
        routing_mode="REGIONAL",  # routes to subnets are global anyway, and no router here learns others
        mtu=MTU_BYTES,
        delete_default_routes_on_create=False,  # the NAT gateways reach the internet by the default route
    )


def router(name: str, region: str, scope: Scope, network: Any) -> Resource:
    """Return the router to which a region's NAT gateway belongs."""
    return gcp.router(f"{name}-{region}-router", project=scope.project, region=region, network=network)


def nat_addresses(name: str, region: str, scope: Scope, count: int) -> Iterator[Resource]:
    """Yield the reserved addresses of a region's NAT gateway. They are numbered, because they are interchangeable.

    A released address may immediately be assigned to another project, while third parties may still allow traffic from
    it.
    """
    # The old address is deleted last, since its gateway uses it: only a new project replaces it, and its name is free.
    options = Options(protect=scope.deletion_protection)
    for number in range(1, count + 1):
        yield gcp.address(
            f"{name}-{region}-nat-{number}",
            options,
            project=scope.project,
            region=region,
            name=short_name(f"{scope.environment}-nat-{region}-{number}", NAME_LIMIT),
            address_type="EXTERNAL",
            description=f"NAT of environment {scope.environment}",
            labels=scope.labels,
        )


def nat(name: str, region: str, scope: Scope, router_name: Any, addresses: Sequence[Any]) -> Resource:
    """Return a region's NAT gateway, through which private nodes pull from registry.k8s.io and other external hosts.

    ``addresses`` are the self-links of reserved addresses. If there are none, Google Cloud allocates as many addresses
    as the load needs.
    """
    return gcp.router_nat(
        f"{name}-{region}-nat",
        project=scope.project,
        region=region,
        router=router_name,
        nat_ip_allocate_option="MANUAL_ONLY" if addresses else "AUTO_ONLY",
        nat_ips=list(addresses) or None,
        source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
        enable_dynamic_port_allocation=True,
        enable_endpoint_independent_mapping=False,  # excludes dynamic ports
        min_ports_per_vm=NAT_MIN_PORTS,
        max_ports_per_vm=NAT_MAX_PORTS,
        log_config={"enable": True, "filter": "ERRORS_ONLY"},
    )


def services_range(name: str, scope: Scope, addresses: str, network: Any) -> Resource:
    """Return the address range of Google's services in the VPC, for private service access."""
    address, _, prefix = addresses.partition("/")
    # The name is fixed; services that joined the VPC keep their addresses.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return gcp.global_address(
        f"{name}-services-range",
        options,
        project=scope.project,
        name=services_range_name(scope),
        purpose="VPC_PEERING",
        address_type="INTERNAL",
        address=address,
        prefix_length=int(prefix),
        network=network,
        labels=scope.labels,
    )


def service_connection(name: str, network: Any, range_name: Any) -> Resource:
    """Return the peering that connects Google's services to the VPC."""
    return gcp.service_connection(
        f"{name}-services",
        network=network,
        service="servicenetworking.googleapis.com",
        reserved_peering_ranges=[range_name],
        # Google refuses to delete it for a while after the last service left; it is deleted with the VPC (general
        # knowledge, not tried).
        deletion_policy="ABANDON",
    )


def services_range_name(scope: Scope) -> str:
    """Return the name of the VPC's address range for private service access."""
    return f"{scope.prefix}-services"


class Entrance(NamedTuple):
    """A private entry point to Google's APIs: its domain name, and its range of four addresses."""

    name: str
    range: str
    addresses: tuple[str, ...]


ENTRANCES: Final[Mapping[str, Entrance]] = {
    "private": Entrance(
        "private.googleapis.com.", "199.36.153.8/30", addresses=tuple(f"199.36.153.{number}" for number in range(8, 12))
    ),
    "restricted": Entrance(
        "restricted.googleapis.com.",
        "199.36.153.4/30",
        addresses=tuple(f"199.36.153.{number}" for number in range(4, 8)),
    ),
}
APIS: Final = "googleapis.com."
DOMAINS: Final = (APIS, "gcr.io.", "pkg.dev.")  # each has a private zone: APIs, and registries of images
TTL_SECONDS: Final = 300
# The names are fixed, and taken until the old zone or record is gone.
_ZONE_OPTIONS: Final = Options(delete_before_replace=True)


def entrance(environment: Environment) -> Entrance | None:
    """Return the entry point to Google's APIs for an environment's clusters, or None if they use public addresses."""
    return ENTRANCES.get(environment.google_apis) if environment.clusters else None


def api_zone(name: str, domain: str, scope: Scope, network: Any) -> Resource:
    """Return the private zone of a domain, which is visible only in the VPC."""
    return gcp.managed_zone(
        f"{name}-{_label(domain)}-zone",
        _ZONE_OPTIONS,
        project=scope.project,
        name=f"{scope.environment}-{_label(domain)}",
        dns_name=domain,
        description=f"Google's APIs in the VPC of environment {scope.environment}",
        visibility="private",
        private_visibility_config={"networks": [{"network_url": network}]},
        labels=scope.labels,
    )


def api_records(name: str, domain: str, vip: Entrance, scope: Scope, zone: Any) -> Iterator[Resource]:
    """Yield a zone's DNS records: one name with the addresses, and an alias to it for all other names of the domain."""
    host = vip.name if domain == APIS else domain
    for role, record, kind, data in (
        ("addresses", host, "A", list(vip.addresses)),
        ("names", f"*.{domain}", "CNAME", [host]),
    ):
        yield gcp.record_set(
            f"{name}-{_label(domain)}-{role}",
            _ZONE_OPTIONS,
            project=scope.project,
            managed_zone=zone,
            name=record,
            type=kind,
            ttl=TTL_SECONDS,
            rrdatas=data,
        )


def _label(domain: str) -> str:
    return domain.rstrip(".").replace(".", "-")


# Ports of webhooks that others install: ingress-nginx and similar, and a service mesh's injector. Source: default ports
# of terraform-google-kubernetes-engine.
_PORTS_OF_OTHERS = (8443, 15017)
_OPTIONS = Options(
    # Google Cloud cannot change a range that a cluster uses; the cluster is deleted with its subnet.
    replace_on_changes=("secondaryIpRanges",),
    # Subnets of a network cannot have overlapping ranges.
    delete_before_replace=True,
)


def subnet_resources(
    into: Component, spec: ClusterSpec, scope: Scope, *, network: Any, nodes: Any, host_project: str | None
) -> Any:
    """Add a cluster's subnet unless it exists, and the firewall rule for webhooks. Return the subnet's id.

    The component's name is the cluster's key. The rule applies to nodes that run as the service account ``nodes``. The
    owner of a Shared VPC manages its subnets and firewall rules.
    """
    subnet = existing_subnet(spec, host_project or scope.project)
    if subnet is None:
        subnet = into.add(cluster_subnet(into.name, spec, scope, network)).output("id")
    if host_project is None:
        into.add(webhook_firewall(into.name, spec, scope, network, nodes))
    return subnet


def cluster_subnet(name: str, spec: ClusterSpec, scope: Scope, network: Any) -> Resource:
    """Return a cluster's subnet, with ranges for nodes, pods and Services; ``name`` is the cluster's key."""
    ranges = own_ranges(spec)
    return gcp.subnetwork(
        f"{name}-subnet",
        _OPTIONS,
        project=scope.project,
        region=region_of(spec.location),
        network=network,
        ip_cidr_range=ranges.nodes,
        secondary_ip_ranges=[
            {"range_name": ranges.pods_range, "ip_cidr_range": ranges.pods},
            {"range_name": ranges.services_range, "ip_cidr_range": ranges.services},
        ],
        private_ip_google_access=True,  # Google's APIs and registries without the NAT gateway
        # Small samples at long intervals: hosts of a slice exchange more than anybody would pay to have logged.
        log_config={
            "aggregation_interval": "INTERVAL_10_MIN",
            "flow_sampling": 0.1,
            "metadata": "INCLUDE_ALL_METADATA",
        },
    )


def allowed(protocol: str, *ports: str) -> compute.FirewallAllowArgsDict:
    """Return the traffic that a firewall rule allows: the given ports of a protocol, or all ports if none is given."""
    return {"protocol": protocol, "ports": list(ports)} if ports else {"protocol": protocol}


def own_ranges(spec: ClusterSpec) -> SubnetSpec:
    """Return the address ranges of a cluster that the environment creates. The stack file's model requires them."""
    assert spec.subnet is not None, "an existing cluster has no subnet here"
    return spec.subnet


def existing_subnet(spec: ClusterSpec, project: str) -> str | None:
    """Return the id of an existing subnet, or None if one is created; ``project`` is the network's project."""
    name = own_ranges(spec).name
    return f"projects/{project}/regions/{region_of(spec.location)}/subnetworks/{name}" if name else None


def webhook_firewall(name: str, spec: ClusterSpec, scope: Scope, network: Any, node_service_account: Any) -> Resource:
    """Return the firewall rule that allows the control plane to call admission webhooks and aggregated APIs.

    GKE itself opens only 443 and 10250, and only if the control plane's network is peered. If the control plane reaches
    nodes through its agents' tunnel (Konnectivity), a pod on a node sends these calls, and the rule has no effect.
    Source: GKE docs, firewall rules that GKE creates (general knowledge).

    The rule assumes that the calls come from the subnet's primary range (unverified). In a cluster with a DNS-based
    endpoint, the control plane's internal address is in this range.
    """
    return gcp.firewall(
        f"{name}-webhooks",
        project=scope.project,
        network=network,
        description=f"Control plane of cluster {name} to admission webhooks on its nodes",
        direction="INGRESS",
        source_ranges=[own_ranges(spec).nodes],
        target_service_accounts=[node_service_account],
        allows=[allowed("tcp", *control_plane_ports())],
    )


def control_plane_ports() -> list[str]:
    """Return the ports that the control plane calls on nodes: the ports of the catalogue's charts, and common ones."""
    charts = {port for row in CHART_PORTS.values() for port in row.ports}
    return [str(port) for port in sorted(charts.union(_PORTS_OF_OTHERS))]


def attachment_resources(region: str, addresses: str, scope: Scope, network: Any, into: Component) -> None:
    """Add a region's network attachment for Vertex AI, and the subnet with its addresses."""
    subnet = into.add(attachment_subnet(region, addresses, scope, network))
    into.add(network_attachment(region, scope, subnet.output("id")))


def attachment_project(environment: Environment) -> str | None:
    """Return the project whose network attachments Vertex AI may use.

    Return None if there are no attachments or if their owner grants the role.
    """
    if environment.network_attachments:
        return environment.project
    return environment.granted_host_project


def attachment_subnet(region: str, addresses: str, scope: Scope, network: Any) -> Resource:
    """Return the subnet that contains the addresses of Vertex AI's VMs in the VPC."""
    # Names and ranges are taken until the old subnet is gone.
    options = Options(delete_before_replace=True)
    return gcp.subnetwork(
        f"{declared_name('network_attachments', region)}-subnet",
        options,
        project=scope.project,
        region=region,
        name=attachment_id(region, scope),
        network=network,
        ip_cidr_range=addresses,
        private_ip_google_access=True,
    )


def network_attachment(region: str, scope: Scope, subnet: Any) -> Resource:
    """Return the network attachment; ``subnet`` is the self-link of its subnet.

    Vertex AI's service agent adds the project of its VMs to the accepted projects; no other project is accepted.
    Source: Vertex AI docs, set up a Private Service Connect interface, read 2026-08-22.
    """
    options = Options(
        # Persistent resources and jobs name it.
        protect=scope.deletion_protection,
        # The name is fixed, and taken until the old attachment is gone.
        delete_before_replace=True,
        # A subnet in use cannot be deleted, so a replaced subnet replaces the attachment.
        replace_on_changes=("subnetworks",),
        # The agent writes it.
        ignore_changes=("producerAcceptLists",),
    )
    name = f"{declared_name('network_attachments', region)}-attachment"
    return gcp.network_attachment(
        name,
        options,
        name=attachment_id(region, scope),
        project=scope.project,
        region=region,
        description=f"Vertex AI in the network of environment {scope.environment}",
        connection_preference="ACCEPT_MANUAL",
        subnetworks=[subnet],
    )


def attachment_id(region: str, scope: Scope) -> str:
    """Return the name of a region's attachment, which is also its subnet's name: ``{environment}-vertex-{region}``.

    ``scope`` is the scope of the environment or of a team in the same project.
    """
    return short_name(f"{scope.environment}-vertex-{region}", NAME_LIMIT)


def attachment(written: str | None, region: str, scope: Scope) -> str | None:
    """Return the full name of an attachment. The file contains ``environment``, a full name, or nothing."""
    if written != OWN_ATTACHMENT:
        return written
    return f"projects/{scope.project}/regions/{region}/networkAttachments/{attachment_id(region, scope)}"


def lustre_firewall(addresses: str, scope: Scope, network: Any) -> Resource:
    """Return the firewall rule that allows the servers of all instances to reach clients.

    ``addresses`` are the addresses of the servers. Source: Managed Lustre docs, VPC network, read 2026-11-22 in
    translation.
    """
    return gcp.firewall(
        "network-lustre",
        project=scope.project,
        network=network,
        description="Servers of Managed Lustre to their clients",
        direction="INGRESS",
        source_ranges=[addresses],
        allows=[{"protocol": "tcp"}],
    )
