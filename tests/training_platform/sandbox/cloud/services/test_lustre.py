"""Managed Lustre in the local cloud: by a document of ours, as Google ships none."""

from __future__ import annotations

import pytest

from tests.training_platform.sandbox.cloud.conftest import PROJECT, ZONE, Client, Json
from training_platform.clients.google_services import lustre_address

INSTANCES = f"lustre/v1/{ZONE}/instances"
BODY = {
    "network": f"projects/{PROJECT}/global/networks/net",
    "filesystem": "lustre",
    "capacityGib": "9000",
    "perUnitStorageThroughput": "1000",
}


@pytest.fixture
def joined(ask: Client) -> Client:
    ask.network()
    ask.private_services()
    return ask


def create(client: Client, **changes: object) -> Json:
    client.done("POST", INSTANCES, {**BODY, **changes}, instanceId="scratch")
    return client.done("GET", f"{INSTANCES}/scratch")


def test_an_instance_is_created_listed_and_deleted(joined: Client) -> None:
    made = create(joined)

    assert (made["state"], made["name"]) == ("ACTIVE", f"{ZONE}/instances/scratch")
    assert made["mountPoint"].endswith(".2@tcp:/lustre")
    assert [each["name"] for each in joined.done("GET", INSTANCES)["instances"]] == [made["name"]]
    joined.done("DELETE", f"{INSTANCES}/scratch")
    assert joined("GET", f"{INSTANCES}/scratch").code == 404


def test_a_network_without_private_service_access_is_refused(ask: Client) -> None:
    ask.network()
    ask.enable(PROJECT, "lustre")

    asked = ask("POST", INSTANCES, BODY, instanceId="scratch")
    assert asked.code == 400
    assert "Private services access" in asked.message


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("filesystem", "other", "cannot be changed"),
        ("perUnitStorageThroughput", "500", "cannot be changed"),
        ("capacityGib", "8999", "cannot be reduced"),
    ],
)
def test_what_google_cannot_change_is_refused(joined: Client, field: str, value: str, said: str) -> None:
    before = create(joined)
    asked = joined("PATCH", f"{INSTANCES}/scratch", {field: value}, updateMask=field)

    assert asked.code == 400
    assert said in asked.message
    assert joined.done("GET", f"{INSTANCES}/scratch") == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"capacityGib": "10000"}, "1000 MB/s per TiB does not come with 10,000 GiB"),
        ({"filesystem": "ninechars"}, "at most 8"),
        ({"capacity": 1}, 'Unknown name "capacity"'),
        ({"accessRulesOptions": {"defaultSquashMode": "SOME"}}, "accessRulesOptions.defaultSquashMode"),
    ],
)
def test_what_documents_and_rules_refuse_is_refused(joined: Client, changes: Json, said: str) -> None:
    asked = joined("POST", INSTANCES, {**BODY, **changes}, instanceId="scratch")

    assert asked.code == 400
    assert said in asked.message


@pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")
def test_google_s_client_reads_its_address_by_the_same_document(joined: Client, port: int) -> None:
    made = create(joined)

    address = lustre_address(PROJECT, "us-central1-a", "scratch", f"http://127.0.0.1:{port}/lustre/")
    assert made["mountPoint"] == f"{address}@tcp:/lustre"
