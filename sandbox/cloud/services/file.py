"""Filestore instances. Capacity is counted in GiB, though the field says GB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.cloud.errors import ApiError, failed_precondition
from sandbox.cloud.model import Call, Json, Kind, Service
from sandbox.cloud.store import Record

if TYPE_CHECKING:
    from sandbox.cloud.cloud import Cloud


def _fill(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    body = record.body
    if old:
        _check_change(body, old)
        return
    if not body.get("fileShares") or not body.get("networks"):
        raise ApiError(400, "An instance needs one file share and one network")
    body |= {"name": call.path + "/" + record.id, "createTime": cloud.time()}
    body.setdefault("protocol", "NFS_V3")
    serial = cloud.store.serial()
    network = body["networks"][0]
    network.setdefault("connectMode", "DIRECT_PEERING")
    block = f"10.{100 + serial // 250 % 100}.{serial % 250}"
    size = 29 if str(body.get("tier", "")).startswith(("BASIC", "STANDARD", "PREMIUM")) else 24
    if not network.get("reservedIpRange"):
        network["reservedIpRange"] = f"{block}.0/{size}"
    network["ipAddresses"] = [f"{block}.2"]
    _defaults(body)


def _defaults(body: Json) -> None:
    body["satisfiesPzs"] = body["satisfiesPzi"] = False
    body.setdefault("capacityStepSizeGb", "256")
    if body.get("tier") in ("ZONAL", "REGIONAL", "ENTERPRISE"):
        body.setdefault("customPerformanceSupported", True)
    for share in body["fileShares"]:
        share["capacityGb"] = str(share.get("capacityGb", "0"))


def _check_change(body: Json, old: Json) -> None:
    before, after = (int(each["fileShares"][0].get("capacityGb", 0)) for each in (old, body))
    if after < before and str(old.get("tier", "")).startswith(("BASIC", "STANDARD", "PREMIUM")):
        raise ApiError(400, f"Cannot reduce the capacity of a {old['tier']} instance from {before} to {after} GiB")
    for name in ("tier", "networks", "protocol"):
        if body.get(name) != old.get(name):
            raise ApiError(400, f"The field '{name}' of an instance cannot be changed")


def _removable(_cloud: Cloud, call: Call, record: Record) -> None:
    if record.body.get("deletionProtectionEnabled"):
        raise failed_precondition(f"The instance '{call.path}' is protected against deletion.")


SERVICE = Service(
    name="file",
    kinds=(
        Kind(
            collection="instances",
            schema="Instance",
            style="longrunning",
            id_in="instanceId",
            states=("state", "CREATING", "READY", "REPAIRING", "DELETING"),
            fill=_fill,
            removable=_removable,
            etag="etag",
        ),
    ),
)
