"""A Filestore instance is backed up, and another starts with what the backup holds."""

from __future__ import annotations

import pytest

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, ZONE, Client, Json

INSTANCES, BACKUPS = f"file/v1/{ZONE}/instances", f"file/v1/{LOCATION}/backups"
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

    asked = filed("POST", INSTANCES, instance(sourceBackup=name, capacityGb="512"), instanceId="restored")
    assert asked.code == 400
    assert "of 1024 GiB" in asked.message


def test_a_backup_that_is_not_there_is_refused(filed: Client) -> None:
    asked = filed("POST", INSTANCES, instance(sourceBackup=f"{LOCATION}/backups/none"), instanceId="restored")

    assert asked.code == 404


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

    (made,) = filed.cloud.store.children(f"backupdr/{source}/backups")
    body = instance(sourceBackupdrBackup=made.body["name"])
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

    (found,) = filed.done("GET", connections, network=network)["connections"]
    assert found["reservedPeeringRanges"] == ["services"]
    assert filed("POST", connections, body).code == 409
    filed.done("POST", f"{connections}/servicenetworking-googleapis-com", {"consumerNetwork": network})
    assert filed.done("GET", connections, network=network)["connections"] == []
