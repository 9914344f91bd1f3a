"""Views of settings, networks and accounts, as pulumi-gcp and pulumi-kubernetes name their inputs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.viewed import one, views
from training_platform.resources.resource_types import CLUSTER, FILESTORE, NODE_POOL, SUBNETWORK
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.views.access import AccountView, RoleGrantView
from training_platform.views.cluster import (
    AutoProvisioningView,
    ClusterView,
    ReservationView,
    ResourceLimit,
)
from training_platform.views.network import FirewallView, SubnetView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.storage import FilestoreView

FIREWALL = "gcp:compute/firewall:Firewall"
MEMBERS = ["serviceAccount:a@p", "group:g@example.com"]
VPC = "gcp:compute/network:Network"


def settings(options: Any = None, **node: Any) -> NodePoolView:
    return one(NodePoolView, NODE_POOL, options, nodeConfig=node)


def test_place_that_is_left_out_is_the_provider_s_and_not_known() -> None:
    assert not one(ClusterView, CLUSTER).known("location")
    assert not one(NodePoolView, NODE_POOL).known("location")
    assert not one(SubnetView, SUBNETWORK).known("region")
    assert (
        one(ReservationView, "gcp:compute/reservation:Reservation", zone="zones/us-central1-a").zone == "us-central1-a"
    )


def test_what_autopilot_refuses_is_named_as_the_program_writes_it() -> None:
    def clashing(**inputs: Any) -> tuple[str, ...]:
        return one(ClusterView, CLUSTER, None, **inputs).clashing

    pools = [{"name": "default-pool"}, {"name": "a"}]
    assert clashing(networkPolicy={"enabled": True}, removeDefaultNodePool=True, nodePools=pools) == (
        "networkPolicy",
        "removeDefaultNodePool",
        "nodePools",
    )
    assert clashing(clusterAutoscaling={"autoProvisioningDefaults": {}}) == ()
    assert clashing(clusterAutoscaling={"enabled": True}, addonsConfig={"dnsCacheConfig": {}}) == (
        "clusterAutoscaling.enabled",
        "addonsConfig.dnsCacheConfig",
    )


@pytest.mark.parametrize(
    ("fields", "twice"), [(("spot", "preemptible"), True), (("spot",), False), (("preemptible",), False)]
)
def test_spot_in_both_spellings_is_seen(fields: tuple[str, ...], twice: bool) -> None:
    assert settings(**dict.fromkeys(fields, True)).spot_twice is twice


@pytest.mark.parametrize("flag", ["enableFqdnNetworkPolicy", "enableCiliumClusterwideNetworkPolicy"])
def test_either_policy_of_dataplane_v2_is_one(flag: str) -> None:
    on = {flag: True}
    off = {flag: False}

    assert one(ClusterView, CLUSTER, None, **on).dataplane_policies
    assert not one(ClusterView, CLUSTER, None, **off).dataplane_policies


def test_auto_provisioning_is_a_view_where_it_is_on() -> None:
    scaling = {
        "enabled": True,
        "resourceLimits": [{"resourceType": "cpu", "maximum": 100.0}],
        "autoProvisioningLocations": ["us-central1-a"],
        "autoProvisioningDefaults": {
            "diskType": "pd-ssd", "diskSize": 200, "upgradeSettings": {"strategy": "SURGE", "maxSurge": 1},
        },
    }  # fmt: skip
    view = one(AutoProvisioningView, CLUSTER, clusterAutoscaling=scaling)

    assert (view.limits, view.zones, view.written) == ((ResourceLimit("cpu", 100),), ("us-central1-a",), True)
    assert (view.disk_type, view.disk_gb, view.strategy, view.max_surge) == ("pd-ssd", 200, "SURGE", 1)
    assert (view.limit("cpu"), view.limit("memory")) == (100, None)
    assert views(AutoProvisioningView, CLUSTER, clusterAutoscaling={"enabled": False}) == []
    limits = {"enabled": True, "resourceLimits": [{"resourceType": "nvidia-l4", "maximum": 8}]}
    named = one(AutoProvisioningView, CLUSTER, clusterAutoscaling=limits)
    assert [named.path(name) for name in ("limits", "memory", "nvidia-l4")] == [
        ("auto_provisioning",),
        ("auto_provisioning", "memory_gb"),
        ("auto_provisioning", "accelerators", "nvidia-l4"),
    ]
    assert views(AutoProvisioningView, CLUSTER) == []
    assert not one(AutoProvisioningView, CLUSTER, clusterAutoscaling={"enabled": True}).written


def test_whoever_gives_no_options_does_not_say_how_a_pool_is_replaced() -> None:
    assert (settings().ignored, settings().replaced_first) == (None, None)
    assert settings({"protect": True}).replaced_first is False


@pytest.mark.parametrize(
    ("disk", "provisioned"), [({"provisionedIops": 4000}, True), ({"provisionedThroughput": 400}, True),
                              ({"provisionedIops": 0}, False)],
)  # fmt: skip
def test_boot_disk_with_performance_of_its_own_is_seen(disk: dict[str, Any], provisioned: bool) -> None:
    assert settings(bootDisk=disk).provisioned is provisioned


@pytest.mark.parametrize("value", ["additionalNodeNetworkConfigs", "taints", "clusterAutoscaling", "allows"])
def test_list_that_is_not_known_is_unknown_alone(value: str) -> None:
    seen = {
        "additionalNodeNetworkConfigs": (one(NodePoolView, NODE_POOL, networkConfig={value: UNKNOWN}), "nics"),
        "taints": (settings(taints=UNKNOWN), "taints"),
        "clusterAutoscaling": (one(AutoProvisioningView, CLUSTER, clusterAutoscaling=UNKNOWN), "limits"),
        "allows": (one(FirewallView, FIREWALL, allows=[{"protocol": "tcp", "ports": UNKNOWN}]), "ports"),
    }  # fmt: skip
    view, field = seen[value]

    assert not view.known(field)


def test_reference_that_is_not_known_is_the_one_resource_of_its_type_that_is_waited_for() -> None:
    after = {"dependsOn": [(VPC, "network-vpc"), (SUBNETWORK, "main-subnet")]}
    view = one(ClusterView, CLUSTER, after, subnetwork=UNKNOWN, network=UNKNOWN)
    several = {"dependsOn": [(SUBNETWORK, "a"), (SUBNETWORK, "b")]}

    assert view.subnetwork == "main-subnet"
    assert one(ClusterView, CLUSTER, after, network=UNKNOWN).network == "network-vpc"
    assert not one(ClusterView, CLUSTER, several, subnetwork=UNKNOWN).known("subnetwork")
    assert one(ClusterView, CLUSTER, several, subnetwork="c").subnetwork == "c"


@pytest.mark.parametrize(
    ("inputs", "ports"),
    [
        ({"allows": [{"protocol": "tcp", "ports": ["443", "9443"]}]}, ("443", "9443")),
        ({"allows": [{"protocol": "tcp"}]}, ("0-65535",)),
        ({"allows": [{"protocol": "all"}]}, ("0-65535",)),
        ({"allows": [{"protocol": "udp", "ports": ["9443"]}]}, ()),
        ({"allows": [{"protocol": "tcp"}], "direction": "EGRESS"}, ()),
        ({"allows": [{"protocol": "tcp"}], "disabled": True}, ()),
        ({"denies": [{"protocol": "tcp"}]}, ()),
    ],
)
def test_firewall_rule_is_the_ports_that_it_lets_in(inputs: dict[str, Any], ports: tuple[str, ...]) -> None:
    assert one(FirewallView, FIREWALL, **inputs).ports == ports


@pytest.mark.parametrize(
    ("kind", "inputs", "accounts"),
    [
        ("iAMMember:IAMMember", {"member": "serviceAccount:a@p"}, ["a@p"]),
        ("iAMBinding:IAMBinding", {"members": MEMBERS}, ["a@p", "group:g@example.com"]),
    ],
)  # fmt: skip
def test_every_member_of_a_role_is_read(kind: str, inputs: dict[str, Any], accounts: list[str]) -> None:
    grants = views(RoleGrantView, f"gcp:projects/{kind}", role="roles/editor", **inputs)

    assert [(grant.role, grant.account) for grant in grants] == [("roles/editor", account) for account in accounts]


def test_e_mail_of_an_account_follows_from_its_id() -> None:
    view = one(AccountView, "gcp:serviceaccount/account:Account", accountId="nodes", project="example-train")

    assert view.email == "nodes@example-train.iam.gserviceaccount.com"


@pytest.mark.parametrize(("network", "project"), [("projects/host/global/networks/vpc", "host"), ("vpc", None)])
def test_filestore_is_read_with_the_project_of_its_network(network: str, project: str | None) -> None:
    assert one(FilestoreView, FILESTORE, networks=[{"network": network}]).network_project == project
