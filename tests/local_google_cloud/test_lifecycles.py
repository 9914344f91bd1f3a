"""Each kind is created, read, listed, changed and deleted, and is 404 afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.local_google_cloud.client import INSTANCE, LOCATION, PROJECT, TRAINING, ZONE, Client, Json

KEY = f"projects/{PROJECT}/locations/us-central1/keyRings/training/cryptoKeys/data"
COMPUTE = f"compute/v1/projects/{PROJECT}"


@dataclass
class Life:
    """A kind: its collection, the body of a create, and the fields that the API fills in."""

    collection: str
    body: Json
    filled: Json
    id: str = ""
    query: dict[str, str] = field(default_factory=dict)


FIREWALL = {"name": "allow", "network": "global/networks/net", "allowed": [{"IPProtocol": "tcp"}]}
SLOW = {
    "displayName": "slow",
    "combiner": "OR",
    "conditions": [{"displayName": "c", "conditionThreshold": {"filter": "x"}}],
}
LIVES = {
    "firewall": Life(
        f"{COMPUTE}/global/firewalls", FIREWALL,
        {"priority": 1000, "direction": "INGRESS", "sourceRanges": ["0.0.0.0/0"]}, id="allow",
    ),
    "router": Life(
        f"{COMPUTE}/regions/us-central1/routers", {"name": "nat", "network": "global/networks/net"},
        {"region": f"https://www.googleapis.com/{COMPUTE}/regions/us-central1"}, id="nat",
    ),
    "filestore": Life(
        f"file/v1/{ZONE}/instances", INSTANCE, {"state": "READY", "name": f"{ZONE}/instances/homes"}, id="homes",
        query={"instanceId": "homes"},
    ),
    "persistent resource": Life(
        f"aiplatform/v1/{LOCATION}/persistentResources", {"resourcePools": [TRAINING]}, {"state": "RUNNING"},
        id="tuning", query={"persistentResourceId": "tuning"},
    ),
    "repository": Life(
        f"artifactregistry/v1/{LOCATION}/repositories", {"format": "DOCKER"}, {"mode": "STANDARD_REPOSITORY"},
        id="images", query={"repositoryId": "images"},
    ),
    "bucket": Life(
        "storage/v1/b", {"name": "example-lab-data", "location": "us-central1"},
        {"location": "US-CENTRAL1", "metageneration": "1", "storageClass": "STANDARD"}, id="example-lab-data",
        query={"project": PROJECT},
    ),
    "secret": Life(
        f"secretmanager/v1/projects/{PROJECT}/secrets", {"replication": {"automatic": {}}},
        {"replication": {"automatic": {}}}, id="token", query={"secretId": "token"},
    ),
    "log bucket": Life(
        f"logging/v2/projects/{PROJECT}/locations/global/buckets", {"retentionDays": 30}, {"lifecycleState": "ACTIVE"},
        id="team", query={"bucketId": "team"},
    ),
    "sink": Life(
        f"logging/v2/projects/{PROJECT}/sinks",
        {"name": "team-pods", "destination": "logging.googleapis.com/x", "filter": "a"}, {"name": "team-pods"},
        id="team-pods",
    ),
    "tensorboard": Life(f"aiplatform/v1/{LOCATION}/tensorboards", {"displayName": "runs"}, {"displayName": "runs"}),
    "notification channel": Life(
        f"monitoring/v3/projects/{PROJECT}/notificationChannels",
        {"type": "email", "labels": {"email_address": "ops@example.com"}}, {"enabled": True, "type": "email"},
    ),
    "dashboard": Life(
        f"monitoring/v1/projects/{PROJECT}/dashboards",
        {"displayName": "queues", "mosaicLayout": {"columns": 12, "tiles": [{"width": 6, "height": 4}]}},
        {"displayName": "queues"},
    ),
    "alert policy": Life(f"monitoring/v3/projects/{PROJECT}/alertPolicies", SLOW, {"displayName": "slow"}),
}  # fmt: skip


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_a_resource_is_created_read_listed_and_deleted(ask: Client, life: Life) -> None:
    """Changes are tested in ``test_every_change.py``."""
    ask.network()
    created = ask.done("POST", life.collection, life.body, **life.query)
    assert created.get("done", True) is True
    name = created["response"]["name"] if "response" in created else created.get("name", "")
    resource = f"{life.collection}/{life.id or name.rpartition('/')[2]}"

    read = ask.done("GET", resource)
    query = {"project": PROJECT} if life.collection.startswith("storage") else {}
    listed = ask.done("GET", life.collection, **query)
    assert read in next(value for value in listed.values() if isinstance(value, list))
    assert {key: read.get(key) for key in life.filled} == life.filled
    if life.id:
        assert ask("POST", life.collection, life.body, **life.query).code == 409

    ask.done("DELETE", resource)
    assert ask("GET", resource).code == 404
    assert ask("DELETE", resource).code == 404


@pytest.mark.parametrize(("kind", "field"), [("log bucket", "retentionDays"), ("sink", "filter")])
def test_a_mask_changes_only_the_fields_that_it_names(ask: Client, kind: str, field: str) -> None:
    life = LIVES[kind]
    ask.done("POST", life.collection, life.body, **life.query)
    resource = f"{life.collection}/{life.id}"
    value = 60 if field == "retentionDays" else "b"

    ask.done("PATCH", resource, {field: value, "description": "not in the mask"}, updateMask=field)

    changed = ask.done("GET", resource)
    assert changed[field] == value
    assert "description" not in changed


def test_a_request_that_is_only_validated_is_answered_and_changes_nothing(ask: Client) -> None:
    path = f"monitoring/v1/projects/{PROJECT}/dashboards"
    created = ask.done("POST", path, {"displayName": "queues"})

    tried = ask.done("POST", path, {"displayName": "jobs"}, validateOnly="true")
    changed = ask.done("PATCH", f"monitoring/v1/{created['name']}", {"displayName": "jobs"}, validateOnly="true")

    assert tried["displayName"] == changed["displayName"] == "jobs"
    assert ask.done("GET", path)["dashboards"] == [created]
    assert ask("POST", path, {}, validateOnly="true").code == 400
    assert ask("GET", f"monitoring/v1/{tried['name']}").code == 404


@pytest.mark.parametrize(
    ("columns", "tile", "code"),
    [
        (48, {"xPos": 47, "width": 1}, 200),
        (48, {"xPos": 47, "width": 2}, 400),
        (48, {"xPos": -1, "width": 2}, 400),
        (12, {"width": 13}, 400),
        (49, {"width": 1}, 400),
        (0, {}, 400),
        (None, {}, 400),
    ],
)
def test_tiles_of_a_dashboard_are_within_its_columns(ask: Client, columns: int | None, tile: Json, code: int) -> None:
    body = {"displayName": "queues", "mosaicLayout": {"columns": columns, "tiles": [tile]}}

    assert ask("POST", f"monitoring/v1/projects/{PROJECT}/dashboards", body).code == code


def test_a_mask_that_names_no_field_is_refused(ask: Client) -> None:
    ask.done("POST", f"artifactregistry/v1/{LOCATION}/repositories", {"format": "DOCKER"}, repositoryId="images")

    path = f"artifactregistry/v1/{LOCATION}/repositories/images"
    assert "colour" in ask("PATCH", path, {"description": "x"}, updateMask="colour").message


def test_lists_come_in_pages(ask: Client) -> None:
    for index in range(5):
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": f"net-{index}"})

    seen: list[str] = []
    token: dict[str, str] = {}
    for _ in range(3):
        page = ask.done("GET", f"{COMPUTE}/global/networks", maxResults="2", **token)
        seen += [network["name"] for network in page["items"]]
        token = {"pageToken": page.get("nextPageToken", "")}
    assert seen == [f"net-{index}" for index in range(5)]
    assert token == {"pageToken": ""}
    assert ask("GET", f"{COMPUTE}/global/networks", pageToken="nonsense").code == 400


def test_a_filter_leaves_out_what_does_not_fit(ask: Client) -> None:
    for name in ("one", "two"):
        ask.done("POST", f"{COMPUTE}/global/networks", {"name": name})

    assert [
        network["name"] for network in ask.done("GET", f"{COMPUTE}/global/networks", filter='name = "two"')["items"]
    ] == ["two"]
    assert ask("GET", f"{COMPUTE}/global/networks", filter="((").code == 400


def test_ranges_of_one_network_do_not_overlap(ask: Client) -> None:
    ask.network()
    subnets = f"{COMPUTE}/regions/us-west4/subnetworks"
    body = {"name": "more", "network": "global/networks/net"}

    assert (
        "conflicts with existing subnetwork 'nodes'"
        in ask("POST", subnets, {**body, "ipCidrRange": "10.64.9.0/24"}).message
    )
    assert ask("POST", subnets, {**body, "ipCidrRange": "10.1.0.1/20"}).code == 400
    ask.done("POST", subnets, {**body, "ipCidrRange": "10.1.0.0/20"})


def test_networks_that_are_not_joined_may_have_the_same_range(ask: Client) -> None:
    ask.network()
    ask.done("POST", f"{COMPUTE}/global/networks", {"name": "gpu", "autoCreateSubnetworks": False})
    body = {"name": "gpu", "network": "global/networks/gpu", "ipCidrRange": "10.0.0.0/20"}

    ask.done("POST", f"{COMPUTE}/regions/us-central1/subnetworks", body)


def test_a_stale_fingerprint_is_refused(ask: Client) -> None:
    ask.network()
    path = f"{COMPUTE}/regions/us-central1/subnetworks/nodes"
    first = ask.done("GET", path)["fingerprint"]
    ask.done("PATCH", path, {"privateIpGoogleAccess": True, "fingerprint": first})

    assert ask("PATCH", path, {"privateIpGoogleAccess": False, "fingerprint": first}).code == 412
    assert ask.done("GET", path)["privateIpGoogleAccess"] is True


def test_a_protected_filestore_instance_stays(ask: Client) -> None:
    path = f"file/v1/{ZONE}/instances"
    ask.done("POST", path, {**INSTANCE, "deletionProtectionEnabled": True}, instanceId="homes")

    refused = ask("DELETE", f"{path}/homes")
    assert refused.body["error"]["status"] == "FAILED_PRECONDITION"
    ask.done("PATCH", f"{path}/homes", {"deletionProtectionEnabled": False}, updateMask="deletionProtectionEnabled")
    ask.done("DELETE", f"{path}/homes")


def test_a_custom_role_is_created_changed_and_deleted(ask: Client) -> None:
    path = f"iam/v1/projects/{PROJECT}/roles"
    role = {"title": "TensorBoard", "includedPermissions": ["a.b.get"]}
    created = ask.done("POST", path, {"roleId": "dev_vision_tensorboard", "role": role})
    assert created["name"] == f"projects/{PROJECT}/roles/dev_vision_tensorboard"
    assert ask("POST", path, {"roleId": "dev-vision", "role": role}).code == 400  # takes no dashes

    ask.done(
        "PATCH",
        f"{path}/dev_vision_tensorboard",
        {"includedPermissions": ["a.b.list"]},
        updateMask="includedPermissions",
    )
    assert ask.done("GET", f"{path}/dev_vision_tensorboard")["includedPermissions"] == ["a.b.list"]

    ask.done("DELETE", f"{path}/dev_vision_tensorboard")
    assert ask("GET", f"{path}/dev_vision_tensorboard").code == 404


@pytest.mark.parametrize(
    ("read", "write"),
    [
        (
            ("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:getIamPolicy"),
            ("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:setIamPolicy"),
        ),
        (
            ("GET", f"artifactregistry/v1/{LOCATION}/repositories/images:getIamPolicy"),
            ("POST", f"artifactregistry/v1/{LOCATION}/repositories/images:setIamPolicy"),
        ),
        (("GET", f"cloudkms/v1/{KEY}:getIamPolicy"), ("POST", f"cloudkms/v1/{KEY}:setIamPolicy")),
        (("GET", "storage/v1/b/example-lab-data/iam"), ("PUT", "storage/v1/b/example-lab-data/iam")),
        (
            (
                "POST",
                f"iam/v1/projects/{PROJECT}/serviceAccounts/jobs-account@{PROJECT}.iam.gserviceaccount.com:getIamPolicy",
            ),
            (
                "POST",
                f"iam/v1/projects/{PROJECT}/serviceAccounts/jobs-account@{PROJECT}.iam.gserviceaccount.com:setIamPolicy",
            ),
        ),
    ],
)
def test_policies_are_written_whole_and_only_onto_the_one_that_was_read(
    ask: Client, read: tuple[str, str], write: tuple[str, str]
) -> None:
    ask.done("POST", f"artifactregistry/v1/{LOCATION}/repositories", {"format": "DOCKER"}, repositoryId="images")
    ask.done("POST", "storage/v1/b", {"name": "example-lab-data"}, project=PROJECT)
    ask.done("POST", f"iam/v1/projects/{PROJECT}/serviceAccounts", {"accountId": "jobs-account"})

    def wrapped(policy: Json) -> Json:
        return policy if "storage" in write[1] else {"policy": policy}

    first = ask.done(*read)
    bindings = [{"role": "roles/viewer", "members": ["group:research@example.com"]}]
    ask.done(*write, wrapped({"bindings": bindings, "etag": first["etag"]}))

    assert ask.done(*read)["bindings"] == bindings
    assert ask(*write, wrapped({"bindings": [], "etag": first["etag"]})).code == 409
    assert ask.done(*read)["bindings"] == bindings


@pytest.mark.parametrize(
    "member",
    [
        "research@example.com",
        f"serviceAccount:nobody-here@{PROJECT}.iam.gserviceaccount.com",
        f"serviceAccount:{PROJECT}.svc.id.goog[team/runner]",
    ],
)
def test_a_member_that_cannot_be_is_refused(ask: Client, member: str) -> None:
    bindings = [{"role": "roles/viewer", "members": [member]}]
    path = f"cloudresourcemanager/v1/projects/{PROJECT}:setIamPolicy"

    assert ask("POST", path, {"policy": {"bindings": bindings}}).code == 400


def test_the_first_cluster_with_workload_identity_makes_the_projects_pool(ask: Client) -> None:
    ask.network()
    ask.cluster(workloadIdentityConfig={"workloadPool": f"{PROJECT}.svc.id.goog"})
    bindings = [{"role": "roles/viewer", "members": [f"serviceAccount:{PROJECT}.svc.id.goog[team/runner]"]}]

    ask.done("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:setIamPolicy", {"policy": {"bindings": bindings}})


def test_services_are_enabled_and_listed(ask: Client) -> None:
    names = f"serviceusage/v1/projects/{PROJECT}/services"
    before: Any = ask.done("GET", f"{names}/dns.googleapis.com")
    assert before["state"] == "DISABLED"

    operation = ask.done("POST", f"{names}/dns.googleapis.com:enable", {})
    assert ask.done("GET", f"serviceusage/v1/{operation['name']}")["done"] is True
    listed = ask.done("GET", names, filter="state:ENABLED", pageSize="200")["services"]
    assert "dns.googleapis.com" in [service["config"]["name"] for service in listed]


def test_a_service_agent_has_an_address_of_its_api(ask: Client) -> None:
    path = f"serviceusage/v1beta1/projects/{PROJECT}/services/container.googleapis.com:generateServiceIdentity"

    email = ask.done("POST", path)["response"]["email"]

    number = ask.done("GET", f"cloudresourcemanager/v1/projects/{PROJECT}")["projectNumber"]
    assert email == f"service-{number}@container-engine-robot.iam.gserviceaccount.com"


@pytest.mark.parametrize(("tier", "prefix"), [("BASIC_SSD", 29), ("ZONAL", 26), ("REGIONAL", 26), ("ENTERPRISE", 26)])
def test_an_instance_gets_a_range_of_its_tiers_size(ask: Client, tier: str, prefix: int) -> None:
    ask.network()
    place = LOCATION if tier in ("REGIONAL", "ENTERPRISE") else ZONE
    body = {"tier": tier, "fileShares": [{"name": "a", "capacityGb": "2560"}], "networks": [{"network": "net"}]}
    ask.done("POST", f"file/v1/{place}/instances", body, instanceId="homes")

    (network,) = ask.done("GET", f"file/v1/{place}/instances/homes")["networks"]
    assert network["reservedIpRange"].endswith(f"/{prefix}")


@pytest.mark.parametrize(
    ("fields", "reserved"),
    [({"reservedIpRange": "10.9.0.0/29"}, "10.9.0.0/29"), ({"connectMode": "PRIVATE_SERVICE_ACCESS"}, None)],
)
def test_a_range_is_only_invented_for_direct_peering_without_one(ask: Client, fields: Json, reserved: object) -> None:
    ask.network()
    shares = [{"name": "a", "capacityGb": "2560"}]
    body = {"tier": "BASIC_SSD", "fileShares": shares, "networks": [{"network": "net", **fields}]}
    ask.done("POST", f"file/v1/{ZONE}/instances", body, instanceId="homes")

    (network,) = ask.done("GET", f"file/v1/{ZONE}/instances/homes")["networks"]
    assert network.get("reservedIpRange") == reserved
