"""Scopes, with and without deletion protection, and a plan of a program."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.every_field import ENVIRONMENT, TEAM, planned
from tests.support.plans import PlannedStack, composed
from tests.support.stack_files import RANGES
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources.network import ENTRANCES, NetworkParts, network_resources, subnet_resources
from training_platform.resources.resource_types import (
    NETWORK_ATTACHMENT,
    PERSISTENT_RESOURCE,
    SUBNETWORK,
)
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import UNKNOWN


@pytest.fixture(params=[False, True], ids=["dev", "protected"])
def scope(request: pytest.FixtureRequest) -> Scope:
    return Scope(
        environment="dev",
        team=None,
        project="example-train-dev",
        labels={"environment": "dev", "managed-by": "training-platform"},
        deletion_protection=request.param,
    )


VPC = "gcp:compute/network:Network"
ROUTER = "gcp:compute/router:Router"
ADDRESS = "gcp:compute/address:Address"
NAT = "gcp:compute/routerNat:RouterNat"


def network(scope: Scope, *regions: str, nat_addresses: int = 0) -> PlannedStack:
    parts = NetworkParts(regions=regions, nat_addresses=nat_addresses)
    return composed(lambda into: network_resources("network", scope, parts, into))


def test_the_network_has_only_the_subnets_that_clusters_bring(scope: Scope) -> None:
    vpc = network(scope, "us-west4").one(VPC, "network-vpc")

    assert vpc.inputs == {
        "project": "example-train-dev",
        "name": "dev-network",
        "autoCreateSubnetworks": False,
        "routingMode": "REGIONAL",
        "mtu": 8896,
        "deleteDefaultRoutesOnCreate": False,
    }
    assert vpc.options.get("protect", False) is scope.deletion_protection


def test_all_addresses_of_a_region_leave_by_its_gateway(scope: Scope) -> None:
    plan = network(scope, "us-west4")
    router = plan.one(ROUTER)
    nat = plan.one(NAT)

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


def test_gateways_take_the_addresses_that_are_reserved_for_them(scope: Scope) -> None:
    plan = network(scope, "us-west4", "us-east5", nat_addresses=2)
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


ZONE = "gcp:dns/managedZone:ManagedZone"
RECORD = "gcp:dns/recordSet:RecordSet"
VPC_APIS = ("gcp:compute/network:Network", "network-vpc")


def network_apis(scope: Scope, entrance: str | None) -> PlannedStack:
    parts = NetworkParts(regions=("us-west4",), google_apis=ENTRANCES[entrance] if entrance else None)
    return composed(lambda into: network_resources("network", scope, parts, into))


def records(plan: PlannedStack) -> dict[str, tuple[str, list[str]]]:
    return {record.inputs["name"]: (record.inputs["type"], record.inputs["rrdatas"]) for record in plan.of(RECORD)}


def test_the_vpc_alone_sees_a_zone_for_each_domain_of_googles(scope: Scope) -> None:
    plan = network_apis(scope, "private")

    zones = {zone.inputs["name"]: zone for zone in plan.of(ZONE)}
    assert {name: zone.inputs["dnsName"] for name, zone in zones.items()} == {
        "dev-gcr-io": "gcr.io.",
        "dev-googleapis-com": "googleapis.com.",
        "dev-pkg-dev": "pkg.dev.",
    }
    for zone in zones.values():
        assert zone.inputs["visibility"] == "private"
        assert zone.inputs["labels"] == scope.labels
        assert VPC_APIS in zone.options["dependsOn"]


def test_a_restricted_entrance_has_its_own_name_and_addresses(scope: Scope) -> None:
    records_by_name = records(network_apis(scope, "restricted"))

    assert records_by_name["*.googleapis.com."] == ("CNAME", ["restricted.googleapis.com."])
    assert records_by_name["restricted.googleapis.com."] == ("A", [f"199.36.153.{number}" for number in (4, 5, 6, 7)])


def test_public_addresses_need_no_zone(scope: Scope) -> None:
    assert network_apis(scope, None).of(ZONE) == []


SUBNET = "gcp:compute/subnetwork:Subnetwork"
FIREWALL = "gcp:compute/firewall:Firewall"


def subnet(scope: Scope, location: str = "us-central2-b") -> PlannedStack:
    spec = ClusterSpec.model_validate({"location": location, "subnet": RANGES})
    nodes = "nodes@example.com"
    return composed(
        lambda into: subnet_resources(into, spec, scope, network="vpc", nodes=nodes, host_project=None), "tpu"
    )


def test_a_subnet_has_ranges_for_nodes_pods_and_services(scope: Scope) -> None:
    inputs = subnet(scope).one(SUBNET, "tpu-subnet").inputs

    assert inputs["project"] == "example-train-dev"
    assert inputs["network"] == "vpc"
    assert inputs["ipCidrRange"] == RANGES["nodes"]
    assert inputs["secondaryIpRanges"] == [
        {"rangeName": "pods", "ipCidrRange": RANGES["pods"]},
        {"rangeName": "services", "ipCidrRange": RANGES["services"]},
    ]
    assert "name" not in inputs


@pytest.mark.parametrize("location", ["us-central2-b", "us-central2"])
def test_a_subnet_lies_in_the_region_of_its_cluster(location: str, scope: Scope) -> None:
    assert subnet(scope, location).one(SUBNET).inputs["region"] == "us-central2"


def test_private_nodes_reach_google_and_a_tenth_of_their_flows_is_logged(scope: Scope) -> None:
    inputs = subnet(scope).one(SUBNET).inputs

    assert inputs["privateIpGoogleAccess"] is True
    assert inputs["logConfig"] == {
        "aggregationInterval": "INTERVAL_10_MIN",
        "flowSampling": 0.1,
        "metadata": "INCLUDE_ALL_METADATA",
    }


def test_other_ranges_make_another_subnet_after_the_old_one_is_gone(scope: Scope) -> None:
    options = subnet(scope).one(SUBNET).options

    assert options == {"replaceOnChanges": ["secondaryIpRanges"], "deleteBeforeReplace": True}


def test_the_control_plane_reaches_webhooks_on_nodes_alone(scope: Scope) -> None:
    rule = subnet(scope).one(FIREWALL, "tpu-webhooks").inputs

    assert rule["project"] == "example-train-dev"
    assert rule["network"] == "vpc"
    assert rule["direction"] == "INGRESS"
    assert rule["sourceRanges"] == [RANGES["nodes"]]
    assert rule["targetServiceAccounts"] == ["nodes@example.com"]
    assert rule["allows"] == [{"protocol": "tcp", "ports": ["8082", "8443", "9443", "15017"]}]
    assert rule.keys().isdisjoint({"targetTags", "sourceTags", "denies"})


NAME = "env-vertex-us-central1"


def test_an_attachment_has_a_subnet_of_its_own_and_lets_in_whom_the_agent_adds() -> None:
    plan = planned(ENVIRONMENT, TEAM, "env")
    attachment = plan.one(NETWORK_ATTACHMENT)
    subnet = plan.one(SUBNETWORK, "vertex-network-us-central1-subnet")

    assert (attachment.inputs["name"], attachment.inputs["connectionPreference"]) == (NAME, "ACCEPT_MANUAL")
    assert subnet.inputs["ipCidrRange"] == ENVIRONMENT["network_attachments"]["us-central1"]
    assert (SUBNETWORK, subnet.name) in attachment.options["dependsOn"] or len(attachment.inputs["subnetworks"]) == 1
    assert attachment.options["ignoreChanges"] == ["producerAcceptLists"]
    assert attachment.options["replaceOnChanges"] == ["subnetworks"]  # a subnet that is named cannot be deleted
    assert attachment.options["protect"]


def test_a_persistent_resource_names_the_one_of_its_region() -> None:
    vertex: dict[str, Any] = {
        "persistent_resources": {
            "r": {"region": "us-central1", "machine_type": "a2-highgpu-1g", "network_attachment": "environment"}
        }
    }
    team = {**TEAM, "vertex": vertex, "project": None, "buckets": {}}
    interface = planned(ENVIRONMENT, team, "team").one(PERSISTENT_RESOURCE).inputs["pscInterfaceConfig"]

    project = ENVIRONMENT["project"]
    assert interface == {"networkAttachment": f"projects/{project}/regions/us-central1/networkAttachments/{NAME}"}
