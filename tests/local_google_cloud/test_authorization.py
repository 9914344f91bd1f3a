from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest

from local_google_cloud.http.server import make_app
from local_google_cloud.state.authorization import Caller, caller_of
from local_google_cloud.state.cloud import CloudSettings
from local_google_cloud.state.questions import Judge
from tests.local_google_cloud.client import LOCATION, PROJECT, Client
from training_platform.clients.google_api import GoogleError, local_identity
from training_platform.clients.google_services import CloudStorage

ADA = "user:ada@example.com"
TEAM = "group:vision@example.com"
POLICY = f"cloudresourcemanager/v1/projects/{PROJECT}"
CLUSTERS = f"container/v1/{LOCATION}/clusters"
JOBS = f"aiplatform/v1/{LOCATION}/customJobs"
NETWORKS = f"compute/v1/projects/{PROJECT}/global/networks"
ONLY = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly(['roles/storage.objectViewer'])"


def grant(client: Client, member: str, role: str, where: str = POLICY, condition: str = "") -> None:
    """Add a grant to the policy, as the owner."""
    if where.startswith("storage/"):
        policy = client.done("GET", f"{where}/iam")
    else:
        policy = client.done("POST", f"{where}:getIamPolicy", {})
    binding: dict[str, Any] = {"role": role, "members": [member]}
    if condition:
        binding["condition"] = {"title": "limited", "expression": condition}
    policy["bindings"] = [*policy.get("bindings", ()), binding]
    if where.startswith("storage/"):
        client.done("PUT", f"{where}/iam", {"bindings": policy["bindings"]})
    else:
        client.done("POST", f"{where}:setIamPolicy", {"policy": policy})


@pytest.fixture
def bucket(ask: Client) -> str:
    ask.done("POST", "storage/v1/b", {"name": "data"}, project=PROJECT)
    return "storage/v1/b/data"


def account(ask: Client, name: str) -> str:
    ask.done("POST", f"iam/v1/projects/{PROJECT}/serviceAccounts", {"accountId": name})
    return f"{name}@{PROJECT}.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        ({"authorization": "Bearer as:user:ada@example.com"}, Caller(ADA)),
        ({"authorization": f"Bearer as:{ADA}", "x-goog-user-project": "p"}, Caller(ADA, "p")),
        ({"authorization": "Bearer dummy"}, None),
        ({}, None),
    ],
)
def test_a_token_names_the_caller_and_any_other_is_the_owners(headers: dict[str, str], caller: Caller | None) -> None:
    assert caller_of(headers) == caller


