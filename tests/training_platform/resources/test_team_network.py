"""The connections of a team's pods that the policies let through, according to an evaluator of NetworkPolicies."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest
import yaml

from training_platform.config.expansion import Flavor, flavors
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.queues import Share
from training_platform.config.model.team import Team
from training_platform.resources.gpu_direct import kinds_of
from training_platform.resources.tenancy import (
    SPARE_CPUS,
    SPARE_MEMORY_GIB,
    SPARE_PODS,
    egress_spec,
    host_spec,
    most_chips,
    namespace_labels,
    resource_quota,
)

CLUSTER = "{location: us-west4, subnet: {nodes: 10.10.0.0/20, pods: 10.64.0.0/16, services: 10.10.16.0/20}%s}"
KUBE_SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}


def environment(more: str = "", cluster: str = "") -> Environment:
    text = f"project: example-train\nproduction: false\nclusters:\n  west: {CLUSTER % cluster}\n{more}"
    return Environment.model_validate(_tuples(yaml.safe_load(text)), strict=False)


def team(more: str = "") -> Team:
    text = f"environment: dev\nname: vision\nmembers: ['group:vision@example.com']\n{more}"
    return Team.model_validate(_tuples(yaml.safe_load(text)), strict=False)


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def reaches(spec: Any, address: str, port: int, protocol: str = "TCP") -> bool:
    """Whether a policy lets a pod connect to an address that is no pod's."""
    return any(
        any(ip_address(address) in ip_network(peer["ipBlock"]["cidr"]) for peer in rule["to"] if "ipBlock" in peer)
        and ("ports" not in rule or {"protocol": protocol, "port": port} in rule["ports"])
        for rule in spec["egress"]
    )


def pods(spec: Any, port: int, protocol: str = "TCP") -> list[Any]:
    """Return the selectors of pods that a policy lets a pod connect to."""
    return [
        peer
        for rule in spec["egress"]
        for peer in rule["to"]
        if "podSelector" in peer and ("ports" not in rule or {"protocol": protocol, "port": port} in rule["ports"])
    ]


@pytest.mark.parametrize(
    ("address", "port", "protocol"),
    [
        ("169.254.169.254", 80, "TCP"),  # the metadata server, with Dataplane V2
        ("169.254.169.254", 8080, "TCP"),
        ("169.254.169.252", 988, "TCP"),  # and without
        ("169.254.169.252", 987, "TCP"),
        ("169.254.20.10", 53, "UDP"),  # NodeLocal DNSCache
        ("169.254.169.254", 53, "UDP"),  # Cloud DNS for GKE
        ("169.254.169.254", 53, "TCP"),
        ("199.36.153.8", 443, "TCP"),  # Google's APIs
        ("199.36.153.11", 443, "TCP"),
    ],
)
def test_pods_reach_names_an_identity_and_googles_apis(address: str, port: int, protocol: str) -> None:
    assert reaches(egress_spec(team(), environment()), address, port, protocol)


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("203.0.113.1", 443),  # the internet
        ("10.10.0.5", 443),  # a node, and what else is in the VPC
        ("10.10.0.5", 10250),
        ("10.64.3.1", 22),
        ("199.36.153.4", 443),  # the other entrance
        ("199.36.153.8", 80),
        ("199.36.153.12", 443),
        ("169.254.169.254", 22),
        ("169.254.169.253", 80),
    ],
)
def test_pods_reach_nothing_else(address: str, port: int) -> None:
    assert not reaches(egress_spec(team(), environment()), address, port)


def test_pods_reach_their_own_team_at_any_port_and_the_pods_that_answer_names() -> None:
    spec = egress_spec(team(), environment())

    assert spec is not None
    assert (spec["podSelector"], spec["policyTypes"]) == ({}, ["Egress"])
    assert pods(spec, 8471) == [{"podSelector": {}}]
    assert pods(spec, 53, "UDP") == [
        {"podSelector": {}},
        *(
            {"namespaceSelector": {"matchLabels": KUBE_SYSTEM}, "podSelector": {"matchLabels": {"k8s-app": name}}}
            for name in ("kube-dns", "node-local-dns")
        ),
    ]


def test_a_restricted_entrance_takes_the_place_of_the_private_one() -> None:
    spec = egress_spec(team(), environment("google_apis: restricted"))

    assert reaches(spec, "199.36.153.4", 443)
    assert not reaches(spec, "199.36.153.8", 443)


def test_both_files_open_addresses() -> None:
    spec = egress_spec(
        team("egress: [{cidr: 203.0.113.0/24, ports: [443, 8443]}]"),
        environment("egress: [{cidr: 198.51.100.7/32, ports: [123], protocol: UDP}]"),
    )

    assert reaches(spec, "203.0.113.200", 8443)
    assert not reaches(spec, "203.0.113.200", 80)
    assert not reaches(spec, "203.0.114.1", 443)
    assert reaches(spec, "198.51.100.7", 123, "UDP")
    assert not reaches(spec, "198.51.100.7", 123, "TCP")


