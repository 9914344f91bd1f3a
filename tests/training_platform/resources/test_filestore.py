"""What a Filestore instance has beside itself: exports, snapshots, backups, and the way into the VPC."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi_gcp.filestore import outputs

from tests.support.plans import PlannedStack, composed
from training_platform.config.data_sets import reaches
from training_platform.config.model.cluster import ClusterSpec, SubnetSpec
from training_platform.config.model.storage import FilestoreSpec
from training_platform.resources import resource_types
from training_platform.resources.filestore import filestore_address, filestore_resources
from training_platform.resources.network import NetworkParts, network_resources
from training_platform.resources.plan import Component
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import UNKNOWN

INSTANCE = "gcp:filestore/instance:Instance"
LABELS = {"environment": "prod", "managed-by": "training-platform", "cost-center": "ml"}
NETWORK = "projects/example-train-prod/global/networks/prod"


def deploy(*, protected: bool = True, **fields: Any) -> PlannedStack:
    spec = FilestoreSpec(**{"location": "us-central1-a", "tier": "ZONAL", "capacity_gib": 2560, **fields})
    scope = Scope(
        environment="prod", team=None, project="example-train-prod", labels=LABELS, deletion_protection=protected
    )

    return composed(lambda into: filestore_resources(into, "homes", spec, scope, network=NETWORK), "filestore-homes")


def test_the_stack_file_decides_what_the_instance_is() -> None:
    instance = deploy().one(INSTANCE, "filestore-homes-instance")

    assert instance.inputs == {
        "name": "prod-homes",
        "project": "example-train-prod",
        "location": "us-central1-a",
        "tier": "ZONAL",
        "protocol": "NFS_V3",
        "fileShares": {"name": "share", "capacityGb": 2560},
        "networks": [{"network": NETWORK, "modes": ["MODE_IPV4"], "connectMode": "DIRECT_PEERING"}],
        "labels": LABELS,
        "deletionProtectionEnabled": True,
        "deletionProtectionReason": "deletion_protection of stack prod",
    }


def test_google_cloud_picks_the_address_range_where_none_is_given() -> None:
    assert "reservedIpRange" not in deploy().one(INSTANCE).inputs["networks"][0]


def test_an_instance_keeps_its_files_unless_its_stack_is_unprotected() -> None:
    instance = deploy(protected=False).one(INSTANCE)

    assert deploy().one(INSTANCE).options["protect"] is True
    assert "protect" not in instance.options
    assert instance.inputs["deletionProtectionEnabled"] is False
    assert "deletionProtectionReason" not in instance.inputs


def test_an_instance_is_replaced_under_another_name_alone_and_gives_its_own_free_first() -> None:
    options = deploy(reserved_range="10.9.0.0/24").one(INSTANCE).options

    assert options["ignoreChanges"] == ["networks[0].reservedIpRange"]
    assert options["replaceOnChanges"] == ["name"]
    assert options["deleteBeforeReplace"] is True
    assert options["customTimeouts"] == {"create": "30m"}  # else the provider retries for days


def test_all_but_the_address_is_known_before_the_instance_exists() -> None:
    assert deploy().outputs["value"] == ["prod-homes", UNKNOWN]


def test_the_first_address_of_an_instance_that_exists_is_what_clients_mount() -> None:
    networks = [outputs.InstanceNetwork(modes=["MODE_IPV4"], network=NETWORK, ip_addresses=["10.9.0.2", "10.9.0.3"])]

    assert filestore_address(networks, "projects/p/locations/l/instances/i") == "10.9.0.2"


def test_an_instance_without_address_has_an_empty_one() -> None:
    assert filestore_address([outputs.InstanceNetwork(modes=["MODE_IPV4"], network=NETWORK)], "i") == ""


@pytest.mark.parametrize(
    ("cluster", "reached"), [("us-central1", True), ("us-central1-c", True), ("us-west4", False), ("us-west4-a", False)]
)
def test_an_instance_reaches_the_clusters_of_its_region(cluster: str, reached: bool) -> None:
    subnet = SubnetSpec(nodes="10.0.0.0/20", pods="10.1.0.0/16", services="10.2.0.0/20")
    spec = FilestoreSpec(location="us-central1-a", capacity_gib=1024)

    assert reaches(spec, ClusterSpec(location=cluster, subnet=subnet)) is reached


SCOPE = Scope(
    environment="prod", team=None, project="example-train-prod", labels={"environment": "prod"},
    deletion_protection=True,
)  # fmt: skip
BACKUP = "projects/example-train-prod/locations/us-central1/backups/before"
VAULTED = "projects/example-train-prod/locations/us-central1/backupVaults/v/dataSources/d/backups/b"


def deploy_backups(services_range: str | None = None, **fields: Any) -> PlannedStack:
    spec = FilestoreSpec.model_validate({"location": "us-central1-a", "capacity_gib": 2560, **fields}, strict=False)

    def compose(into: Component) -> None:
        network = network_resources("network", SCOPE, NetworkParts(regions=(), services_range=services_range), into)
        filestore_resources(
            into,
            "homes",
            spec,
            SCOPE,
            network=network.network_id,
            services=network.services,
            services_range=network.services_range,
        )

    return composed(compose)


def test_exports_reach_the_share() -> None:
    exports = [
        {"ranges": ["10.0.0.0/20"]},
        {"ranges": ["10.1.0.0/20"], "access": "read-only", "squash": "root", "anonymous_id": 1000},
    ]
    share = deploy_backups(exports=exports).one(resource_types.FILESTORE).inputs["fileShares"]

    assert share["nfsExportOptions"] == [
        {"ipRanges": ["10.0.0.0/20"], "accessMode": "READ_WRITE", "squashMode": "NO_ROOT_SQUASH"},
        {
            "ipRanges": ["10.1.0.0/20"], "accessMode": "READ_ONLY", "squashMode": "ROOT_SQUASH",
            "anonUid": 1000, "anonGid": 1000,
        },
    ]  # fmt: skip


def test_a_backup_is_named_by_where_it_is_kept() -> None:
    plain, vaulted = (
        deploy_backups(restore_from=backup).one(resource_types.FILESTORE).inputs for backup in (BACKUP, VAULTED)
    )

    assert plain["fileShares"] == {"name": "share", "capacityGb": 2560, "sourceBackup": BACKUP}
    assert vaulted["fileShares"] == {"name": "share", "capacityGb": 2560, "sourceBackupdrBackup": VAULTED}


def test_an_instance_of_one_team_is_billed_to_it() -> None:
    assert deploy_backups(team="vision").one(resource_types.FILESTORE).inputs["labels"] == {
        "environment": "prod",
        "team": "vision",
    }


def test_private_service_access_comes_before_the_instance_that_joins_by_it() -> None:
    plan = deploy_backups("10.200.0.0/16", connection="private-service-access")
    instance = plan.one(resource_types.FILESTORE)
    connection = plan.one(resource_types.SERVICE_CONNECTION)

    assert instance.inputs["networks"][0]["connectMode"] == "PRIVATE_SERVICE_ACCESS"
    assert instance.inputs["networks"][0]["reservedIpRange"] == "prod-services"
    assert (connection.type, connection.name) in instance.options["dependsOn"]
    assert plan.one(resource_types.GLOBAL_ADDRESS).inputs["prefixLength"] == 16


def test_another_instance_of_that_vpc_joins_it_directly() -> None:
    instance = deploy_backups("10.200.0.0/16").one(resource_types.FILESTORE)

    assert instance.inputs["networks"][0]["connectMode"] == "DIRECT_PEERING"
    assert "reservedIpRange" not in instance.inputs["networks"][0]
    assert not [kind for kind, _ in instance.options["dependsOn"] if kind == resource_types.SERVICE_CONNECTION]


def test_backups_are_a_vault_a_plan_and_what_ties_the_instance_to_it() -> None:
    plan = deploy_backups(backups={"weekdays": ["SUNDAY"], "keep_days": 8, "locked_days": 3})
    vault = plan.one(resource_types.BACKUP_VAULT)
    rules = plan.one(resource_types.BACKUP_PLAN).inputs["backupRules"]

    assert vault.inputs["backupMinimumEnforcedRetentionDuration"] == f"{3 * 86400}s"
    assert vault.inputs["location"] == "us-central1"
    assert rules[0]["backupRetentionDays"] == 8
    assert rules[0]["standardSchedule"] == {
        "recurrenceType": "WEEKLY", "daysOfWeeks": ["SUNDAY"], "timeZone": "UTC",
        "backupWindow": {"startHourOfDay": 0, "endHourOfDay": 6},
    }  # fmt: skip
    association = plan.one(resource_types.BACKUP_PLAN_ASSOCIATION)
    assert association.inputs["resourceType"] == "file.googleapis.com/Instance"
    assert association.options["replaceOnChanges"] == ["backupPlan", "resource"]


def test_an_instance_without_them_has_no_backups_and_no_snapshots() -> None:
    planned = {resource.type for resource in deploy_backups().resources}

    assert not planned & {resource_types.BACKUP_VAULT, resource_types.BACKUP_PLAN, resource_types.FILESTORE_SNAPSHOT}


def test_each_snapshot_has_its_name() -> None:
    plan = deploy_backups(snapshots=["before", "after"])

    names = [
        resource.inputs["name"] for resource in plan.resources if resource.type == resource_types.FILESTORE_SNAPSHOT
    ]
    assert names == ["before", "after"]