def test_without_a_grant_nothing_is_allowed_and_the_owner_is_never_asked(ask: Client) -> None:
    assert ask("GET", CLUSTERS).code == 200

    answer = ask.as_member(ADA)("GET", CLUSTERS)

    assert (answer.code, answer.body["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert answer.message == f'Required "container.clusters.list" permission(s) for "{LOCATION}/clusters".'


def test_a_grant_in_the_project_lets_a_caller_in(ask: Client) -> None:
    grant(ask, ADA, "roles/container.clusterViewer")

    assert ask.as_member(ADA)("GET", CLUSTERS).code == 200
    assert ask.as_member(TEAM)("GET", CLUSTERS).code == 403


def test_a_member_of_a_group_has_what_the_group_has(ask: Client) -> None:
    grant(ask, "group:everybody@example.com", "roles/container.clusterViewer")
    groups = {"everybody@example.com": [TEAM], "vision@example.com": [ADA]}
    ask.cloud.settings = CloudSettings(groups=groups)

    assert ask.as_member(ADA)("GET", CLUSTERS).code == 200
    assert ask.as_member("user:eve@example.com")("GET", CLUSTERS).code == 403


def test_a_refused_change_changes_nothing(ask: Client) -> None:
    grant(ask, ADA, "roles/compute.networkUser")
    answer = ask.as_member(ADA)("POST", NETWORKS, {"name": "net", "autoCreateSubnetworks": False})

    assert answer.code == 403
    assert answer.message == f"Required 'compute.networks.create' permission for 'projects/{PROJECT}/global/networks'"
    assert answer.body["error"]["errors"][0]["reason"] == "forbidden"
    assert ask("GET", f"{NETWORKS}/net").code == 404


def test_a_firewall_asks_for_the_policy_of_its_network(ask: Client) -> None:
    ask.network()
    permissions = ["compute.firewalls.create", "compute.firewalls.get"]
    role = {"roleId": "firewalls", "role": {"title": "Firewalls", "includedPermissions": permissions}}
    ask.done("POST", f"iam/v1/projects/{PROJECT}/roles", role)
    grant(ask, ADA, f"projects/{PROJECT}/roles/firewalls")
    path = f"compute/v1/projects/{PROJECT}/global/firewalls"
    body = {"name": "ssh", "network": f"projects/{PROJECT}/global/networks/net", "allowed": [{"IPProtocol": "tcp"}]}

    assert "'compute.networks.updatePolicy'" in ask.as_member(ADA)("POST", path, body).message

    ask.done("PATCH", f"iam/v1/projects/{PROJECT}/roles/firewalls", {
        "includedPermissions": [*permissions, "compute.networks.updatePolicy"],
    })  # fmt: skip
    assert ask.as_member(ADA)("POST", path, body).code == 200


def test_objects_are_judged_by_their_bucket(ask: Client, bucket: str) -> None:
    grant(ask, TEAM, "roles/storage.objectViewer", bucket)
    member = ask.as_member(TEAM)

    assert member("GET", f"{bucket}/o").code == 200
    refused = member("POST", f"{bucket}/o", None, name="source.tar.gz")
    assert refused.code == 403
    assert refused.message == (
        "vision@example.com does not have storage.objects.create access to the Google Cloud Storage object. "
        "Permission 'storage.objects.create' denied on resource (or it may not exist)."
    )

    grant(ask, TEAM, "roles/storage.objectCreator", bucket)
    assert member("POST", f"{bucket}/o", None, name="source.tar.gz").code == 200
    assert member("GET", bucket).code == 403  # objectUser and objectCreator have no storage.buckets.get


def test_a_job_asks_for_the_account_that_it_runs_as(ask: Client) -> None:
    email = account(ask, "lab-vision-jobs")
    grant(ask, ADA, "roles/aiplatform.user")
    spec = {"machineSpec": {"machineType": "n2-standard-4"}, "replicaCount": "1", "containerSpec": {"imageUri": "x"}}
    body = {"displayName": "one", "jobSpec": {"workerPoolSpecs": [spec], "serviceAccount": email}}

    refused = ask.as_member(ADA)("POST", JOBS, body)
    message = f"Permission 'iam.serviceAccounts.actAs' denied on service account {email} (or it may not exist)."
    assert (refused.code, refused.message) == (403, message)

    grant(ask, ADA, "roles/iam.serviceAccountUser", f"iam/v1/projects/{PROJECT}/serviceAccounts/{email}")
    assert ask.as_member(ADA)("POST", JOBS, body).code == 200


def test_the_agent_of_vertex_ai_needs_the_right_to_an_attachment(ask: Client) -> None:
    grant(ask, ADA, "roles/aiplatform.user")
    attachment = f"projects/{PROJECT}/regions/us-central1/networkAttachments/vertex"
    spec = {"machineSpec": {"machineType": "n2-standard-4"}, "replicaCount": "1", "containerSpec": {"imageUri": "x"}}
    job = {"workerPoolSpecs": [spec], "pscInterfaceConfig": {"networkAttachment": attachment}}
    agent = f"service-{Judge().project_number(PROJECT)}@gcp-sa-aiplatform.iam.gserviceaccount.com"

    refused = ask.as_member(ADA)("POST", JOBS, {"displayName": "one", "jobSpec": job})
    assert refused.code == 403
    assert "'compute.networkAttachments.get'" in refused.message
    assert agent in refused.message

    grant(ask, f"serviceAccount:{agent}", "roles/compute.networkAdmin")
    assert ask.as_member(ADA)("POST", JOBS, {"displayName": "one", "jobSpec": job}).code == 200


def test_a_pod_acts_as_the_account_that_lets_it(ask: Client, bucket: str) -> None:
    email = account(ask, "lab-vision-jobs")
    ask.network()
    ask.cluster(workloadIdentityConfig={"workloadPool": f"{PROJECT}.svc.id.goog"})
    pod = f"serviceAccount:{PROJECT}.svc.id.goog[vision/jobs]"
    grant(ask, f"serviceAccount:{email}", "roles/storage.objectUser", bucket)

    assert ask.as_member(pod)("GET", f"{bucket}/o").code == 403

    grant(ask, pod, "roles/iam.workloadIdentityUser", f"iam/v1/projects/{PROJECT}/serviceAccounts/{email}")
    assert ask.as_member(pod)("GET", f"{bucket}/o").code == 200


def test_a_condition_limits_the_roles_that_a_deployer_grants(ask: Client) -> None:
    grant(ask, ADA, "roles/resourcemanager.projectIamAdmin", condition=ONLY)
    deployer = ask.as_member(ADA)

    grant(deployer, TEAM, "roles/storage.objectViewer")
    policy = deployer.done("POST", f"{POLICY}:getIamPolicy", {})
    policy["bindings"].append({"role": "roles/owner", "members": [ADA]})
    refused = deployer("POST", f"{POLICY}:setIamPolicy", {"policy": policy})

    assert refused.code == 403
    assert "'resourcemanager.projects.setIamPolicy'" in refused.message
    held = ask.done("POST", f"{POLICY}:getIamPolicy", {})["bindings"]
    assert [binding["role"] for binding in held if TEAM in binding["members"]] == ["roles/storage.objectViewer"]
    assert not [binding for binding in held if binding["role"] == "roles/owner"]


def test_grants_of_the_set_up_survive_a_deployers_read_change_and_write(ask: Client) -> None:
    grant(ask, ADA, "roles/resourcemanager.projectIamAdmin", condition=ONLY)
    grant(ask.as_member(ADA), TEAM, "roles/storage.objectViewer")

    bindings = ask.done("POST", f"{POLICY}:getIamPolicy", {})["bindings"]
    assert {"title": "limited", "expression": ONLY} in [binding.get("condition") for binding in bindings]


def test_a_condition_on_time_ends_a_grant(ask: Client, time: list[float]) -> None:
    grant(ask, ADA, "roles/container.clusterViewer", condition='request.time < timestamp("2027-01-16T00:00:00Z")')
    assert ask.as_member(ADA)("GET", CLUSTERS).code == 200

    time[0] += 10 * 86400
    assert ask.as_member(ADA)("GET", CLUSTERS).code == 403


def test_tested_permissions_are_those_that_the_member_has(ask: Client, bucket: str) -> None:
    names = ["storage.objects.get", "storage.objects.create"]
    grant(ask, TEAM, "roles/storage.objectViewer", bucket)
    member = ask.as_member(TEAM)

    assert ask.done("POST", f"{POLICY}:testIamPermissions", {"permissions": names})["permissions"] == names
    assert member.done("POST", f"{POLICY}:testIamPermissions", {"permissions": names})["permissions"] == []
    query = [("permissions", name) for name in names]
    path = "v1/b/data/iam/testPermissions"
    _, held = member.cloud.handle("storage", "GET", path, query, None, caller=member.caller)
    assert held["permissions"] == ["storage.objects.get"]


def test_a_quota_project_asks_for_its_use(ask: Client) -> None:
    grant(ask, ADA, "roles/container.clusterViewer")
    refused = ask.as_member(ADA, PROJECT)("GET", CLUSTERS)

    assert refused.code == 403
    assert refused.message.startswith(f"Caller does not have required permission to use project {PROJECT}. Grant the")
    assert refused.body["error"]["details"][0]["reason"] == "USER_PROJECT_DENIED"

    grant(ask, ADA, "roles/serviceusage.serviceUsageConsumer")
    assert ask.as_member(ADA, PROJECT)("GET", CLUSTERS).code == 200


def test_cloud_quotas_asks_people_for_a_quota_project_and_for_their_rights(ask: Client) -> None:
    path = f"cloudquotas/v1/projects/{PROJECT}/locations/global/services/compute.googleapis.com/quotaInfos"
    reader = f"serviceAccount:{account(ask, 'quota-reader')}"
    grant(ask, ADA, "roles/serviceusage.serviceUsageConsumer")
    grant(ask, reader, "roles/cloudquotas.viewer")

    assert "requires a quota project" in ask.as_member(ADA)("GET", path).message
    assert "'cloudquotas.quotas.get'" in ask.as_member(ADA, PROJECT)("GET", path).message
    assert ask.as_member(reader)("GET", path).code == 200


def test_entries_of_the_log_are_judged_by_the_resources_of_the_body(ask: Client) -> None:
    body = {"resourceNames": [f"projects/{PROJECT}"]}

    refused = ask.as_member(ADA)("POST", "logging/v2/entries:list", body)
    assert refused.code == 403
    assert "'logging.logEntries.list'" in refused.message

    grant(ask, ADA, "roles/logging.viewer")
    assert ask.as_member(ADA)("POST", "logging/v2/entries:list", body).code != 403


def test_an_unknown_method_is_not_let_through(ask: Client) -> None:
    answer = ask.as_member(ADA)("GET", f"compute/v1/projects/{PROJECT}/zones/us-central1-a/instances")

    assert answer.code == 501
    assert "compute.instances.list" in answer.message


def test_our_clients_name_the_member_to_a_local_cloud_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert local_identity() == {}

    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.real")
    assert local_identity() == {}

    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", f"as:{ADA}")
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", PROJECT)
    assert caller_of({name.lower(): value for name, value in local_identity().items()}) == Caller(ADA, PROJECT)


def test_an_upload_is_never_in_memory_as_a_whole(ask: Client, bucket: str) -> None:
    part = {"type": "http.request", "body": bytes(2**20), "more_body": True}
    parts = iter([part] * 100)
    answers: list[Any] = []

    async def receive() -> Any:
        return next(parts, {"type": "http.request"})

    async def send(message: Any) -> None:
        answers.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/storage/upload/storage/v1/b/data/o", "query_string": b"name=large",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/gzip")],
    }  # fmt: skip

    async def upload() -> None:
        await make_app(ask.cloud)(scope, receive, send)

    tracemalloc.start()
    asyncio.run(upload())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert json.loads(answers[1]["body"])["size"] == str(100 * 2**20)
    assert peak < 20 * 2**20


def test_an_upload_over_http_is_judged_by_its_bucket(
    ask: Client, bucket: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", f"as:{TEAM}")
    storage = CloudStorage(f"http://127.0.0.1:{port}/storage/")

    with pytest.raises(GoogleError, match=r"vision@example\.com does not have storage\.objects\.create access"):
        storage.put("gs://data/source.tar.gz", b"source")

    grant(ask, TEAM, "roles/storage.objectCreator", bucket)
    storage.put("gs://data/source.tar.gz", b"source")