def test_hosts_stand_in_a_policy_of_their_own() -> None:
    opened = team("egress: [{host: api.example.com}, {host: '*.example.org', ports: [8443]}]")

    assert host_spec(opened, environment(cluster=", fqdn_policies: true")) == {
        "podSelector": {},
        "egress": [
            {"matches": [{"name": "api.example.com"}], "ports": [{"protocol": "TCP", "port": 443}]},
            {"matches": [{"pattern": "*.example.org"}], "ports": [{"protocol": "TCP", "port": 8443}]},
        ],
    }
    assert host_spec(team(), environment()) is None
    assert egress_spec(opened, environment()) == egress_spec(team(), environment())


def test_an_open_environment_has_no_policy_on_egress() -> None:
    opened = team("egress: [{host: api.example.com}]")

    assert egress_spec(opened, environment("open_egress: true")) is None
    assert host_spec(opened, environment("open_egress: true")) is None


RANGES = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
POOLS: dict[str, Any] = {
    "h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 4},
    "mega": {"machine_type": "a3-megagpu-8g", "zone": "us-central1-b", "max_nodes": 2},
    "plain": {
        "machine_type": "a3-highgpu-8g",
        "zone": "us-central1-a",
        "max_nodes": 2,
        "capacity": "spot",
        "gpu_direct": False,
    },
    "v5e": {"machine_type": "ct5lp-hightpu-4t", "zone": "us-central1-a", "topology": "4x8", "slices": 2},
}


@pytest.fixture
def fleet() -> dict[str, Flavor]:
    return flavors(
        "main", ClusterSpec.model_validate({"location": "us-central1", "subnet": RANGES, "node_pools": POOLS})
    )


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (["h100"], ("TCPX",)),
        (["h100", "h100-mega", "tpu-v5e-4x8"], ("TCPX", "TCPXO")),
        (["h100-spot", "tpu-v5e-4x8"], ()),
    ],
)
def test_a_team_has_the_exceptions_of_its_own_flavors(
    fleet: dict[str, Flavor], names: list[str], kinds: tuple[str, ...]
) -> None:
    assert kinds_of(fleet[name] for name in names) == kinds


def test_a_namespace_that_needs_nothing_beyond_baseline_enforces_it() -> None:
    assert namespace_labels("nlp", ()) == {
        "training-platform/team": "nlp",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "baseline",
    }


def test_a_confined_namespace_says_so() -> None:
    before = namespace_labels("nlp", ())

    assert namespace_labels("nlp", (), confined=True) == {**before, "training-platform/confined": "true"}


@pytest.mark.parametrize(
    ("kinds", "host_network", "allowed"),
    [
        (("TCPX",), False, {"training-platform/allow-tcpx"}),
        ((), True, {"training-platform/allow-host-network"}),
        (("RDMA",), True, {"training-platform/allow-rdma", "training-platform/allow-host-network"}),
    ],
)
def test_what_a_namespace_may_beyond_baseline_is_said_one_by_one(
    kinds: tuple[str, ...], host_network: bool, allowed: set[str]
) -> None:
    labels = namespace_labels("vision", kinds, host_network=host_network)

    assert {label for label in labels if "/allow-" in label} == allowed
    assert "pod-security.kubernetes.io/enforce" not in labels
    assert labels["pod-security.kubernetes.io/warn"] == labels["pod-security.kubernetes.io/audit"] == "baseline"


@pytest.mark.parametrize(
    ("share", "maximum"),
    [
        (Share(nominal_quota=8), 4 * 8),  # all that the pools hold can be lent
        (Share(nominal_quota=8, borrowing_limit=8), 8 + 8),
        (Share(nominal_quota=8, borrowing_limit=64), 4 * 8),
        (Share(nominal_quota=8, borrowing_limit=0), 8),
        (Share(nominal_quota=64), 64),  # promised more than there is, which a rule finds
    ],
)
def test_a_team_can_have_its_own_and_what_the_pools_hold_beside(
    fleet: dict[str, Flavor], share: Share, maximum: int
) -> None:
    assert most_chips(share, fleet["h100"]) == maximum


def test_the_quota_is_what_the_teams_flavors_come_to(fleet: dict[str, Flavor]) -> None:
    shares = {
        "h100": Share(nominal_quota=16, borrowing_limit=0),
        "h100-mega": Share(nominal_quota=8, borrowing_limit=0),
        "tpu-v5e-4x8": Share(nominal_quota=32, borrowing_limit=0),
    }
    hard = resource_quota(shares, fleet)

    assert hard["requests.nvidia.com/gpu"] == str(16 + 8)
    assert hard["requests.google.com/tpu"] == "32"
    assert hard["pods"] == str(2 * (2 + 1 + 32 // 4) + SPARE_PODS)
    assert hard["count/pods"] == str((2 + 50) * (2 + 1 + 32 // 4) + SPARE_PODS + 1000)
    assert hard["requests.cpu"] == str(SPARE_CPUS + 2 * 208 + 1 * 208 + 8 * 112)
    assert hard["requests.memory"] == f"{SPARE_MEMORY_GIB + 2 * 1872 + 1 * 1872 + 8 * 192}Gi"
    assert hard["services.loadbalancers"] == "0"


def test_a_team_without_a_kind_of_chip_can_have_none_of_it(fleet: dict[str, Flavor]) -> None:
    assert resource_quota({"h100": Share(nominal_quota=8)}, fleet)["requests.google.com/tpu"] == "0"
