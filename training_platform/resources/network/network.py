"""The network that all clusters of an environment share, with a way out for machines without public addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from training_platform.config.model.environment import Environment
from training_platform.resources import gcp
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.declared import Declared, Options, shared
from training_platform.resources.register import (
    ADDRESS,
    GLOBAL_ADDRESS,
    NETWORK,
    ROUTER,
    ROUTER_NAT,
    SERVICE_CONNECTION,
)
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp import compute

# The largest packets that a VPC takes, so that traffic between hosts and from Filestore spends less on headers. The
# VMs of a network must stop before a change of it reaches them. What leaves the VPC is clamped to what its path takes.
MTU_BYTES = 8896
# Ports per VM and destination. 64 let one address serve 1,008 VMs; what many pods on a large host open at once when
# they pull images or data sets is found by growing to 4,096.
NAT_MIN_PORTS = 64
NAT_MAX_PORTS = 4096


def existing_network(environment: Environment) -> str | None:
    """Return the id of the VPC that exists already; None where the environment makes its own."""
    found = environment.network
    return f"projects/{network_project(environment)}/global/networks/{found.name}" if found else None


def existing_network_name(environment: Environment) -> str | None:
    """Return the name of a VPC that exists already as storage drivers take it: its id where it is another project's."""
    existing = existing_network(environment)
    return existing if existing is None or environment.host_project else existing.rpartition("/")[2]


def network_project(environment: Environment) -> str:
    """Return the project that the VPC and its subnets are in."""
    return environment.host_project or environment.project


def vpc(name: str, scope: Scope) -> Declared:
    """Return a VPC without subnets of its own: clusters bring theirs."""
    inputs = gcp.network(
        project=scope.project,
        name=network_name(scope),  # peerings and people refer to it from outside
        auto_create_subnetworks=False,
        routing_mode="REGIONAL",  # routes to subnets are global anyway, and no router here learns others
        mtu=MTU_BYTES,
        delete_default_routes_on_create=False,  # the NAT gateways reach the internet by the default route
    )
    # Everything else of the environment is inside it.
    options = Options(protect=scope.deletion_protection)
    return Declared(type=NETWORK, name=f"{name}-vpc", inputs=inputs, options=options)


def router(name: str, region: str, scope: Scope, network: Any) -> Declared:
    """Return what a region's NAT gateway belongs to."""
    inputs = gcp.router(project=scope.project, region=region, network=network)
    return Declared(type=ROUTER, name=f"{name}-{region}-router", inputs=inputs)


def nat_addresses(name: str, region: str, scope: Scope, count: int) -> Iterator[Declared]:
    """Yield the addresses that are reserved for a region's NAT gateway: any is as good as another, so they count up.

    One that is given up is another project's at once, while others may still let it in.
    """
    # The old one goes last, since its gateway keeps it: only another project replaces it, where the name is free.
    options = Options(protect=scope.deletion_protection)
    for number in range(1, count + 1):
        inputs = gcp.address(
            project=scope.project,
            region=region,
            name=short_name(f"{scope.environment}-nat-{region}-{number}", NAME_LIMIT),
            address_type="EXTERNAL",
            description=f"NAT of environment {scope.environment}",
            labels=scope.labels,
        )
        yield Declared(type=ADDRESS, name=f"{name}-{region}-nat-{number}", inputs=inputs, options=options)


def nat(name: str, region: str, scope: Scope, router_name: Any, addresses: Sequence[Any]) -> Declared:
    """Return a region's way out: private nodes pull from registry.k8s.io and other places off Google Cloud.

    ``addresses`` are the links of those that are reserved; without any, Google Cloud takes what the load asks for.
    """
    inputs = gcp.router_nat(
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
        log_config=_errors(),
    )
    return Declared(type=ROUTER_NAT, name=f"{name}-{region}-nat", inputs=inputs)


@shared
def _errors() -> compute.RouterNatLogConfigArgsDict:
    return {"enable": True, "filter": "ERRORS_ONLY"}


def services_range(name: str, scope: Scope, addresses: str, network: Any) -> Declared:
    """Return the addresses that services of Google get in the VPC by private service access."""
    address, _, prefix = addresses.partition("/")
    inputs = gcp.global_address(
        project=scope.project,
        name=services_range_name(scope),
        purpose="VPC_PEERING",
        address_type="INTERNAL",
        address=address,
        prefix_length=int(prefix),
        network=network,
        labels=scope.labels,
    )
    # The name is fixed; what joined the VPC keeps its addresses.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)
    return Declared(type=GLOBAL_ADDRESS, name=f"{name}-services-range", inputs=inputs, options=options)


def service_connection(name: str, network: Any, range_name: Any) -> Declared:
    """Return the peering by which Google's services join the VPC."""
    inputs = gcp.service_connection(
        network=network,
        service="servicenetworking.googleapis.com",
        reserved_peering_ranges=[range_name],
        # Google refuses to delete it for a while after the last service left; it goes with the VPC (general knowledge,
        # not tried).
        deletion_policy="ABANDON",
    )
    return Declared(type=SERVICE_CONNECTION, name=f"{name}-services", inputs=inputs)


def services_range_name(scope: Scope) -> str:
    """Return the name of the VPC's range for private service access."""
    return f"{scope.prefix}-services"


def network_name(scope: Scope) -> str:
    """Return the VPC's name, ``{environment}-network``: two environments may share a project."""
    return f"{scope.prefix}-network"
