"""Filestore with its backups, and Managed Lustre by our own document, since Google publishes none."""

from __future__ import annotations

import pytest

from tests.local_google_cloud.client import LOCATION, PROJECT, ZONE, Client, Json
from training_platform.clients.google_services import lustre_address

INSTANCES = f"file/v1/{ZONE}/instances"
BACKUPS = f"file/v1/{LOCATION}/backups"
DR = f"backupdr/v1/{LOCATION}"


def instance(**share: object) -> Json:
    return {
        "tier": "ZONAL",
        "fileShares": [{"name": "a", "capacityGb": "1024", **share}],
        "networks": [{"network": "net"}],
    }


@pytest.fixture
def filed(ask: Client) -> Client:
    ask.enable(PROJECT, "backupdr", "servicenetworking")
    ask.network()
    ask.done("POST", INSTANCES, instance(), instanceId="homes")
    return ask


def backup(client: Client) -> str:
    body = {"sourceInstance": f"{ZONE}/instances/homes", "sourceFileShare": "a"}
    client.done("POST", BACKUPS, body, backupId="before")
    return f"{LOCATION}/backups/before"


def test_an_instance_starts_with_a_backup(filed: Client) -> None:
    name = backup(filed)
    filed.done("POST", INSTANCES, instance(sourceBackup=name), instanceId="restored")

    restored = filed.done("GET", f"{INSTANCES}/restored")
    assert restored["fileShares"][0]["sourceBackup"] == name
    assert restored["state"] == "READY"


def test_a_share_that_is_smaller_than_the_backup_is_refused(filed: Client) -> None:
    name = backup(filed)

    answer = filed("POST", INSTANCES, instance(sourceBackup=name, capacityGb="512"), instanceId="restored")
    assert answer.code == 400
    assert "of 1024 GiB" in answer.message


def test_a_missing_backup_is_refused(filed: Client) -> None:
    answer = filed("POST", INSTANCES, instance(sourceBackup=f"{LOCATION}/backups/none"), instanceId="restored")

    assert answer.code == 404


def planned(client: Client) -> None:
    body: Json = {"backupMinimumEnforcedRetentionDuration": "86400s"}
    client.done("POST", f"{DR}/backupVaults", body, backupVaultId="vault")
    body = {
        "resourceType": "file.googleapis.com/Instance", "backupVault": f"{LOCATION}/backupVaults/vault",
        "backupRules": [{"ruleId": "scheduled", "backupRetentionDays": 7}],
    }  # fmt: skip
    client.done("POST", f"{DR}/backupPlans", body, backupPlanId="plan")
    body = {
        "resourceType": "file.googleapis.com/Instance", "resource": f"{ZONE}/instances/homes",
        "backupPlan": f"{LOCATION}/backupPlans/plan",
    }  # fmt: skip
    client.done("POST", f"{DR}/backupPlanAssociations", body, backupPlanAssociationId="homes")


def test_an_instance_under_a_plan_is_backed_up_and_restored(filed: Client) -> None:
    planned(filed)
    tie = f"{DR}/backupPlanAssociations/homes"
    filed.done("POST", f"{tie}:triggerBackup", {"ruleId": "scheduled"})
    source = filed.done("GET", tie)["dataSource"]

    (backup_record,) = filed.cloud.store.children(f"backupdr/{source}/backups")
    body = instance(sourceBackupdrBackup=backup_record.body["name"])
    filed.done("POST", f"file/v1beta1/{ZONE}/instances", body, instanceId="restored")
    assert filed.done("GET", f"{INSTANCES}/restored")["state"] == "READY"


def test_a_plan_in_use_and_a_vault_with_backups_stay(filed: Client) -> None:
    planned(filed)
    filed.done("POST", f"{DR}/backupPlanAssociations/homes:triggerBackup", {"ruleId": "scheduled"})

    assert filed("DELETE", f"{DR}/backupPlans/plan").code == 400
    assert filed("DELETE", f"{DR}/backupVaults/vault").code == 400
    filed.done("DELETE", f"{DR}/backupPlanAssociations/homes")
    filed.done("DELETE", f"{DR}/backupPlans/plan")
    assert filed("GET", f"{DR}/backupPlans/plan").code == 404


def test_a_plan_that_keeps_backups_for_less_than_the_vault_locks_them_is_refused(filed: Client) -> None:
    body: Json = {"backupMinimumEnforcedRetentionDuration": f"{2 * 86400}s"}
    filed.done("POST", f"{DR}/backupVaults", body, backupVaultId="vault")
    body = {"resourceType": "file.googleapis.com/Instance", "backupVault": f"{LOCATION}/backupVaults/vault"}
    rules = [{"ruleId": "scheduled", "backupRetentionDays": 1}]

    assert filed("POST", f"{DR}/backupPlans", {**body, "backupRules": rules}, backupPlanId="plan").code == 400


