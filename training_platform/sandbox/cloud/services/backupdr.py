"""Backup and DR: vaults, plans, and what is under a plan; a backup comes on request, since no clock runs plans here."""

from __future__ import annotations

import copy

from training_platform.sandbox.cloud.requests.errors import ApiError, failed_precondition, invalid, not_found
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service, operation_metadata
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Work

_FILESTORE = "file.googleapis.com/Instance"
_DAY = 86_400


def _vault(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if old:
        return
    record.body |= {
        "updateTime": cloud.time(), "uid": cloud.number(),
        "backupCount": "0", "deletable": True, "totalStoredBytes": "0",
        "serviceAccount": f"vault-{record.id}@gcp-sa-backupdr-pr.iam.gserviceaccount.com",
    }  # fmt: skip


def _plan(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    vault = cloud.store.get(f"backupdr/{body.get('backupVault', '')}")
    if vault is None:
        raise not_found(body.get("backupVault", "backupVault"))
    least = int(vault.body["backupMinimumEnforcedRetentionDuration"].rstrip("s"))
    for rule in body.get("backupRules", ()):
        if rule["backupRetentionDays"] * _DAY < least:
            raise invalid(f"Rule {rule['ruleId']} keeps backups for less than the vault's {least} s")
    if not old:
        body["updateTime"] = cloud.time()
        body |= {"backupVaultServiceAccount": vault.body["serviceAccount"], "revisionId": "v0"}
        body["supportedResourceTypes"] = [body["resourceType"]]


def _association(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    plan = cloud.store.get(f"backupdr/{body['backupPlan']}")
    if plan is None:
        raise not_found(body["backupPlan"])
    if plan.body["resourceType"] != body["resourceType"]:
        raise invalid(f"Plan {body['backupPlan']} is for {plan.body['resourceType']}")
    if body["resourceType"] == _FILESTORE and cloud.store.get(f"file/{body['resource']}") is None:
        raise not_found(body["resource"])
    if not old:
        body["updateTime"] = cloud.time()
        source = f"{plan.body['backupVault']}/dataSources/{record.id}"
        body["dataSource"] = source
        data_source = {"name": source, "state": "ACTIVE", "createTime": cloud.time()}
        cloud.store.put(Record(name=f"backupdr/{source}", project=record.project, body=data_source))


def _plan_is_used(cloud: Cloud, call: Call, record: Record) -> None:
    ties = cloud.store.children(record.name.rpartition("s/")[0] + "Associations")
    if any(each.body.get("backupPlan") == call.path for each in ties):
        raise failed_precondition(f"Backup plan {call.path} is in use.")


def _vault_is_full(cloud: Cloud, call: Call, record: Record) -> None:
    sources = cloud.store.children(f"{record.name}/dataSources")
    if any(cloud.store.children(f"{each.name}/backups") for each in sources) and not call.parameters.get("force"):
        raise failed_precondition(f"Backup vault {call.path} has backups.")


def _trigger(cloud: Cloud, call: Call) -> Json:
    """Make a backup of what is under a plan, now."""
    record = cloud.existing(call.name)
    source = record.body["dataSource"]
    instance = cloud.store.get(f"file/{record.body['resource']}")
    if instance is None:
        raise ApiError(404, f"Resource '{record.body['resource']}' was not found")
    name = f"{source}/backups/{cloud.number()}"
    backup = {
        "name": name,
        "state": "ACTIVE",
        "createTime": cloud.time(),
        "backupType": "ON_DEMAND",
        # Not a field of the API: what a restore is checked against.
        "capacityGb": instance.body["fileShares"][0]["capacityGb"],
    }
    cloud.store.put(Record(name=f"backupdr/{name}", project=record.project, body=backup))
    work = Work(
        style="longrunning", service=call.service, project=call.project, target=call.name, type="triggerBackup",
        seconds=cloud.settings.seconds("backupdr.backups"), response=copy.deepcopy(record.body),
        schema=f"google.cloud.backupdr.{call.api.version}.BackupPlanAssociation", where=call.location,
        metadata={"target": name, "verb": "create", "apiVersion": call.api.version},
    )  # fmt: skip
    return cloud.operations.start(work)


_STATES = ("state", "CREATING", "ACTIVE", "UPDATING", "DELETING")
SERVICE = Service(
    name="backupdr",
    package="google.cloud.backupdr",
    metadata=operation_metadata("google.cloud.backupdr.{version}.OperationMetadata"),
    kinds=(
        Kind(
            collection="backupVaults", schema="BackupVault", style="longrunning", id_in="backupVaultId",
            states=_STATES, fill=_vault, removable=_vault_is_full,
        ),
        Kind(
            collection="backupPlans", schema="BackupPlan", style="longrunning", id_in="backupPlanId", states=_STATES,
            fill=_plan, removable=_plan_is_used,
        ),
        Kind(
            collection="backupPlanAssociations", schema="BackupPlanAssociation", style="longrunning",
            id_in="backupPlanAssociationId", states=_STATES, fill=_association,
        ),
    ),
    handlers={"projects.locations.backupPlanAssociations.triggerBackup": _trigger},
)  # fmt: skip
