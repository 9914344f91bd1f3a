"""A change that is refused changes nothing, whatever its kind, however late it is refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, ZONE, Client

COMPUTE = f"compute/v1/projects/{PROJECT}"
CLUSTER = f"container/v1/{LOCATION}/clusters/one"
BETA = CLUSTER.replace("v1", "v1beta1", 1)
POOL = f"{CLUSTER}/nodePools/default-pool"
SUBNET = f"{COMPUTE}/regions/us-central1/subnetworks/nodes"
REFUSED: dict[str, tuple[str, str, dict[str, Any], dict[str, str]]] = {
    "cluster, an unknown version after a field": (
        "PUT", CLUSTER, {"update": {"desiredLoggingService": "none", "desiredMasterVersion": "0.1"}}, {}),
    "cluster, a change that is not there after a field": (
        "PUT", BETA, {"update": {"desiredLoggingService": "none", "desiredHostMaintenancePolicy": {}}}, {}),
    "cluster, a stale etag": ("PUT", CLUSTER, {"update": {"etag": "x", "desiredLoggingService": "none"}}, {}),
    "pool, more VMs than the quota": ("POST", f"{POOL}:setSize", {"nodeCount": 1000}, {}),
    "pool, a machine type that is none": ("PUT", POOL, {"machineType": "n9-standard-4", "labels": {}}, {}),
    "pool, least above most": (
        "POST", f"{POOL}:setAutoscaling", {"autoscaling": {"enabled": True, "minNodeCount": 5, "maxNodeCount": 1}}, {}),
    "pool, metadata that its cluster lacks": (
        "PUT", POOL, {"imageType": "UBUNTU_CONTAINERD", "workloadMetadataConfig": {"mode": "GKE_METADATA"}}, {}),
    "subnetwork, a range that is none": ("PATCH", SUBNET, {"description": "x", "secondaryIpRanges": [{}]}, {}),
    "subnetwork, a smaller range": ("POST", f"{SUBNET}/expandIpCidrRange", {"ipCidrRange": "10.0.0.0/24"}, {}),
    "router, a NAT of no subnetwork": (
        "PATCH", f"{COMPUTE}/regions/us-central1/routers/way",
        {"description": "x", "nats": [{"name": "a"}, {"name": "b", "subnetworks": [{}]}]}, {}),
    "firewall, both ways": (
        "PATCH", f"{COMPUTE}/global/firewalls/inside",
        {"priority": 7, "denied": [{"IPProtocol": "tcp"}]}, {}),
    "Filestore, another tier": (
        "PATCH", f"file/v1/{ZONE}/instances/homes", {"description": "x", "tier": "REGIONAL"},
        {"updateMask": "description,tier"}),
    "bucket, another place": ("PATCH", "storage/v1/b/bucket-one", {"location": "EU", "labels": {"a": "b"}}, {}),
    "alert policy, no condition": (
        "PATCH", "monitoring/v3/{policy}", {"displayName": "other", "conditions": []}, {}),
    "channel, no address": (
        "PATCH", "monitoring/v3/{channel}", {"displayName": "x", "labels": {}}, {"updateMask": "displayName,labels"}),
    "repository, another format": (
        "PATCH", f"artifactregistry/v1/{LOCATION}/repositories/images",
        {"description": "x", "format": "MAVEN"}, {"updateMask": "description,format"}),
    "service account, a field that cannot be set": (
        "PATCH", f"iam/v1/projects/{PROJECT}/serviceAccounts/account@{PROJECT}.iam.gserviceaccount.com",
        {"serviceAccount": {"displayName": "x"}, "updateMask": "displayName,email"}, {}),
    "persistent resource, no pools": (
        "PATCH", f"aiplatform/v1/{LOCATION}/persistentResources/gpus", {"displayName": "x", "resourcePools": []},
        {"updateMask": "displayName,resourcePools"}),
    "persistent resource, the provider's way to change one": (
        "PUT", f"aiplatform/v1beta1/{LOCATION}/persistentResources/gpus", {"displayName": "x"}, {}),
    "TensorBoard, no name": ("PATCH", "aiplatform/v1/{tensorboard}", {"description": "x", "displayName": ""},
        {"updateMask": "description,displayName"}),
    "policy, a member that is none": (
        "POST", f"cloudresourcemanager/v1/projects/{PROJECT}:setIamPolicy",
        {"policy": {"bindings": [{"role": "roles/viewer", "members": ["nobody"]}]}}, {}),
}  # fmt: skip


@pytest.fixture
def names(ask: Client) -> dict[str, str]:
    """One of each kind; gives what Google named itself."""
    ask.network()
    ask.cluster()
    network = f"projects/{PROJECT}/global/networks/net"
    ask.done("POST", f"{COMPUTE}/regions/us-central1/routers", {"name": "way", "network": network})
    ask.done(
        "POST", f"{COMPUTE}/global/firewalls",
        {"name": "inside", "network": network, "allowed": [{"IPProtocol": "tcp"}]},
    )  # fmt: skip
    share = {"tier": "ZONAL", "fileShares": [{"name": "a", "capacityGb": "1024"}], "networks": [{"network": "net"}]}
    ask.done("POST", f"file/v1/{ZONE}/instances", share, instanceId="homes")
    ask.done("POST", "storage/v1/b", {"name": "bucket-one"}, project=PROJECT)
    ask.done("POST", f"artifactregistry/v1/{LOCATION}/repositories", {"format": "DOCKER"}, repositoryId="images")
    ask.done("POST", f"iam/v1/projects/{PROJECT}/serviceAccounts", {"accountId": "account"})
    pools = [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}]
    ask.done("POST", f"aiplatform/v1/{LOCATION}/persistentResources", {"resourcePools": pools},
             persistentResourceId="gpus")  # fmt: skip
    board = ask.done("POST", f"aiplatform/v1/{LOCATION}/tensorboards", {"displayName": "runs"})
    policy = {"displayName": "p", "conditions": [{"displayName": "c", "conditionThreshold": {"filter": "x"}}]}
    channel = {"type": "email", "labels": {"email_address": "a@example.com"}}
    parent = f"monitoring/v3/projects/{PROJECT}"
    return {
        "policy": ask.done("POST", f"{parent}/alertPolicies", policy)["name"],
        "channel": ask.done("POST", f"{parent}/notificationChannels", channel)["name"],
        "tensorboard": board["response"]["name"],
    }


def held(client: Client) -> str:
    return json.dumps([asdict(record) for record in client.cloud.store.all()])


@pytest.mark.parametrize("change", REFUSED)
def test_what_is_refused_changes_nothing(change: str, ask: Client, names: dict[str, str]) -> None:
    verb, path, body, query = REFUSED[change]
    before = held(ask)

    answer = ask(verb, path.format(**names), body, **query)

    assert 400 <= answer.code < 500 or answer.code == 501, answer.body
    assert held(ask) == before


@pytest.mark.parametrize(
    "request_",
    [
        ("POST", f"container/v1/{LOCATION}/clusters", {"cluster": {"name": "two", "nodePools": [{}]}}, {}),
        ("POST", f"container/v1/{LOCATION}/clusters", {"cluster": {}}, {}),
        ("POST", f"container/v1/{LOCATION}/clusters", {"cluster": {"id": "x", "name": "t", "initialNodeCount": 1}}, {}),
        ("POST", f"{CLUSTER}/nodePools", {"nodePool": {"initialNodeCount": 1}}, {}),
        ("PATCH", SUBNET, {"secondaryIpRanges": [{"rangeName": "a"}]}, {}),
        ("PATCH", SUBNET, {"secondaryIpRanges": [{"ipCidrRange": "10.9.0.0/20"}]}, {}),
        ("PATCH", f"{COMPUTE}/regions/us-central1/routers/way", {"nats": [{"subnetworks": [{}]}]}, {}),
        ("POST", f"file/v1/{ZONE}/instances", {"tier": "ZONAL", "fileShares": [{}], "networks": [{}]},
         {"instanceId": "more"}),
        ("POST", f"iam/v1/projects/{PROJECT}/serviceAccounts", {}, {}),
        ("POST", "storage/v1/b", {}, {"project": PROJECT}),
    ],
)  # fmt: skip
def test_a_body_without_a_name_is_refused(
    request_: tuple[str, str, dict[str, Any], dict[str, str]], ask: Client, names: dict[str, str]
) -> None:
    verb, path, body, query = request_
    before = held(ask)

    assert ask(verb, path, body, **query).code == 400
    assert held(ask) == before


def test_what_a_client_was_given_is_its_own(ask: Client) -> None:
    ask.network()
    ask.done("GET", SUBNET)["description"] = "changed by hand"

    assert "description" not in ask.done("GET", SUBNET)
