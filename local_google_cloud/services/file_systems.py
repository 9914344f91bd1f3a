"""File systems: instances of Filestore and Managed Lustre, and Backup and DR, which stores backups of Filestore.

Filestore's ``capacityGb`` counts GiB. A Lustre instance has an address in the VPC's range for private services access.
Backups are created only on request; backup plans do not run on a schedule here.
"""

from __future__ import annotations

import copy
import re
from typing import Any, Final

from local_google_cloud.requests.errors import Refusal, failed_precondition, invalid, required
from local_google_cloud.resources.actions import start_operation
from local_google_cloud.resources.resource_kinds import (
    Call,
    Fill,
    ResourceKind,
    Service,
    operation_metadata,
)
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.store import Record
from training_platform.catalog import FILESTORE_TIERS
from training_platform.catalog.types import Json


def _kind(schema: str, fill: Fill, *, ready: str = "ACTIVE", changing: str = "UPDATING", **more: Any) -> ResourceKind:
    """Return a kind. The names of its collection and id come from its schema: ``backupPlans``, ``backupPlanId``."""
    name = schema[:1].lower() + schema[1:]
    return ResourceKind(
        collection=f"{name}s",
        schema=schema,
        style="longrunning",
        id_in=f"{name}Id",
        states=("state", "CREATING", ready, changing, "DELETING"),
        fill=fill,
        **more,
    )


# Filestore

_BASIC: Final = ("BASIC", "STANDARD", "PREMIUM")


