"""The network of an environment: the VPC, and one way out per region."""

from __future__ import annotations

from collections.abc import Callable

from modules.network.network import Network, NetworkArgs
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
VPC = "gcp:compute/network:Network"
ROUTER = "gcp:compute/router:Router"
NAT = "gcp:compute/routerNat:RouterNat"


def network(scope: Scope, *regions: str) -> Network:
    return Network("network", NetworkArgs(scope=scope, regions=regions))


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
