from __future__ import annotations

from typing import Any

import pytest

from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.cloud import CloudSettings
from tests.local_google_cloud.client import LOCATION, OTHER, PROJECT, Client, Json

CLUSTER = f"container/v1/{LOCATION}/clusters/one"
POOLS = f"{CLUSTER}/nodePools"


def pool(**fields: Any) -> Json:
    config = {"machineType": "e2-standard-4", **fields.pop("config", {})}
    return {
        "nodePool": {"name": "cpu", "initialNodeCount": 1, "locations": ["us-central1-a"], "config": config, **fields}
    }


@pytest.fixture
def gke(ask: Client) -> Client:
    ask.network()
    ask.cluster()
    return ask


def test_a_cluster_has_what_the_api_fills_in(gke: Client) -> None:
    cluster = gke.done("GET", CLUSTER)

    assert cluster["status"] == "RUNNING"
    assert cluster["selfLink"].endswith(f"/v1/{LOCATION}/clusters/one")
    assert cluster["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"].endswith(".us-central1.gke.goog")
    assert cluster["networkConfig"]["subnetwork"] == f"projects/{PROJECT}/regions/us-central1/subnetworks/nodes"
    assert cluster["locations"] == ["us-central1-a", "us-central1-b", "us-central1-c"]
    assert cluster["currentMasterVersion"] == cluster["nodePools"][0]["version"]
    assert [node_pool["name"] for node_pool in cluster["nodePools"]] == ["default-pool"]


def test_the_default_pool_can_be_removed(gke: Client) -> None:
    operation = gke.done("DELETE", f"{POOLS}/default-pool")

    assert (operation["operationType"], operation["status"]) == ("DELETE_NODE_POOL", "DONE")
    cluster = gke.done("GET", CLUSTER)
    assert cluster["nodePools"] == cluster["instanceGroupUrls"] == []


def test_a_cluster_needs_its_network_and_ranges(ask: Client) -> None:
    body: Json = {"cluster": {"name": "one", "initialNodeCount": 1, "network": "net", "subnetwork": "nodes"}}
    assert "does not exist" in ask("POST", f"container/v1/{LOCATION}/clusters", body).message

    ask.network()
    body["cluster"]["ipAllocationPolicy"] = {"useIpAliases": True, "clusterSecondaryRangeName": "nothing"}
    assert "nothing" in ask("POST", f"container/v1/{LOCATION}/clusters", body).message
    assert ask("GET", CLUSTER).code == 404


def test_ranges_of_the_subnet_become_the_clusters(ask: Client) -> None:
    ask.network()
    names = {"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"}
    ask.cluster(ipAllocationPolicy={"useIpAliases": True, **names})

    cluster = ask.done("GET", CLUSTER)
    assert (cluster["clusterIpv4Cidr"], cluster["servicesIpv4Cidr"]) == ("10.64.0.0/16", "10.65.0.0/20")


def test_instance_groups_hold_as_many_vms_as_the_pool(gke: Client) -> None:
    gke.done("POST", POOLS, pool(initialNodeCount=2, locations=["us-central1-a", "us-central1-b"]))
    urls = gke.done("GET", f"{POOLS}/cpu")["instanceGroupUrls"]

    groups = gke.done("GET", f"compute/v1/projects/{PROJECT}/zones/us-central1-a/instanceGroupManagers")["items"]
    assert len(urls) == 2
    assert [(group["selfLink"] == urls[0], group["targetSize"]) for group in groups if "cpu" in group["name"]] == [
        (True, 2)
    ]

    gke.done("POST", f"{POOLS}/cpu:setSize", {"nodeCount": 3})
    groups = gke.done("GET", f"compute/v1/projects/{PROJECT}/zones/us-central1-b/instanceGroupManagers")["items"]
    assert [group["targetSize"] for group in groups if "cpu" in group["name"]] == [3]


def test_one_update_of_a_pool_changes_one_field(gke: Client) -> None:
    gke.done("POST", POOLS, pool())
    before = gke.done("GET", f"{POOLS}/cpu")["config"]

    gke.done("PUT", f"{POOLS}/cpu", {"labels": {"labels": {"team": "vision"}}})

    assert gke.done("GET", f"{POOLS}/cpu")["config"] == {**before, "labels": {"team": "vision"}}


def test_autoscaling_is_set_by_a_method_of_its_own(gke: Client) -> None:
    gke.done("POST", POOLS, pool())
    scaling = {"enabled": True, "minNodeCount": 1, "maxNodeCount": 2}

    gke.done("POST", f"{POOLS}/cpu:setAutoscaling", {"autoscaling": scaling})
    assert gke.done("GET", f"{POOLS}/cpu")["autoscaling"] == {**scaling, "locationPolicy": "BALANCED"}

    wrong = gke("POST", f"{POOLS}/cpu:setAutoscaling", {"autoscaling": {**scaling, "maxNodeCount": 0}})
    assert wrong.code == 400
    assert gke.done("GET", f"{POOLS}/cpu")["autoscaling"]["maxNodeCount"] == 2


