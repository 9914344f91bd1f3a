"""What a Filestore instance has beside itself: exports, snapshots, backups, and the way into the VPC."""

from __future__ import annotations

from typing import Any

from modules.network import Network, NetworkArgs
from modules.storage import FilestoreInstance, FilestoreInstanceArgs
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.storage import FilestoreSpec
from training_platform.resources import register
from training_platform.resources.scope import Scope

SCOPE = Scope(
    environment="prod", team=None, project="example-train-prod", labels={"environment": "prod"},
    deletion_protection=True,
)  # fmt: skip
BACKUP = "projects/example-train-prod/locations/us-central1/backups/before"
VAULTED = "projects/example-train-prod/locations/us-central1/backupVaults/v/dataSources/d/backups/b"


def deploy(services_range: str | None = None, **fields: Any) -> Plan:
    spec = FilestoreSpec.model_validate({"location": "us-central1-a", "capacity_gib": 2560, **fields}, strict=False)

    def program() -> None:
        network = Network("network", NetworkArgs(scope=SCOPE, regions=(), services_range=services_range))
        FilestoreInstance(
            "filestore-homes",
            FilestoreInstanceArgs(
                scope=SCOPE, key="homes", spec=spec, network=network.network_id, services=network.services,
                services_range=network.services_range,
            ),
        )  # fmt: skip

    return record(program, project="training-platform", stack_name="prod")


def test_exports_reach_the_share() -> None:
    exports = [
        {"ranges": ["10.0.0.0/20"]},
        {"ranges": ["10.1.0.0/20"], "access": "read-only", "squash": "root", "anonymous_id": 1000},
    ]
    share = deploy(exports=exports).one(register.FILESTORE).inputs["fileShares"]

    assert share["nfsExportOptions"] == [
        {"ipRanges": ["10.0.0.0/20"], "accessMode": "READ_WRITE", "squashMode": "NO_ROOT_SQUASH"},
        {
            "ipRanges": ["10.1.0.0/20"], "accessMode": "READ_ONLY", "squashMode": "ROOT_SQUASH",
            "anonUid": 1000, "anonGid": 1000,
        },
    ]  # fmt: skip


def test_a_backup_is_named_by_where_it_is_kept() -> None:
    plain, vaulted = (deploy(restore_from=each).one(register.FILESTORE).inputs for each in (BACKUP, VAULTED))

    assert plain["fileShares"] == {"name": "share", "capacityGb": 2560, "sourceBackup": BACKUP}
    assert vaulted["fileShares"] == {"name": "share", "capacityGb": 2560, "sourceBackupdrBackup": VAULTED}


def test_an_instance_of_one_team_is_billed_to_it() -> None:
    assert deploy(team="vision").one(register.FILESTORE).inputs["labels"] == {"environment": "prod", "team": "vision"}


def test_private_service_access_comes_before_the_instance_that_joins_by_it() -> None:
    plan = deploy("10.200.0.0/16", connection="private-service-access")
    instance, connection = plan.one(register.FILESTORE), plan.one(register.SERVICE_CONNECTION)

    assert instance.inputs["networks"][0]["connectMode"] == "PRIVATE_SERVICE_ACCESS"
    assert instance.inputs["networks"][0]["reservedIpRange"] == "prod-services"
    assert (connection.type, connection.name) in instance.options["dependsOn"]
    assert plan.one(register.GLOBAL_ADDRESS).inputs["prefixLength"] == 16


def test_another_instance_of_that_vpc_joins_it_directly() -> None:
    instance = deploy("10.200.0.0/16").one(register.FILESTORE)

    assert instance.inputs["networks"][0]["connectMode"] == "DIRECT_PEERING"
    assert "reservedIpRange" not in instance.inputs["networks"][0]
    assert not [kind for kind, _ in instance.options["dependsOn"] if kind == register.SERVICE_CONNECTION]


def test_backups_are_a_vault_a_plan_and_what_ties_the_instance_to_it() -> None:
    plan = deploy(backups={"weekdays": ["SUNDAY"], "keep_days": 8, "locked_days": 3})
    vault, rules = plan.one(register.BACKUP_VAULT), plan.one(register.BACKUP_PLAN).inputs["backupRules"]

    assert vault.inputs["backupMinimumEnforcedRetentionDuration"] == f"{3 * 86400}s"
    assert vault.inputs["location"] == "us-central1"
    assert rules[0]["backupRetentionDays"] == 8
    assert rules[0]["standardSchedule"] == {
        "recurrenceType": "WEEKLY", "daysOfWeeks": ["SUNDAY"], "timeZone": "UTC",
        "backupWindow": {"startHourOfDay": 0, "endHourOfDay": 6},
    }  # fmt: skip
    association = plan.one(register.BACKUP_PLAN_ASSOCIATION)
    assert association.inputs["resourceType"] == "file.googleapis.com/Instance"
    assert association.options["replaceOnChanges"] == ["backupPlan", "resource"]


def test_an_instance_without_them_has_no_backups_and_no_snapshots() -> None:
    planned = {each.type for each in deploy().resources}

    assert not planned & {register.BACKUP_VAULT, register.BACKUP_PLAN, register.FILESTORE_SNAPSHOT}


def test_each_snapshot_has_its_name() -> None:
    plan = deploy(snapshots=["before", "after"])

    names = [each.inputs["name"] for each in plan.resources if each.type == register.FILESTORE_SNAPSHOT]
    assert names == ["before", "after"]
