"""Filestore instances, their snapshots and backups. Capacity is counted in GiB, though the field says GB."""

from __future__ import annotations

from training_platform.catalog import FILESTORE_TIERS
from training_platform.sandbox.cloud.requests.errors import ApiError, not_found, required
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service, operation_metadata
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

_BASIC = ("BASIC", "STANDARD", "PREMIUM")


def _fill(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if old:
        _check_change(body, old)
        return
    if not body.get("fileShares") or not body.get("networks"):
        raise ApiError(400, "An instance needs one file share and one network")
    for share in body["fileShares"]:
        required(share, "name", "instance.file_shares[]")
        _restorable(cloud, share)
    serial = cloud.store.serial()
    network = body["networks"][0]
    network.setdefault("connectMode", "DIRECT_PEERING")
    block = f"10.{100 + serial // 250 % 100}.{serial % 250}"
    tier = FILESTORE_TIERS.get(body.get("tier", ""))
    size = tier.reserved_prefix if tier else 29  # STANDARD and PREMIUM are basic tiers under older names
    # Private service access takes the name of a range; what the API answers where none was given is (unverified).
    if not network.get("reservedIpRange") and network["connectMode"] == "DIRECT_PEERING":
        network["reservedIpRange"] = f"{block}.0/{size}"
    network["ipAddresses"] = [f"{block}.2"]
    _defaults(body)


def _restorable(cloud: Cloud, share: Json) -> None:
    """Raise ApiError where a share is to start with a backup that is not there, or is larger than the share."""
    source = share.get("sourceBackup") or share.get("sourceBackupdrBackup")
    if not source:
        return
    backup = cloud.store.get(f"{'backupdr' if share.get('sourceBackupdrBackup') else 'file'}/{source}")
    if backup is None:
        raise not_found(source)
    held, wanted = int(backup.body.get("capacityGb", 0)), int(share.get("capacityGb", 0))
    if wanted < held:
        raise ApiError(400, f"A share of {wanted} GiB cannot hold backup '{source}' of {held} GiB")


def _defaults(body: Json) -> None:
    if body.get("tier") in ("ZONAL", "REGIONAL", "ENTERPRISE"):
        body.setdefault("customPerformanceSupported", True)
    for share in body["fileShares"]:
        share["capacityGb"] = str(share.get("capacityGb", "0"))


def _check_change(body: Json, old: Json) -> None:
    before, after = (int(each["fileShares"][0].get("capacityGb", 0)) for each in (old, body))
    if after < before and str(old.get("tier", "")).startswith(_BASIC):
        raise ApiError(400, f"Cannot reduce the capacity of a {old['tier']} instance from {before} to {after} GiB")
    for name in ("tier", "networks", "protocol"):
        if body.get(name) != old.get(name):
            raise ApiError(400, f"The field '{name}' of an instance cannot be changed")


def _backup(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if old:
        return
    source = record.body.get("sourceInstance", "")
    instance = cloud.store.get(f"file/{source}")
    if instance is None:
        raise not_found(source)
    shares = {each["name"]: each for each in instance.body["fileShares"]}
    share = record.body.get("sourceFileShare", "")
    if share not in shares:
        raise ApiError(400, f"The instance '{source}' has no file share '{share}'")
    record.body |= {
        "sourceInstanceTier": instance.body["tier"], "capacityGb": shares[share]["capacityGb"],
        "storageBytes": "0", "downloadBytes": "0",
    }  # fmt: skip


def _snapshot(cloud: Cloud, call: Call, _record: Record, old: Json) -> None:
    if old:
        return
    instance = cloud.store.get(call.name.rpartition("/")[0])
    if instance and "/instances/" in call.name and str(instance.body["tier"]).startswith(_BASIC):
        raise ApiError(400, f"Instances of tier {instance.body['tier']} do not support snapshots")


SERVICE = Service(
    name="file",
    package="google.cloud.filestore",
    metadata=operation_metadata("google.cloud.common.OperationMetadata"),
    kinds=(
        Kind(
            collection="instances",
            schema="Instance",
            style="longrunning",
            id_in="instanceId",
            states=("state", "CREATING", "READY", "REPAIRING", "DELETING"),
            fill=_fill,
            protection="deletionProtectionEnabled",
            etag="etag",
        ),
        Kind(
            collection="backups",
            schema="Backup",
            style="longrunning",
            id_in="backupId",
            states=("state", "CREATING", "READY", "READY", "DELETING"),
            fill=_backup,
        ),
        Kind(
            collection="snapshots",
            schema="Snapshot",
            style="longrunning",
            id_in="snapshotId",
            parent=True,
            states=("state", "CREATING", "READY", "READY", "DELETING"),
            fill=_snapshot,
        ),
    ),
)