UPDATES: dict[str, tuple[Any, str, Any]] = {  # of the beta version: what is sent, where it is then, and what is there
    "desiredDefaultEnablePrivateNodes": (True, "networkConfig.defaultEnablePrivateNodes", True),
    "desiredEnableMultiNetworking": (True, "networkConfig.enableMultiNetworking", True),
    "desiredDnsConfig": ({"clusterDns": "CLOUD_DNS"}, "networkConfig.dnsConfig", {"clusterDns": "CLOUD_DNS"}),
    "desiredStackType": ("IPV4_IPV6", "ipAllocationPolicy.stackType", "IPV4_IPV6"),
    "desiredGcfsConfig": ({"enabled": True}, "nodePoolDefaults.nodeConfigDefaults.gcfsConfig", {"enabled": True}),
    "desiredNodePoolAutoConfigNetworkTags": ({"tags": ["a"]}, "nodePoolAutoConfig.networkTags", {"tags": ["a"]}),
    "desiredControlPlaneEndpointsConfig": (
        {"dnsEndpointConfig": {"allowExternalTraffic": True}},
        "controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic", True),
}  # fmt: skip


@pytest.mark.parametrize("field", UPDATES)
def test_each_field_of_an_update_goes_where_a_cluster_shows_it(field: str, gke: Client) -> None:
    sent, place, shown = UPDATES[field]
    beta = CLUSTER.replace("/v1/", "/v1beta1/", 1)

    gke.done("PUT", beta, {"update": {field: sent}})

    shown_value = gke.done("GET", beta)
    for name in place.split("."):
        shown_value = shown_value[name]
    assert shown_value == shown


def test_a_pools_autoscaling_is_changed_by_an_update_of_its_cluster(gke: Client) -> None:
    """The provider changes it in this way only."""
    scaling = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 6, "locationPolicy": "ANY"}
    gke.done("POST", POOLS, pool(autoscaling=scaling))
    update = {"desiredNodePoolId": "cpu", "desiredNodePoolAutoscaling": {**scaling, "totalMaxNodeCount": 4}}

    operation = gke.done("PUT", CLUSTER, {"update": update})

    assert operation["operationType"] == "UPDATE_CLUSTER"
    assert gke.done("GET", f"{POOLS}/cpu")["autoscaling"]["totalMaxNodeCount"] == 4
    assert gke.done("GET", f"{POOLS}/default-pool")["autoscaling"] == {}
    gone = {"desiredNodePoolId": "none", "desiredNodePoolAutoscaling": scaling}
    assert gke("PUT", CLUSTER, {"update": gone}).code == 404
    wrong = {**update, "desiredNodePoolAutoscaling": {"enabled": True, "minNodeCount": 3, "maxNodeCount": 1}}
    assert gke("PUT", CLUSTER, {"update": wrong}).code == 400
    assert gke.done("GET", f"{POOLS}/cpu")["autoscaling"]["totalMaxNodeCount"] == 4


def test_stale_labels_are_refused(gke: Client) -> None:
    first = gke.done("GET", CLUSTER)["labelFingerprint"]
    gke.done("POST", f"{CLUSTER}:setResourceLabels", {"resourceLabels": {"a": "1"}, "labelFingerprint": first})

    again = gke("POST", f"{CLUSTER}:setResourceLabels", {"resourceLabels": {"a": "2"}, "labelFingerprint": first})
    assert again.code == 412
    assert gke.done("GET", CLUSTER)["resourceLabels"] == {"a": "1"}


def test_no_pool_is_created_while_its_cluster_is_being_created(
    cloud: LocalCloud, ask: Client, time: list[float]
) -> None:
    cloud.settings = CloudSettings(durations={"container.clusters": 360.0})
    ask.network()
    operation = ask.cluster()
    assert operation["status"] == "RUNNING"
    assert ask.done("GET", CLUSTER)["status"] == "PROVISIONING"
    refused = ask("POST", POOLS, pool())
    assert (refused.code, refused.body["error"]["status"]) == (400, "FAILED_PRECONDITION")

    time[0] += 361
    assert ask.done("GET", f"container/v1/{LOCATION}/operations/{operation['name']}")["status"] == "DONE"
    assert ask.done("GET", CLUSTER)["status"] == "RUNNING"
    ask.done("POST", POOLS, pool())


def test_a_cluster_with_a_refused_default_pool_is_not_created(ask: Client) -> None:
    ask.network()
    body: Json = {"name": "one", "initialNodeCount": 9, "network": "net", "subnetwork": "nodes"}
    body["nodeConfig"] = {"machineType": "e2-standard-4"}

    assert ask("POST", f"container/v1/{LOCATION}/clusters", {"cluster": body}).code == 403
    assert ask("GET", CLUSTER).code == 404
    assert "items" not in ask.done("GET", f"compute/v1/projects/{PROJECT}/zones/us-central1-a/instanceGroupManagers")


def test_projects_are_kept_apart(gke: Client) -> None:
    gke.enable(OTHER, "container", "compute")
    gke.network(OTHER)
    gke.cluster(project=OTHER)

    gke.done("DELETE", CLUSTER)

    assert gke("GET", CLUSTER).code == 404
    assert gke.done("GET", CLUSTER.replace(PROJECT, OTHER))["status"] == "RUNNING"


def test_a_network_that_is_in_use_stays(gke: Client) -> None:
    network = f"compute/v1/projects/{PROJECT}/global/networks/net"

    refused = gke("DELETE", network)

    assert refused.code == 400
    assert refused.body["error"]["errors"][0]["reason"] == "resourceInUseByAnotherResource"
    gke.done("DELETE", CLUSTER)
    gke.done("DELETE", f"compute/v1/projects/{PROJECT}/regions/us-central1/subnetworks/nodes")
    gke.done("DELETE", network)
    assert gke("GET", network).code == 404
