"""Rules of networks: ranges and overlaps, NAT gateways, public addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training_platform.rules import foreign
from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_across_resources_names_the_nearest_that_passes,
    test_rule_across_resources_that_meets_an_unknown_value_says_so,
    test_rule_finds_what_does_not_go_together,
)
from tests.training_platform.rules.tables import Together, TogetherNearest
from training_platform.config.reading.finding import Finding
from training_platform.quota.charges import nat_addresses
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import View
from training_platform.views.network import InterfaceView, ServicesRangeView

Make = Callable[..., View]
Check = Callable[..., list[Finding]]


TOGETHER: list[Together] = [
    ("pod-range", {}, (), 0),
    # 32 pods take a /26 of 64 addresses; 4 VMs and 6 of the system pool, whose view here has 32 pods too.
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/22"}}}, (), 0),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/23"}}}, (), 1),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/23"}}, "cluster": {"subnetwork": "other"}}, (), 0),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/22"}}, "gpu_pool": {"max_nodes": 10}}, (), 0),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/22"}}, "gpu_pool": {"max_nodes": 11}}, (), 1),
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/23"}}, "gpu_pool": {"cluster": UNKNOWN}}, (), 1),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/28"}}, (), 0),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/28"}, "gpu_pool": {"max_nodes": 6}}, (), 0),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/28"}, "gpu_pool": {"max_nodes": 7}}, (), 1),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/29"}}, (), 1),
    ("ranges-overlap", {}, (), 0),
    ("ranges-overlap", {"subnet": {"cidr": "10.64.255.0/24"}}, (), 1),
    ("ranges-overlap", {"subnet": {"cidr": "10.64.255.255/32"}}, (), 1),
    ("ranges-overlap", {"subnet": {"cidr": "10.65.0.0/24"}}, (), 0),
    ("subnet-range", {}, (), 0),
    ("subnet-range", {"subnet": {"cidr": "10.10.0.0/29"}}, (), 0),
    ("subnet-range", {"subnet": {"cidr": "10.10.0.0/30"}}, (), 1),
    ("subnet-range", {"subnet": {"ranges": {"pods": "10.64.0.0/30"}}}, (), 0),
    ("subnet-range", {"subnet": {"ranges": {"pods": "239.255.0.0/16"}}}, (), 1),
    ("subnet-range", {"subnet": {"ranges": {"pods": "240.0.0.0/16"}}}, (), 0),
    ("subnet-range", {"subnet": {"cidr": "199.36.153.0/30"}}, (), 1),  # /30, and beside what is closed
    ("subnet-range", {"subnet": {"cidr": "199.36.153.8/29"}}, (), 1),
    ("attachment-range", {}, (), 0),
    ("attachment-range", {"subnet": {"cidr": "100.64.0.0/28"}}, (), 1),
    ("attachment-range", {"subnet": {"cidr": "100.64.0.0/28"}}, ("attachment",), 0),
    ("attachment-range", {"subnet": {"cidr": "100.63.0.0/28"}}, (), 0),
    ("attachment-range", {"subnet": {"cidr": "239.0.0.0/28"}}, (), 0),
    ("attachment-range", {"subnet": {"cidr": "240.0.0.0/28"}}, (), 1),
    ("public-range", {}, (), 0),
    ("public-range", {"subnet": {"cidr": "172.31.240.0/20"}}, (), 0),
    ("public-range", {"subnet": {"cidr": "172.32.0.0/20"}}, (), 1),
    ("public-range", {"subnet": {"cidr": "100.127.240.0/20"}}, (), 0),
    ("public-range", {"subnet": {"cidr": "100.128.0.0/20"}}, (), 1),
    ("public-range", {"subnet": {"cidr": "240.10.0.0/20"}}, (), 0),
    ("public-range", {"subnet": {"ranges": {"pods": "8.8.0.0/16"}}}, (), 1),
    ("webhook-firewall", {}, (), 0),
    ("webhook-firewall", {}, ("firewall",), 1),
    ("webhook-firewall", {"firewall": {"ports": ("8443",)}}, (), 1),
    ("webhook-firewall", {"firewall": {"ports": ("9000-9443",)}}, (), 0),
    ("webhook-firewall", {"firewall": {"ports": ("9000-9442",)}}, (), 1),
    ("webhook-firewall", {"firewall": {"network": "dev-network"}}, (), 0),
    ("webhook-firewall", {}, ("firewall", "network"), 0),
    ("webhook-firewall", {"cluster": {"private_nodes": None}}, ("firewall",), 0),
    ("private-nodes-way-out", {}, (), 0),
    ("private-nodes-way-out", {}, ("gateway",), 1),
    ("private-nodes-way-out", {"gateway": {"region": "us-west4"}}, (), 1),
    ("private-nodes-way-out", {"cluster": {"private_nodes": False}}, ("gateway",), 0),
    ("filestore-range-free", {"filestore": {"reserved_range": "10.0.0.0/24"}}, (), 0),
    ("filestore-range-free", {"filestore": {"reserved_range": "10.10.3.0/24"}}, (), 1),
    ("filestore-range-free", {"filestore": {"reserved_range": "10.64.3.0/24"}}, (), 1),
    ("filestore-range-free", {"filestore": {"reserved_range": "10.10.15.0/24"}, "subnet": {"network": "other"}}, (), 0),
    ("filestore-range-free", {"filestore": {"reserved_range": "named-range"}}, (), 0),
    ("filestore-range-given", {}, (), 0),
    ("filestore-range-given", {"filestore": {"reserved_range": None}}, (), 1),
    ("filestore-range-given", {"filestore": {"reserved_range": None, "connect_mode": None}}, (), 1),
    ("filestore-range-given", {"filestore": {"reserved_range": None, "network": "default"}}, (), 1),
    (
        "filestore-range-given",
        {"filestore": {"reserved_range": None, "connect_mode": "PRIVATE_SERVICE_ACCESS"}},
        (),
        0,
    ),
    ("filestore-region", {}, (), 0),
    ("filestore-region", {"filestore": {"location": "us-west4-a"}}, (), 1),
    ("filestore-region", {"filestore": {"location": "us-west4-a"}}, ("cluster",), 0),
    ("subnet-region", {}, (), 0),
    ("subnet-region", {"subnet": {"region": "us-west4"}}, (), 1),
]


UNKNOWNS: list[tuple[str, str, str]] = [
    ("pod-range", "cluster", "subnetwork"),
    ("pod-range", "subnet", "ranges"),
    ("pod-range", "gpu_pool", "max_nodes"),
    ("webhook-firewall", "firewall", "ports"),
    ("private-nodes-way-out", "gateway", "region"),
]


NEAREST_TOGETHER: list[TogetherNearest] = [
    ("pod-range", {"subnet": {"ranges": {"pods": "10.64.0.0/23"}}}, "10.64.0.0/22"),
    ("node-range", {"subnet": {"cidr": "10.10.0.0/29"}}, "10.10.0.0/28"),
    # After the subnet's ranges 10.10.0.0/20 and 10.10.16.0/20; in the gap between two where there is one.
    ("filestore-range-given", {"filestore": {"reserved_range": None}}, "10.10.32.0/24"),
    ("filestore-range-given", {"filestore": {"reserved_range": None, "tier": "REGIONAL"}}, "10.10.32.0/26"),
    (
        "filestore-range-given",
        {"filestore": {"reserved_range": None}, "subnet": {"ranges": {"services": "10.10.17.0/24"}}},
        "10.10.16.0/24",
    ),
    ("filestore-range-free", {"filestore": {"reserved_range": "10.10.3.0/24"}}, "10.10.32.0/24"),
    ("public-range", {"subnet": {"cidr": "172.160.0.0/20"}}, "172.16.0.0/20"),
    ("public-range", {"subnet": {"cidr": "8.8.16.0/20"}}, "10.8.16.0/20"),
]


def test_webhooks_out_of_reach_are_an_error_where_kueue_is(
    check: Check, network: Make, flavor: Make, cluster: Make
) -> None:
    (found,) = check("webhook-firewall", network(), flavor(), cluster())

    assert found.severity == "error"


def test_two_instances_do_not_share_a_range(check: Check, filestore: Make) -> None:
    found = check(
        "filestore-range-free",
        filestore(name="a", origin=("a",), reserved_range="10.0.0.0/24"),
        filestore(name="b", origin=("b",), reserved_range="10.0.0.0/24"),
    )

    assert [each.path for each in found] == ["b.reserved_range"]


def test_instances_without_a_range_are_offered_one_each(
    check: Check, filestore: Make, subnet: Make, network: Make
) -> None:
    instances = [filestore(name=name, origin=(name,), reserved_range=None) for name in ("b", "a", "c")]
    given = filestore(name="d", origin=("d",), reserved_range="10.10.33.0/24")

    found = check("filestore-range-given", network(), subnet(), given, *instances)

    assert {each.path: each.nearest for each in found} == {
        "a.reserved_range": "10.10.32.0/24",
        "b.reserved_range": "10.10.34.0/24",
        "c.reserved_range": "10.10.35.0/24",
    }


def test_nothing_lies_in_the_range_of_services_that_join_the_vpc(check: Check, filestore: Make, subnet: Make) -> None:
    joined = ServicesRangeView(
        stack="dev", type="services", name="joined", network="vpc", cidr="10.0.0.0/16", purpose="VPC_PEERING",
    )  # fmt: skip
    inside = subnet(cidr="10.0.4.0/24", ranges={})

    assert len(check("filestore-range-free", joined, filestore())) == 1
    assert len(check("ranges-overlap", joined, inside)) == 1
    assert check("ranges-overlap", joined, subnet()) == []


PORTS = {"nat.enableDynamicPortAllocation": True, "nat.maxPortsPerVm": 4096.0}


def found(changes: dict[str, Any]) -> list[Finding]:
    return foreign.found(changes, rule="nat-addresses")


@pytest.mark.parametrize(
    ("vms", "ports", "addresses"),
    [(0, 4096, 1), (15, 4096, 1), (16, 4096, 2), (34, 4096, 3), (1_008, 64, 1), (1_009, 64, 2)],
)
def test_an_address_has_64_512_ports(vms: int, ports: int, addresses: int) -> None:
    assert nat_addresses(vms, ports) == addresses


def test_reserved_addresses_are_enough_for_all_vms_of_the_region() -> None:
    pools = {**PORTS, "slice": foreign.DROP, "reserved": foreign.DROP}  # the pool of GPUs, and 6 VMs of the other
    two = {**pools, "nat.natIps": ["one", "two"]}

    assert found({**two, "gpu.autoscaling.maxNodeCount": 25.0}) == []
    (each,) = found({**two, "gpu.autoscaling.maxNodeCount": 26.0})
    assert (each.severity, each.nearest) == ("warning", "3")
    assert "32 VMs of 4,096 ports need 3 addresses, but 2 are reserved" in each.message


def test_a_gateway_that_takes_addresses_by_itself_lacks_none() -> None:
    assert found({**PORTS, "gpu.autoscaling.maxNodeCount": 900.0}) == []


def test_vms_of_other_regions_do_not_count() -> None:
    west = {**PORTS, "nat.region": "us-west4", "gpu.autoscaling.maxNodeCount": 900.0, "nat.natIps": ["one"]}

    assert found(west) == []


@pytest.mark.parametrize(("private", "count"), [(True, 0), (False, 1), (None, 1)])
def test_nodes_are_private(check: Check, cluster: Make, gpu_pool: Make, private: bool | None, count: int) -> None:
    assert len(check("private-nodes", gpu_pool(private_nodes=private))) == count
    assert len(check("private-cluster", cluster(private_nodes=private))) == count


@pytest.mark.parametrize(("public", "count"), [(False, 0), (True, 1)])
def test_control_plane_has_no_public_address(check: Check, cluster: Make, public: bool, count: int) -> None:
    assert len(check("private-control-plane", cluster(public_endpoint=public))) == count


def test_vm_with_a_public_address_is_found(check: Check) -> None:
    address = InterfaceView(stack="dev", type="gcp:compute/instance:Instance", name="vm", public=1)

    assert len(check("no-external-address", address)) == 1
    assert check("no-external-address", address.replaced(public=0)) == []
