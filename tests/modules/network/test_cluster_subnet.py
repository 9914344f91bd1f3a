"""A cluster's addresses, and the way from its control plane to admission webhooks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from modules.network import ClusterSubnet, ClusterSubnetArgs
from training_platform.checks.planning.recorder import Plan
from training_platform.config.model.cluster import ClusterSpec
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
SUBNET = "gcp:compute/subnetwork:Subnetwork"
FIREWALL = "gcp:compute/firewall:Firewall"
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"}


def subnet(scope: Scope, location: str = "us-central2-b") -> ClusterSubnet:
    spec = ClusterSpec.model_validate({"location": location, "subnet": RANGES})
    return ClusterSubnet(
        "tpu", ClusterSubnetArgs(scope=scope, spec=spec, network="vpc", node_service_account="nodes@example.com")
    )


def test_a_subnet_has_ranges_for_nodes_pods_and_services(scope: Scope, deploy: Deploy) -> None:
    inputs = deploy(lambda: subnet(scope)).one(SUBNET, "tpu-subnet").inputs

    assert inputs["project"] == "example-train-dev"
    assert inputs["network"] == "vpc"
    assert inputs["ipCidrRange"] == RANGES["nodes"]
    assert inputs["secondaryIpRanges"] == [
        {"rangeName": "pods", "ipCidrRange": RANGES["pods"]},
        {"rangeName": "services", "ipCidrRange": RANGES["services"]},
    ]
    assert "name" not in inputs


@pytest.mark.parametrize("location", ["us-central2-b", "us-central2"])
def test_a_subnet_lies_in_the_region_of_its_cluster(location: str, scope: Scope, deploy: Deploy) -> None:
    assert deploy(lambda: subnet(scope, location)).one(SUBNET).inputs["region"] == "us-central2"


def test_private_nodes_reach_google_and_a_tenth_of_their_flows_is_logged(scope: Scope, deploy: Deploy) -> None:
    inputs = deploy(lambda: subnet(scope)).one(SUBNET).inputs

    assert inputs["privateIpGoogleAccess"] is True
    assert inputs["logConfig"] == {
        "aggregationInterval": "INTERVAL_10_MIN",
        "flowSampling": 0.1,
        "metadata": "INCLUDE_ALL_METADATA",
    }


def test_other_ranges_make_another_subnet_after_the_old_one_is_gone(scope: Scope, deploy: Deploy) -> None:
    options = deploy(lambda: subnet(scope)).one(SUBNET).options

    assert options == {"replaceOnChanges": ["secondaryIpRanges"], "deleteBeforeReplace": True}


def test_the_control_plane_reaches_webhooks_on_nodes_alone(scope: Scope, deploy: Deploy) -> None:
    rule = deploy(lambda: subnet(scope)).one(FIREWALL, "tpu-webhooks").inputs

    assert rule["project"] == "example-train-dev"
    assert rule["network"] == "vpc"
    assert rule["direction"] == "INGRESS"
    assert rule["sourceRanges"] == [RANGES["nodes"]]
    assert rule["targetServiceAccounts"] == ["nodes@example.com"]
    assert rule["allows"] == [{"protocol": "tcp", "ports": ["8443", "9443", "15017"]}]
    assert rule.keys().isdisjoint({"targetTags", "sourceTags", "denies"})
