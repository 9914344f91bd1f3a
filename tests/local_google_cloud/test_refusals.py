"""Refusals: a refused change changes nothing, and the local cloud refuses what the rules refuse in ``check``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.questions import Judge
from tests.local_google_cloud.client import LOCATION, PROJECT, ZONE, Client
from tests.local_google_cloud.one_of_each import one_of_each
from training_platform.parts.sandbox.google_rules import PlatformJudge

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
        "PATCH", f"{COMPUTE}/regions/us-central1/routers/out",
        {"description": "x", "nats": [{"name": "a"}, {"name": "b", "subnetworks": [{}]}]}, {}),
    "firewall, both ways": (
        "PATCH", f"{COMPUTE}/global/firewalls/allow",
        {"priority": 7, "denied": [{"IPProtocol": "tcp"}]}, {}),
    "Filestore, another tier": (
        "PATCH", f"file/v1/{ZONE}/instances/homes", {"description": "x", "tier": "REGIONAL"},
        {"updateMask": "description,tier"}),
    "bucket, another place": ("PATCH", "storage/v1/b/example-lab-data", {"location": "EU", "labels": {"a": "b"}}, {}),
    "alert policy, no condition": (
        "PATCH", "{policy}", {"displayName": "other", "conditions": []}, {}),
    "channel, no address": (
        "PATCH", "{channel}", {"displayName": "x", "labels": {}}, {"updateMask": "displayName,labels"}),
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
    "TensorBoard, no name": ("PATCH", "{board}", {"description": "x", "displayName": ""},
        {"updateMask": "description,displayName"}),
    "policy, a member that is none": (
        "POST", f"cloudresourcemanager/v1/projects/{PROJECT}:setIamPolicy",
        {"policy": {"bindings": [{"role": "roles/viewer", "members": ["nobody"]}]}}, {}),
}  # fmt: skip


@pytest.fixture
def names(ask: Client) -> dict[str, str]:
    """One of each kind; gives what Google named itself."""
    accounts = f"iam/v1/projects/{PROJECT}/serviceAccounts"
    ask.done("POST", accounts, {"accountId": "account"})
    pools = [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}]
    resources = f"aiplatform/v1/{LOCATION}/persistentResources"
    ask.done("POST", resources, {"resourcePools": pools}, persistentResourceId="gpus")
    return one_of_each(ask)


def held(client: Client) -> str:
    return json.dumps([asdict(record) for record in client.cloud.store.all()])


@pytest.mark.parametrize("change", REFUSED)
def test_a_refused_request_changes_nothing(change: str, ask: Client, names: dict[str, str]) -> None:
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
        ("PATCH", f"{COMPUTE}/regions/us-central1/routers/out", {"nats": [{"subnetworks": [{}]}]}, {}),
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


SHARES = [{"name": "a", "capacityGb": "100"}]
SMALL_SHARE = {"tier": "BASIC_SSD", "fileShares": SHARES, "networks": [{"network": "net"}]}
LARGE_DISK = {
    "machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1",
    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 64_001},
}  # fmt: skip
L4 = [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}]


def with_pool(**config: Any) -> dict[str, Any]:
    return {"nodePool": {"name": "cpu", "initialNodeCount": 1, "config": {"machineType": "e2-standard-8", **config}}}


@pytest.mark.parametrize(
    ("path", "body", "query", "words"),
    [
        (f"{CLUSTER}/nodePools", with_pool(diskSizeGb=9), {}, "9 GB"),
        (f"{CLUSTER}/nodePools", with_pool(machineType="a2-highgpu-1g", accelerators=L4), {}, "l4"),
        (f"{CLUSTER}/nodePools", with_pool(flexStart=True), {}, "flex"),
        (f"file/v1/{ZONE}/instances", SMALL_SHARE, {"instanceId": "a"}, "capacity"),
        (f"aiplatform/v1/{LOCATION}/persistentResources", {"resourcePools": [LARGE_DISK]},
         {"persistentResourceId": "a"}, "64,001 GB"),
    ],
)  # fmt: skip
def test_what_a_rule_of_googles_finds_is_refused_in_its_words(
    path: str, body: dict[str, Any], query: dict[str, str], words: str, ask: Client
) -> None:
    ask.network()
    ask.cluster()

    refused = ask("POST", path, body, **query)

    assert (refused.code, refused.body["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert words in refused.message


@pytest.mark.parametrize(("judge", "code"), [(None, 200), (PlatformJudge({}), 400)])
def test_a_judge_refuses_what_the_documents_allow(judge: Judge | None, code: int) -> None:
    ask = Client(LocalCloud([PROJECT], judge=judge))
    ask.enable(PROJECT, "file")
    tier = {"tier": "ZONAL", "networks": [{"network": "default"}], "fileShares": [{"name": "a", "capacityGb": "1"}]}

    assert ask("POST", f"file/v1/{ZONE}/instances", tier, instanceId="homes").code == code
