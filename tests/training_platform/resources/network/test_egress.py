"""Which connections of a team's pods the policies let through, told by a reader of NetworkPolicies."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest
import yaml

from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.resources.tenancy import egress_spec, host_spec

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
