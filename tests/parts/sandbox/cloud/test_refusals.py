"""Refusals: a refused change changes nothing, and the local cloud refuses what the rules refuse in ``check``.

Each row of ``tests/violations/answers.yaml`` is one damaged object; the bodies here are those that the provider sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, get_args

import pytest

from tests.parts.sandbox.cloud.conftest import LOCATION, OTHER, PROJECT, ZONE, Asked, Client
from tests.violations import test_found as violations
from tests.violations.draw import FOLDER, Json, damaged, load, valid
from training_platform.parts.sandbox.cloud.resources.actions import _RULES
from training_platform.rules import RULES
from training_platform.views.adapters import _READERS

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


VALID = valid()
ANSWERS: list[Json] = load(FOLDER / "answers.yaml")
REGION = f"projects/{OTHER}/locations/us-central1"
# What the local cloud takes although `check` refuses it, by the damage, with the reason.
TAKEN: Mapping[str, str] = {
    "cluster: enableAutopilot True": "the provider refuses what an Autopilot cluster does not take beside it, no API",
}
_SEVERAL = "compares several resources, and a request has one"
_OBJECTS = (
    "an object in a cluster, no request to Google's APIs: the API servers of a run have its CRD, where there is one"
)
# Rules of what Google refuses that no request to the local cloud is judged by, with the reason.
NOT_ASKED: Mapping[str, tuple[str, ...]] = {
    _SEVERAL: (
        "add-on-floor",
        "auto-provisioning-floor", "auto-provisioning-room", "autopilot-pools", "channel-upgrades", "dranet-cluster",
        "feature-floor", "filestore-range-free", "gke-floor", "gpu-network-range", "gpu-network-room", "inline-pools",
        "node-range", "placement-policy", "pod-range", "pool-version", "provision-only-pool", "queued-tpu",
        "ranges-overlap", "rdma-firewall", "rdma-metal-subnets", "rdma-network", "reservation-fits", "routes-max-pods",
        "subnet-region", "system-pool", "tpu-flavor-topology",
    ),
    "the local cloud refuses it in words of its own, beside the cluster that it has": (
        "filestore-snapshot", "workload-identity", "workload-pool",
    ),
    "the local cloud has no VMs, templates of VMs and reservations": ("vm-local-ssds", "vm-migration"),
    _OBJECTS: (
        "compute-class-capacity", "compute-class-floor", "compute-class-limits", "compute-class-pools",
        "compute-class-priority", "compute-class-reservation", "filestore-class", "flavor-accelerator",
        "queued-flavor-check", "queued-flavor-toleration",
    ),
}  # fmt: skip


def _key(row: Json) -> str:
    return f"{row['of']}: {' and '.join(f'{path} {value}' for path, value in row['values'].items())}"


def _node_config(inputs: Json) -> Json:
    config = {**inputs}
    config["accelerators"] = [
        {
            "acceleratorType": each["type"], "acceleratorCount": str(each["count"]),
            **{key: value for key, value in each.items() if key not in ("type", "count", "gpuSharingConfig")},
            **({"gpuSharingConfig": {key: str(value) for key, value in each["gpuSharingConfig"].items()}}
               if "gpuSharingConfig" in each else {}),
        }
        for each in config.pop("guestAccelerators", ())
    ]  # fmt: skip
    if "bootDisk" in config:
        config["bootDisk"] = {**config["bootDisk"], "sizeGb": str(config["bootDisk"]["sizeGb"])}
    if "taints" in config:
        config["taints"] = [*config["taints"]]
    if "kubeletConfig" in config:
        config["kubeletConfig"] = {**config["kubeletConfig"], "podPidsLimit": "4096"}
    return config


def _node_pool(inputs: Json) -> Json:
    body = {key: value for key, value in inputs.items() if key not in ("project", "cluster", "location")}
    body["config"] = _node_config(body.pop("nodeConfig"))
    if "nodeLocations" in body:
        body["locations"] = body.pop("nodeLocations")
    body["initialNodeCount"] = body.pop("nodeCount", body.get("initialNodeCount", 0))
    if "autoscaling" in body:
        body["autoscaling"] = {"enabled": True, **body["autoscaling"]}
    if "maxPodsPerNode" in body:
        body["maxPodsConstraint"] = {"maxPodsPerNode": str(body.pop("maxPodsPerNode"))}
    return body


def _cluster(inputs: Json) -> Json:
    body: Json = {key: inputs[key] for key in ("name", "initialNodeCount", "workloadIdentityConfig") if key in inputs}
    body |= {"network": "net", "subnetwork": "nodes", "locations": inputs.get("nodeLocations", [])}
    if not inputs.get("nodePools"):
        body["nodeConfig"] = _node_config(inputs["nodeConfig"])
    body["networkConfig"] = {
        "datapathProvider": inputs.get("datapathProvider", "LEGACY_DATAPATH"),
        "enableMultiNetworking": inputs.get("enableMultiNetworking", False),
    }
    body["nodePools"] = [_node_pool(each) for each in inputs.get("nodePools", ())]
    if "clusterAutoscaling" in inputs:
        body["autoscaling"] = {
            "enableNodeAutoprovisioning": True,
            "resourceLimits": [
                {key: str(value) for key, value in each.items()}
                for each in inputs["clusterAutoscaling"]["resourceLimits"]
            ],
        }
    if inputs.get("enableAutopilot"):
        body["autopilot"] = {"enabled": True}
    return {key: value for key, value in body.items() if value not in ([], None)}


def _instance(inputs: Json) -> Json:
    body = {key: value for key, value in inputs.items() if key not in ("project", "name", "location")}
    shares = body["fileShares"]
    body["fileShares"] = [{**shares, "capacityGb": str(shares["capacityGb"])}]
    iops = str(body.pop("performanceConfig")["iopsPerTb"]["maxIopsPerTb"])
    return {**body, "performanceConfig": {"iopsPerTb": {"maxIopsPerTb": iops}}}


def _persistent(inputs: Json) -> Json:
    return {key: value for key, value in inputs.items() if key not in ("project", "name", "location")}


def _elsewhere(value: Any) -> Any:
    """Return inputs with the project of the test for theirs."""
    if isinstance(value, dict):
        return {key: _elsewhere(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_elsewhere(part) for part in value]
    return value.replace("example-train", OTHER) if isinstance(value, str) else value


def _ask(ask: Client, row: Json, *, spoiled: bool) -> Asked:
    """Ask for an object as it is, or damaged."""
    inputs = _elsewhere(VALID[row["of"]]["inputs"])
    inputs = damaged(inputs, violations.change(row)) if spoiled else inputs
    kind = VALID[row["of"]]["type"].rpartition(":")[2]
    location = f"projects/{OTHER}/locations/{inputs.get('location', 'us-central1')}"
    requests: dict[str, Callable[[], Asked]] = {
        "NodePool": lambda: ask(
            "POST", f"container/v1beta1/{REGION}/clusters/train/nodePools", {"nodePool": _node_pool(inputs)}
        ),
        "Cluster": lambda: ask(
            "POST", f"container/v1beta1/{location}/clusters", {"cluster": {**_cluster(inputs), "name": "new"}}
        ),
        "Instance": lambda: ask(
            "POST", f"file/v1beta1/{location}/instances", _instance(inputs), instanceId=inputs["name"]
        ),
        "AiPersistentResource": lambda: ask(
            "POST", f"aiplatform/v1beta1/{location}/persistentResources", _persistent(inputs),
            persistentResourceId=inputs["name"],
        ),
        "ResourcePolicy": lambda: ask(
            "POST", f"compute/beta/projects/{OTHER}/regions/us-central1/resourcePolicies",
            {key: value for key, value in inputs.items() if key not in ("project", "region")},
        ),
    }  # fmt: skip
    return requests[kind]()


@pytest.fixture
def other(ask: Client) -> Client:
    """A client of a project whose quotas are not limited, with a network and a cluster ``train``."""
    ask.enable(OTHER, "aiplatform", "cloudkms", "compute", "container", "file")
    ask.network(OTHER)
    ask.cluster(
        "train", OTHER,
        workloadIdentityConfig={"workloadPool": f"{OTHER}.svc.id.goog"}, initialClusterVersion="1.34.1-gke.3084001",
    )  # fmt: skip
    return ask


@pytest.mark.parametrize("name", sorted({row["of"] for row in ANSWERS}))
def test_the_local_cloud_takes_what_is_valid(other: Client, name: str) -> None:
    answer = _ask(other, {"of": name}, spoiled=False)

    assert answer.code == 200, answer.body


@pytest.mark.parametrize("row", ANSWERS, ids=_key)
def test_the_local_cloud_refuses_what_check_refuses(other: Client, row: Json) -> None:
    errors = {each.rule for each in violations.found(row) if each.severity == "error"}
    asked = _ask(other, row, spoiled=True)

    if _key(row) in TAKEN:
        assert asked.code == 200, "it is refused now: strike the row"
    elif errors:
        assert asked.code == 400, (asked.body, errors)


def test_most_of_what_is_refused_names_a_rule_that_both_share(other: Client) -> None:
    """The message is the rule's own sentence, so that nobody refuses for another reason."""
    same = 0
    for row in ANSWERS:
        messages = [each.message for each in violations.found(row) if each.severity == "error"]
        asked = _ask(other, row, spoiled=True)
        same += asked.code == 400 and any(message in asked.message for message in messages)

    assert same >= 50


def test_every_rule_of_googles_is_asked_or_has_a_reason() -> None:
    types = {kind for kind, _ in _READERS.values()}
    asked = {each.id for each in _RULES for view in get_args(each.reads) or (each.reads,) if types & {*view.TYPES}}
    refused = {each.id for each in RULES.values() if (each.owner, each.severity) == ("google", "error")}
    listed = [name for names in NOT_ASKED.values() for name in names]

    assert refused - asked - {"vertex-boot-disk-written"} == {*listed}
    assert len(listed) == len({*listed})


def test_what_is_taken_is_a_row_with_a_reason() -> None:
    assert TAKEN.keys() <= {_key(row) for row in ANSWERS}
    assert all(TAKEN.values())