def _fill_instance(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if old:
        before = int(old["fileShares"][0].get("capacityGb", 0))
        after = int(body["fileShares"][0].get("capacityGb", 0))
        if after < before and str(old.get("tier", "")).startswith(_BASIC):
            raise Refusal(400, f"Cannot reduce the capacity of a {old['tier']} instance from {before} to {after} GiB")
        _check_unchanged(body, old, ("tier", "networks", "protocol"))
        return
    if not body.get("fileShares") or not body.get("networks"):
        raise Refusal(400, "An instance needs one file share and one network")
    for share in body["fileShares"]:
        required(share, "name", "instance.file_shares[]")
        _check_restorable(cloud, share)
        share["capacityGb"] = str(share.get("capacityGb", "0"))
    serial = cloud.store.serial()
    block = f"10.{100 + serial // 250 % 100}.{serial % 250}"
    network = body["networks"][0]
    network.setdefault("connectMode", "DIRECT_PEERING")
    # With private services access this is the name of a range; the response without a name is (unverified).
    if not network.get("reservedIpRange") and network["connectMode"] == "DIRECT_PEERING":
        tier = FILESTORE_TIERS.get(body.get("tier", ""))
        size = tier.reserved_prefixes[0] if tier else 29  # STANDARD and PREMIUM are basic tiers under older names
        network["reservedIpRange"] = f"{block}.0/{size}"
    network["ipAddresses"] = [f"{block}.2"]
    if body.get("tier") in ("ZONAL", "REGIONAL", "ENTERPRISE"):
        body.setdefault("customPerformanceSupported", True)


def _check_restorable(cloud: Cloud, share: Json) -> None:
    """Raise Refusal if the source backup of a share does not exist or is larger than the share."""
    source = share.get("sourceBackup") or share.get("sourceBackupdrBackup")
    if not source:
        return
    backup = cloud.existing(f"{'backupdr' if share.get('sourceBackupdrBackup') else 'file'}/{source}")
    backup_gib = int(backup.body.get("capacityGb", 0))
    share_gib = int(share.get("capacityGb", 0))
    if share_gib < backup_gib:
        raise Refusal(400, f"A share of {share_gib} GiB cannot hold backup '{source}' of {backup_gib} GiB")


def _check_unchanged(body: Json, old: Json, fields: tuple[str, ...]) -> None:
    for field in fields:
        if body.get(field) != old.get(field):
            raise Refusal(400, f"The field '{field}' of an instance cannot be changed")


def _fill_backup(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if old:
        return
    source = record.body.get("sourceInstance", "")
    instance = cloud.existing(f"file/{source}")
    shares = {share["name"]: share for share in instance.body["fileShares"]}
    share = record.body.get("sourceFileShare", "")
    if share not in shares:
        raise Refusal(400, f"The instance '{source}' has no file share '{share}'")
    record.body |= {
        "sourceInstanceTier": instance.body["tier"],
        "capacityGb": shares[share]["capacityGb"],
        "storageBytes": "0",
        "downloadBytes": "0",
    }


def _check_snapshot(cloud: Cloud, call: Call, _record: Record, old: Json) -> None:
    if old:
        return
    instance = cloud.store.get(call.name.rpartition("/")[0])
    if instance and "/instances/" in call.name and str(instance.body["tier"]).startswith(_BASIC):
        raise Refusal(400, f"Instances of tier {instance.body['tier']} do not support snapshots")


FILESTORE: Final = Service(
    name="file",
    package="google.cloud.filestore",
    metadata=operation_metadata("google.cloud.common.OperationMetadata"),
    kinds=(
        _kind(
            "Instance",
            _fill_instance,
            ready="READY",
            changing="REPAIRING",
            protection="deletionProtectionEnabled",
            etag="etag",
        ),
        _kind("Backup", _fill_backup, ready="READY", changing="READY"),
        _kind("Snapshot", _check_snapshot, ready="READY", changing="READY", parent=True),
    ),
)

# Managed Lustre

_NETWORK: Final = re.compile(r"projects/([^/]+)/global/networks/([^/]+)")


def _fill_lustre(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if old:
        _check_unchanged(
            body, old, ("filesystem", "network", "perUnitStorageThroughput", "kmsKey", "dynamicTierOptions")
        )
        before = int(old["capacityGib"])
        after = int(body["capacityGib"])
        if after < before:
            raise Refusal(400, f"The capacity of an instance cannot be reduced, from {before} to {after} GiB")
        return
    for field in ("filesystem", "capacityGib", "network"):
        required(body, field, "instance")
    if not re.fullmatch(r"[A-Za-z0-9]{1,8}", body["filesystem"]):
        raise Refusal(400, "The filesystem name of an instance must have at most 8 letters and digits")
    serial = cloud.store.serial()
    _check_private(cloud, body["network"])
    body |= {
        "uid": f"{serial:032x}",
        "mountPoint": f"10.{200 + serial // 250 % 50}.{serial % 250}.2@tcp:/{body['filesystem']}",
    }


def _check_private(cloud: Cloud, network: str) -> None:
    """Raise Refusal for a network that does not exist or has no private services access."""
    match = _NETWORK.fullmatch(network)
    if match is None:
        raise Refusal(400, f"Invalid network '{network}': must be projects/PROJECT/global/networks/NETWORK")
    name = f"projects/{cloud.projects.resolve(match[1])}/global/networks/{match[2]}"
    cloud.existing(f"compute/{name}")
    connection = f"services/servicenetworking.googleapis.com/connections/{name.replace('/', ':')}"
    if cloud.store.get(f"servicenetworking/{connection}") is None:
        raise failed_precondition(f"Private services access is not configured for network '{name}'.")


LUSTRE: Final = Service(
    name="lustre",
    package="google.cloud.lustre",
    metadata=operation_metadata("google.cloud.lustre.{version}.OperationMetadata"),
    kinds=(_kind("Instance", _fill_lustre),),
)

# Backup and DR: vaults, plans, and the associations of resources with plans

_DAY: Final = 86_400


def _fill_vault(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if old:
        return
    record.body |= {
        "updateTime": cloud.time(),
        "uid": cloud.number(),
        "backupCount": "0",
        "deletable": True,
        "totalStoredBytes": "0",
        "serviceAccount": f"vault-{record.id}@gcp-sa-backupdr-pr.iam.gserviceaccount.com",
    }


def _check_vault_empty(cloud: Cloud, call: Call, vault: Record) -> None:
    sources = cloud.store.children(f"{vault.name}/dataSources")
    if any(cloud.store.children(f"{source.name}/backups") for source in sources) and not call.parameters.get("force"):
        raise failed_precondition(f"Backup vault {call.path} has backups.")


def _fill_plan(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    vault = cloud.existing(f"backupdr/{body.get('backupVault', 'backupVault')}")
    minimum = int(vault.body["backupMinimumEnforcedRetentionDuration"].rstrip("s"))
    for rule in body.get("backupRules", ()):
        if rule["backupRetentionDays"] * _DAY < minimum:
            raise invalid(f"Rule {rule['ruleId']} keeps backups for less than the vault's {minimum} s")
    if not old:
        body |= {
            "updateTime": cloud.time(),
            "backupVaultServiceAccount": vault.body["serviceAccount"],
            "revisionId": "v0",
            "supportedResourceTypes": [body["resourceType"]],
        }


def _check_plan_unused(cloud: Cloud, call: Call, plan: Record) -> None:
    associations = cloud.store.children(plan.name.rpartition("s/")[0] + "Associations")
    if any(association.body.get("backupPlan") == call.path for association in associations):
        raise failed_precondition(f"Backup plan {call.path} is in use.")


def _fill_association(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    plan = cloud.existing(f"backupdr/{body['backupPlan']}")
    if plan.body["resourceType"] != body["resourceType"]:
        raise invalid(f"Plan {body['backupPlan']} is for {plan.body['resourceType']}")
    if body["resourceType"] == "file.googleapis.com/Instance":
        cloud.existing(f"file/{body['resource']}")
    if not old:
        source = f"{plan.body['backupVault']}/dataSources/{record.id}"
        body |= {"updateTime": cloud.time(), "dataSource": source}
        data_source = {"name": source, "state": "ACTIVE", "createTime": cloud.time()}
        cloud.store.put(Record(name=f"backupdr/{source}", project=record.project, body=data_source))


def _trigger_backup(cloud: Cloud, call: Call) -> Json:
    """Create a backup of a resource that has a backup plan."""
    record = cloud.existing(call.name)
    instance = cloud.existing(f"file/{record.body['resource']}")
    name = f"{record.body['dataSource']}/backups/{cloud.number()}"
    backup = {
        "name": name,
        "state": "ACTIVE",
        "createTime": cloud.time(),
        "backupType": "ON_DEMAND",
        # Not a field of the API: a restore is checked against it.
        "capacityGb": instance.body["fileShares"][0]["capacityGb"],
    }
    cloud.store.put(Record(name=f"backupdr/{name}", project=record.project, body=backup))
    return start_operation(
        cloud,
        call,
        "backups",
        response=copy.deepcopy(record.body),
        where=call.location,
        schema=f"google.cloud.backupdr.{call.api.version}.BackupPlanAssociation",
        metadata={"target": name, "verb": "create", "apiVersion": call.api.version},
    )


BACKUP_DR: Final = Service(
    name="backupdr",
    package="google.cloud.backupdr",
    metadata=operation_metadata("google.cloud.backupdr.{version}.OperationMetadata"),
    kinds=(
        _kind("BackupVault", _fill_vault, check_delete=_check_vault_empty),
        _kind("BackupPlan", _fill_plan, check_delete=_check_plan_unused),
        _kind("BackupPlanAssociation", _fill_association),
    ),
    handlers={"projects.locations.backupPlanAssociations.triggerBackup": _trigger_backup},
)
