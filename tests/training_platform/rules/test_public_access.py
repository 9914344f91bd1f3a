"""What is open to everybody is found as a state, of any type of resource, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from training_platform.config.reading.finding import Finding
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import RULES, evaluate, program, views_of_plan

FIREWALL = "gcp:compute/firewall:Firewall"
SERVICE = "kubernetes:core/v1:Service"
SSH = {"allows": [{"protocol": "tcp", "ports": ["22"]}]}
ANY = ["0.0.0.0/0"]
POLICY = '{"bindings": [{"role": "roles/storage.objectViewer", "members": ["allUsers"]}]}'


def found(resource_type: str, inputs: dict[str, Any], rule: str = "public-access") -> list[Finding]:
    views = views_of_plan([StackResource(stack="dev", type=resource_type, name="it", inputs=inputs)])
    whole = program(views, stack="dev", environment="dev", team=None, production=False)
    return evaluate(whole, [RULES[rule]])


@pytest.mark.parametrize(
    ("resource_type", "inputs", "path"),
    [
        ("gcp:cloudrunv2/serviceIamMember:ServiceIamMember", {"member": "allUsers"}, "member"),
        ("gcp:projects/iAMBinding:IAMBinding", {"members": ["user:a@example.com", "allAuthenticatedUsers"]},
         "members[1]"),
        ("gcp:storage/bucketIAMPolicy:BucketIAMPolicy", {"policyData": POLICY}, "policyData"),
        ("gcp:storage/bucketACL:BucketACL", {"roleEntities": ["READER:allUsers"]}, "roleEntities[0]"),
        ("gcp:storage/bucketACL:BucketACL", {"predefinedAcl": "publicRead"}, "predefinedAcl"),
        ("gcp:bigquery/dataset:Dataset", {"accesses": [{"iamMember": "allUsers"}]}, "accesses[0].iamMember"),
        (FIREWALL, {"sourceRanges": ANY, **SSH}, "sourceRanges[0]"),
        (FIREWALL, {"sourceRanges": ["10.0.0.0/8", "::/0"], **SSH}, "sourceRanges[1]"),
        (FIREWALL, {"sourceRanges": ["0.0.0.0/1"], **SSH}, "sourceRanges[0]"),
        (FIREWALL, {"sourceRanges": ["2000::/3"], **SSH}, "sourceRanges[0]"),
        (
            "gcp:sql/databaseInstance:DatabaseInstance",
            {"settings": {"ipConfiguration": {"authorizedNetworks": [{"value": "0.0.0.0/0"}]}}},
            "settings.ipConfiguration.authorizedNetworks[0].value",
        ),
        (
            "gcp:container/cluster:Cluster",
            {"masterAuthorizedNetworksConfig": {"cidrBlocks": [{"cidrBlock": "0.0.0.0/0"}]}},
            "masterAuthorizedNetworksConfig.cidrBlocks[0].cidrBlock",
        ),
        ("gcp:example/lab:Lab", {"alternateNetworks": ANY, "destroyers": []}, "alternateNetworks[0]"),
        ("gcp:cloudrunv2/service:Service", {"invokerIamDisabled": True}, "invokerIamDisabled"),
        ("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", {"subjects": [{"name": "system:authenticated"}]},
         "subjects[0].name"),
        (SERVICE, {"spec": {"type": "LoadBalancer"}}, "spec.type"),
        (SERVICE, {"spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": ANY}},
         "spec.loadBalancerSourceRanges[0]"),
    ],
)  # fmt: skip
def test_what_is_open_is_found_at_its_input(resource_type: str, inputs: dict[str, Any], path: str) -> None:
    ((finding,)) = found(resource_type, inputs)

    assert (finding.path, finding.severity) == (path, "error")
    assert finding.allowed


@pytest.mark.parametrize(
    ("resource_type", "inputs"),
    [
        ("gcp:projects/iAMMember:IAMMember", {"member": "group:all@example.com"}),
        ("gcp:projects/iAMMember:IAMMember", {"member": UNKNOWN}),
        (FIREWALL, {"sourceRanges": ["10.0.0.0/8", "35.0.0.0/8", "240.0.0.0/4", "fc00::/7", "2600::/16"], **SSH}),
        ("gcp:compute/forwardingRule:ForwardingRule", {"loadBalancingScheme": "INTERNAL_MANAGED"}),
        ("gcp:compute/forwardingRule:ForwardingRule", {"target": "a service attachment"}),
        (FIREWALL, {"sourceRanges": ANY, "denies": [{"protocol": "all"}]}),
        (FIREWALL, {"sourceRanges": ANY, "disabled": True, **SSH}),
        (FIREWALL, {"direction": "EGRESS", "destinationRanges": ANY, **SSH}),
        ("gcp:compute/route:Route", {"destRange": "0.0.0.0/0"}),
        ("gcp:compute/vPNTunnel:VPNTunnel", {"remoteTrafficSelectors": ANY}),
        ("gcp:compute/routerNat:RouterNat", {"rules": [{"sourceNatActiveRanges": ANY}]}),
        ("gcp:compute/router:Router", {"bgp": {"advertisedIpRanges": [{"range": "0.0.0.0/0"}]}}),
        ("gcp:compute/networkFirewallPolicyRule:NetworkFirewallPolicyRule",
         {"action": "deny", "direction": "INGRESS", "match": {"srcIpRanges": ANY}}),
        ("kubernetes:networking.k8s.io/v1:NetworkPolicy",
         {"spec": {"egress": [{"to": [{"ipBlock": {"cidr": ANY[0]}}]}]}}),
        (SERVICE, {"spec": {"type": "ClusterIP"}}),
        (SERVICE, {"spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"]}}),
        (SERVICE, {"spec": {"type": "LoadBalancer"},
                   "metadata": {"annotations": {"networking.gke.io/load-balancer-type": "Internal"}}}),
        ("gcp:cloudrunv2/service:Service", {"invokerIamDisabled": False, "ingress": "INGRESS_TRAFFIC_ALL"}),
    ],
)  # fmt: skip
def test_what_lets_nobody_in_is_not(resource_type: str, inputs: dict[str, Any]) -> None:
    assert found(resource_type, inputs) == []


def test_the_ports_of_a_firewall_rule_and_the_role_of_a_grant_are_named() -> None:
    ((rule,)) = found(FIREWALL, {"sourceRanges": ANY, **SSH})
    ((grant,)) = found("gcp:projects/iAMMember:IAMMember", {"member": "allUsers", "role": "roles/viewer"})

    assert rule.message.endswith("admits every address: tcp 22")
    assert grant.message.endswith("anybody on the internet, who gets roles/viewer")


def test_an_external_load_balancer_is_a_warning() -> None:
    ((warning,)) = found("gcp:compute/globalForwardingRule:GlobalForwardingRule", {"loadBalancingScheme": "EXTERNAL"})

    assert (warning.severity, warning.path) == ("warning", "loadBalancingScheme")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"role": "roles/owner", "member": "user:a@example.com"},
         "roles/owner lets user:a@example.com change everything in this resource"),
        ({"role": "roles/editor", "members": UNKNOWN}, ("roles/editor lets its members change everything in this "
            "resource")),
        ({"role": "roles/viewer", "member": "user:a@example.com"}, None),
        ({"role": UNKNOWN}, None),
    ],
)  # fmt: skip
def test_a_role_for_everything_is_a_warning(inputs: dict[str, Any], message: str | None) -> None:
    findings = found("gcp:projects/iAMMember:IAMMember", inputs, "broad-role")

    assert [(row.severity, row.message) for row in findings] == [("warning", message)] * bool(message)
