"""Rules about address ranges and networks: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

from collections.abc import Callable

from tests.training_platform.rules.table_tests import (  # noqa: F401 # collected here
    test_finding_across_resources_names_the_nearest_that_passes,
    test_rule_across_resources_that_meets_an_unknown_value_says_so,
    test_rule_finds_what_does_not_go_together,
)
from tests.training_platform.rules.tables import Together, TogetherNearest
from training_platform.config.reading.finding import Finding
from training_platform.resources.planned import UNKNOWN
from training_platform.rules import View

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
    ("filestore-range-free", {"filestore": {"reserved_range": "named-range"}}, (), 0),
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
