"""Rules of networks: ranges and overlaps, NAT gateways, public addresses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules import foreign
from tests.training_platform.rules.builders import check, cluster, example, filestore, flavor, gpu_pool, network, subnet
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.config.reading.finding import Finding
from training_platform.quota.charges import nat_addresses
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.views.network import InterfaceView, ServicesRangeView
from training_platform.views.storage import Export

TABLE = [
    Rule(  # 32 pods take a /26 of 64 addresses: a /22 is enough for 10 VMs beside the system pool's 6
        "pod-range",
        example,
        passes=[
            {"subnet.ranges": {"pods": "10.64.0.0/22"}},
            {"subnet.ranges": {"pods": "10.64.0.0/23"}, "cluster.subnetwork": "other"},
            {"subnet.ranges": {"pods": "10.64.0.0/22"}, "gpu_pool.max_nodes": 10},
        ],
        finds=[
            Found({"subnet.ranges": {"pods": "10.64.0.0/23"}}, "10.64.0.0/22"),
            {"subnet.ranges": {"pods": "10.64.0.0/22"}, "gpu_pool.max_nodes": 11},
            {"subnet.ranges": {"pods": "10.64.0.0/23"}, "gpu_pool.cluster": UNKNOWN},
        ],
        notes=[
            {"cluster.subnetwork": UNKNOWN},
            {"subnet.ranges": UNKNOWN},
            {"gpu_pool.max_nodes": UNKNOWN},
        ],
    ),
    Rule(
        "node-range",
        example,
        passes=[
            {"subnet.cidr": "10.10.0.0/28"},
            {"subnet.cidr": "10.10.0.0/28", "gpu_pool.max_nodes": 6},
        ],
        finds=[
            {"subnet.cidr": "10.10.0.0/28", "gpu_pool.max_nodes": 7},
            Found({"subnet.cidr": "10.10.0.0/29"}, "10.10.0.0/28"),
        ],
    ),
    Rule(
        "ranges-overlap",
        example,
        passes=[{"subnet.cidr": "10.65.0.0/24"}],
        finds=[{"subnet.cidr": "10.64.255.0/24"}, {"subnet.cidr": "10.64.255.255/32"}],
    ),
    Rule(
        "subnet-range",
        example,
        passes=[
            {"subnet.cidr": "10.10.0.0/29"},
            {"subnet.ranges": {"pods": "10.64.0.0/30"}},
            {"subnet.ranges": {"pods": "240.0.0.0/16"}},
        ],
        finds=[
            {"subnet.cidr": "10.10.0.0/30"},
            {"subnet.ranges": {"pods": "239.255.0.0/16"}},
            {"subnet.cidr": "199.36.153.0/30"},  # a /30, and beside what is closed
            {"subnet.cidr": "199.36.153.8/29"},
        ],
    ),
    Rule(
        "attachment-range",
        example,
        passes=[
            {"subnet.cidr": "100.64.0.0/28", "attachment": None},
            {"subnet.cidr": "100.63.0.0/28"},
            {"subnet.cidr": "239.0.0.0/28"},
        ],
        finds=[{"subnet.cidr": "100.64.0.0/28"}, {"subnet.cidr": "240.0.0.0/28"}],
    ),
    Rule(
        "public-range",
        example,
        passes=[
            {"subnet.cidr": "172.31.240.0/20"},
            {"subnet.cidr": "100.127.240.0/20"},
            {"subnet.cidr": "240.10.0.0/20"},
        ],
        finds=[
            {"subnet.cidr": "172.32.0.0/20"},
            {"subnet.cidr": "100.128.0.0/20"},
            {"subnet.ranges": {"pods": "8.8.0.0/16"}},
            Found({"subnet.cidr": "172.160.0.0/20"}, "172.16.0.0/20"),
            Found({"subnet.cidr": "8.8.16.0/20"}, "10.8.16.0/20"),
        ],
    ),
    Rule(
        "webhook-firewall",
        example,
        passes=[
            {"firewall.ports": ("9000-9443",)},
            {"firewall.network": "dev-network"},
            {"firewall": None, "network": None},
            {"firewall": None, "cluster.private_nodes": None},
        ],
        finds=[{"firewall": None}, {"firewall.ports": ("8443",)}, {"firewall.ports": ("9000-9442",)}],
        notes=[{"firewall.ports": UNKNOWN}],
    ),
    Rule(
        "private-nodes-way-out",
        example,
        passes=[{"gateway": None, "cluster.private_nodes": False}],
        finds=[{"gateway": None}, {"gateway.region": "us-west4"}],
        notes=[{"gateway.region": UNKNOWN}],
    ),
    Rule(
        "filestore-range-free",
        example,
        passes=[
            {"filestore.reserved_range": "10.0.0.0/24"},
            {"filestore.reserved_range": "10.10.15.0/24", "subnet.network": "other"},
            {"filestore.reserved_range": "named-range"},
        ],
        finds=[
            Found({"filestore.reserved_range": "10.10.3.0/26"}, "10.10.32.0/26"),
            {"filestore.reserved_range": "10.64.3.0/24"},
        ],
    ),
    Rule(
        "filestore-clients",
        example,
        passes=[
            {"subnet.cidr": "172.16.0.0/16"},
            {"subnet.cidr": "172.18.0.0/16"},
            {"subnet.cidr": "100.64.0.0/20", "filestore.exports": (Export(("100.64.0.0/16",), squashed=False),)},
            {"subnet.cidr": "172.17.0.0/20", "subnet.network": "other"},
            {"subnet.cidr": "172.17.0.0/20", "subnet.ranges": {}},
        ],
        finds=[
            {"subnet.cidr": "172.17.255.0/24"},
            {"filestore.reserved_range": "172.17.0.0/24"},
            Found({"subnet.cidr": "100.64.0.0/20"}, "100.64.0.0/20"),
            {"subnet.cidr": "34.0.0.0/20", "filestore.exports": (Export(("10.0.0.0/8",), squashed=False),)},
        ],
    ),
    Rule(  # after the subnet's ranges 10.10.0.0/20 and 10.10.16.0/20, or between two
        "filestore-range-given",
        example,
        passes=[{"filestore.reserved_range": None, "filestore.connect_mode": "PRIVATE_SERVICE_ACCESS"}],
        finds=[
            Found({"filestore.reserved_range": None}, "10.10.32.0/26"),
            {"filestore.reserved_range": None, "filestore.connect_mode": None},
            {"filestore.reserved_range": None, "filestore.network": "default"},
            Found({"filestore.reserved_range": None, "filestore.tier": "REGIONAL"}, "10.10.32.0/26"),
            Found(
                {"filestore.reserved_range": None, "subnet.ranges": {"services": "10.10.17.0/24"}},
                "10.10.16.0/26",
            ),
        ],
    ),
    Rule(
        "filestore-region",
        example,
        passes=[{"cluster": None, "gpu_pool": None, "system_pool": None, "filestore.location": "us-west4-a"}],
        finds=[{"filestore.location": "us-west4-a"}, {"cluster": None, "filestore.location": "us-west4-a"}],
    ),
    Rule(
        "range-names",
        example,
        passes=[{"cluster.pods_range": "pods", "cluster.services_range": "services"}, {"cluster.services_range": None}],
        finds=[{"cluster.pods_range": "both", "cluster.services_range": "both"}],
    ),
    Rule("subnet-region", example, passes=[], finds=[{"subnet.region": "us-west4"}]),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


def test_webhooks_out_of_reach_are_an_error_where_kueue_is() -> None:
    (finding,) = check("webhook-firewall", network(), flavor(), cluster())

    assert finding.severity == "error"


def test_two_instances_do_not_share_a_range() -> None:
    findings = check(
        "filestore-range-free",
        filestore(name="a", origin=("a",), reserved_range="10.0.0.0/24"),
        filestore(name="b", origin=("b",), reserved_range="10.0.0.0/24"),
    )

    assert [finding.path for finding in findings] == ["b.reserved_range"]


def test_instances_without_a_range_are_offered_one_each() -> None:
    instances = [filestore(name=name, origin=(name,), reserved_range=None) for name in ("b", "a", "c")]
    with_range = filestore(name="d", origin=("d",), reserved_range="10.10.33.0/24")

    findings = check("filestore-range-given", network(), subnet(), with_range, *instances)

    assert {finding.path: finding.nearest for finding in findings} == {
        "a.reserved_range": "10.10.32.0/26",
        "b.reserved_range": "10.10.32.64/26",
        "c.reserved_range": "10.10.32.128/26",
    }


def test_nothing_lies_in_the_range_of_services_that_join_the_vpc() -> None:
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


@pytest.mark.parametrize(
    ("ports", "severity", "needs"),
    [
        ({"nat.maxPortsPerVm": 4096.0}, "note", "32 VMs with 4,096 ports each need 3 addresses"),
        (
            {"nat.minPortsPerVm": 4096.0, "nat.maxPortsPerVm": 4096.0},
            "warning",
            "32 VMs with 4,096 ports each need 3 addresses",
        ),
    ],
)
def test_reserved_addresses_are_enough_for_all_vms_of_the_region(
    ports: dict[str, float], severity: str, needs: str
) -> None:
    pools = {"nat.enableDynamicPortAllocation": True, "slice": foreign.DROP, "reserved": foreign.DROP, **ports}
    two = {**pools, "nat.natIps": ["one", "two"]}

    # Beside the pool of GPUs are 6 VMs of the other.
    assert found({**two, "gpu.autoscaling.maxNodeCount": 25.0}) == []
    (finding,) = found({**two, "gpu.autoscaling.maxNodeCount": 26.0})
    assert (finding.severity, finding.nearest) == (severity, "3")
    assert f"{needs}, but 2 are reserved" in finding.message


@pytest.mark.parametrize(
    ("minimum", "vms", "severity"),
    [(64_512.0, 294, None), (64_512.0, 295, "error"), (32_256.0, 595, "error"), (64.0, 4_800, "note")],
)
def test_a_gateway_allocates_at_most_300_addresses(minimum: float, vms: int, severity: str | None) -> None:
    alone = {"nat.enableDynamicPortAllocation": True, "slice": foreign.DROP, "reserved": foreign.DROP}
    changes = {**alone, "nat.minPortsPerVm": minimum, "nat.maxPortsPerVm": max(minimum, 4096.0)}

    findings = found({**changes, "gpu.autoscaling.maxNodeCount": float(vms)})

    assert [row.severity for row in findings] == ([severity] if severity else [])


def test_vms_of_other_regions_do_not_count() -> None:
    west = {**PORTS, "nat.region": "us-west4", "gpu.autoscaling.maxNodeCount": 900.0, "nat.natIps": ["one"]}

    assert found(west) == []


@pytest.mark.parametrize(("private", "count"), [(True, 0), (False, 1), (None, 1)])
def test_nodes_are_private(private: bool | None, count: int) -> None:
    assert len(check("private-nodes", gpu_pool(private_nodes=private))) == count
    assert len(check("private-cluster", cluster(private_nodes=private))) == count


@pytest.mark.parametrize(("public", "count"), [(False, 0), (True, 1)])
def test_control_plane_has_no_public_address(public: bool, count: int) -> None:
    assert len(check("private-control-plane", cluster(public_endpoint=public))) == count


def test_vm_with_a_public_address_is_found() -> None:
    address = InterfaceView(stack="dev", type="gcp:compute/instance:Instance", name="vm", public=1)

    assert len(check("no-external-address", address)) == 1
    assert check("no-external-address", address.replaced(public=0)) == []


def test_a_rule_without_a_network_is_of_none() -> None:
    vpc = network(name="vpc", network="lab")

    assert [vpc.is_meant(reference, "network") for reference in ("vpc", "lab", "other", None)] == [
        True,
        True,
        False,
        False,
    ]
