"""The network of an environment: the VPC, and one way out per region."""

from __future__ import annotations

from collections.abc import Callable

from modules.network import Network, NetworkArgs
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
VPC = "gcp:compute/network:Network"
ROUTER = "gcp:compute/router:Router"
ADDRESS = "gcp:compute/address:Address"
NAT = "gcp:compute/routerNat:RouterNat"


def network(scope: Scope, *regions: str, nat_addresses: int = 0) -> Network:
    return Network("network", NetworkArgs(scope=scope, regions=regions, nat_addresses=nat_addresses))


def test_the_network_has_only_the_subnets_that_clusters_bring(scope: Scope, deploy: Deploy) -> None:
    vpc = deploy(lambda: network(scope, "us-west4")).one(VPC, "network-vpc")

    assert vpc.inputs == {
        "project": "example-train-dev",
        "name": "dev-network",
        "autoCreateSubnetworks": False,
        "routingMode": "REGIONAL",
        "mtu": 8896,
        "deleteDefaultRoutesOnCreate": False,
    }
    assert vpc.options.get("protect", False) is scope.deletion_protection


def test_a_region_has_one_way_out_however_many_clusters_it_has(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: network(scope, "us-west4", "us-central1", "us-west4"))

    assert [router.name for router in plan.of(ROUTER)] == ["network-us-central1-router", "network-us-west4-router"]
    assert [nat.name for nat in plan.of(NAT)] == ["network-us-central1-nat", "network-us-west4-nat"]
    assert [nat.inputs["region"] for nat in plan.of(NAT)] == ["us-central1", "us-west4"]


def test_all_addresses_of_a_region_leave_by_its_gateway(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: network(scope, "us-west4"))
    router, nat = plan.one(ROUTER), plan.one(NAT)

    assert router.inputs == {"project": "example-train-dev", "region": "us-west4", "network": UNKNOWN}
    assert nat.inputs == {
        "project": "example-train-dev",
        "region": "us-west4",
        "router": UNKNOWN,
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        "enableDynamicPortAllocation": True,
        "enableEndpointIndependentMapping": False,
        "minPortsPerVm": 64,
        "maxPortsPerVm": 4096,
        "logConfig": {"enable": True, "filter": "ERRORS_ONLY"},
    }
    assert nat.options["dependsOn"] == [(ROUTER, router.name)]


def test_the_network_is_the_parent_of_all(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: network(scope, "us-west4"))

    component, *children = plan.resources
    assert {child.parent for child in children} == {component.key}


def test_gateways_take_the_addresses_that_are_reserved_for_them(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: network(scope, "us-west4", "us-east5", nat_addresses=2))
    names = {address.inputs["name"] for address in plan.of(ADDRESS)}
    (nat,) = [gateway for gateway in plan.of(NAT) if gateway.inputs["region"] == "us-west4"]

    assert names == {
        f"{scope.environment}-nat-{region}-{number}" for region in ("us-west4", "us-east5") for number in (1, 2)
    }
    assert nat.inputs["natIpAllocateOption"] == "MANUAL_ONLY"
    assert nat.inputs["natIps"] == [UNKNOWN, UNKNOWN]
    waited = {name for kind, name in nat.options["dependsOn"] if kind == ADDRESS}
    assert waited == {"network-us-west4-nat-1", "network-us-west4-nat-2"}
    protected = {address.options.get("protect", False) for address in plan.of(ADDRESS)}
    assert protected == {scope.deletion_protection}
    assert not [address.name for address in plan.of(ADDRESS) if address.options.get("deleteBeforeReplace")]


def test_without_reserved_addresses_google_cloud_takes_its_own(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: network(scope, "us-west4"))

    assert plan.of(ADDRESS) == []
    assert plan.one(NAT).inputs["natIpAllocateOption"] == "AUTO_ONLY"
    assert "natIps" not in plan.one(NAT).inputs