def test_a_snapshot_of_a_basic_tier_is_refused(filed: Client) -> None:
    body = {**instance(capacityGb="1024"), "tier": "BASIC_HDD"}
    filed.done("POST", INSTANCES, body, instanceId="basic")

    assert "do not support snapshots" in filed("POST", f"{INSTANCES}/basic/snapshots", {}, snapshotId="now").message
    filed.done("POST", f"{INSTANCES}/homes/snapshots", {}, snapshotId="now")


def test_private_service_access_is_one_connection_of_a_network_with_its_ranges(filed: Client) -> None:
    network = f"projects/{PROJECT}/global/networks/net"
    connections = "servicenetworking/v1/services/servicenetworking.googleapis.com/connections"
    body: Json = {"network": network, "reservedPeeringRanges": ["services"]}
    assert filed("POST", connections, body).code == 404
    address = {"name": "services", "purpose": "VPC_PEERING", "address": "10.200.0.0", "prefixLength": 16}
    filed.done("POST", f"compute/v1/projects/{PROJECT}/global/addresses", {**address, "addressType": "INTERNAL"})

    filed.done("POST", connections, body)

    (connection,) = filed.done("GET", connections, network=network)["connections"]
    assert connection["reservedPeeringRanges"] == ["services"]
    assert filed("POST", connections, body).code == 409
    filed.done("POST", f"{connections}/servicenetworking-googleapis-com", {"consumerNetwork": network})
    assert filed.done("GET", connections, network=network)["connections"] == []


LUSTRE_INSTANCES = f"lustre/v1/{ZONE}/instances"
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
    client.done("POST", LUSTRE_INSTANCES, {**BODY, **changes}, instanceId="scratch")
    return client.done("GET", f"{LUSTRE_INSTANCES}/scratch")


def test_an_instance_is_created_listed_and_deleted(joined: Client) -> None:
    created = create(joined)

    assert (created["state"], created["name"]) == ("ACTIVE", f"{ZONE}/instances/scratch")
    assert created["mountPoint"].endswith(".2@tcp:/lustre")
    assert [listed["name"] for listed in joined.done("GET", LUSTRE_INSTANCES)["instances"]] == [created["name"]]
    joined.done("DELETE", f"{LUSTRE_INSTANCES}/scratch")
    assert joined("GET", f"{LUSTRE_INSTANCES}/scratch").code == 404


def test_a_network_without_private_service_access_is_refused(ask: Client) -> None:
    ask.network()
    ask.enable(PROJECT, "lustre")

    answer = ask("POST", LUSTRE_INSTANCES, BODY, instanceId="scratch")
    assert answer.code == 400
    assert "Private services access" in answer.message


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("filesystem", "other", "cannot be changed"),
        ("perUnitStorageThroughput", "500", "cannot be changed"),
        ("capacityGib", "8999", "cannot be reduced"),
    ],
)
def test_a_change_that_google_cannot_make_is_refused(joined: Client, field: str, value: str, message: str) -> None:
    before = create(joined)
    answer = joined("PATCH", f"{LUSTRE_INSTANCES}/scratch", {field: value}, updateMask=field)

    assert answer.code == 400
    assert message in answer.message
    assert joined.done("GET", f"{LUSTRE_INSTANCES}/scratch") == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacityGib": "10000"}, "1000 MB/s per TiB does not support 10,000 GiB"),
        ({"filesystem": "ninechars"}, "at most 8"),
        ({"capacity": 1}, 'Unknown name "capacity"'),
        ({"accessRulesOptions": {"defaultSquashMode": "SOME"}}, "accessRulesOptions.defaultSquashMode"),
    ],
)
def test_what_documents_and_rules_refuse_is_refused(joined: Client, changes: Json, message: str) -> None:
    answer = joined("POST", LUSTRE_INSTANCES, {**BODY, **changes}, instanceId="scratch")

    assert answer.code == 400
    assert message in answer.message


@pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")
def test_google_s_client_reads_its_address_by_the_same_document(joined: Client, port: int) -> None:
    created = create(joined)

    address = lustre_address(PROJECT, "us-central1-a", "scratch", f"http://127.0.0.1:{port}/lustre/")
    assert created["mountPoint"] == f"{address}@tcp:/lustre"
