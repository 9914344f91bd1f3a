"""Managed Lustre instances, which have addresses of the VPC's range for private service access."""

from __future__ import annotations

import re

from training_platform.sandbox.cloud.requests.errors import ApiError, failed_precondition, not_found, required
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service, operation_metadata
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

_FIXED = ("filesystem", "network", "perUnitStorageThroughput", "kmsKey", "dynamicTierOptions")
_NETWORK = re.compile(r"projects/([^/]+)/global/networks/([^/]+)")


def _fill(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if old:
        _check_change(body, old)
        return
    for field in ("filesystem", "capacityGib", "network"):
        required(body, field, "instance")
    if not re.fullmatch(r"[A-Za-z0-9]{1,8}", body["filesystem"]):
        raise ApiError(400, "The filesystem of an instance has at most 8 letters and digits")
    serial = cloud.store.serial()
    _private(cloud, body["network"])
    body |= {
        "uid": f"{serial:032x}",
        "mountPoint": f"10.{200 + serial // 250 % 50}.{serial % 250}.2@tcp:/{body['filesystem']}",
    }  # fmt: skip


def _private(cloud: Cloud, network: str) -> None:
    """Raise ApiError for a network that is not there, or that Google's services have not joined."""
    found = _NETWORK.fullmatch(network)
    if found is None:
        raise ApiError(400, f"Invalid network '{network}': projects/PROJECT/global/networks/NETWORK is wanted")
    project = cloud.projects.resolve(found[1])
    name = f"projects/{project}/global/networks/{found[2]}"
    if cloud.store.get(f"compute/{name}") is None:
        raise not_found(name)
    connection = f"services/servicenetworking.googleapis.com/connections/{name.replace('/', ':')}"
    if cloud.store.get(f"servicenetworking/{connection}") is None:
        raise failed_precondition(f"Private services access is not configured for network '{name}'.")


def _check_change(body: Json, old: Json) -> None:
    for field in _FIXED:
        if body.get(field) != old.get(field):
            raise ApiError(400, f"The field '{field}' of an instance cannot be changed")
    before, after = int(old["capacityGib"]), int(body["capacityGib"])
    if after < before:
        raise ApiError(400, f"The capacity of an instance cannot be reduced, from {before} to {after} GiB")


SERVICE = Service(
    name="lustre",
    package="google.cloud.lustre",
    metadata=operation_metadata("google.cloud.lustre.{version}.OperationMetadata"),
    kinds=(
        Kind(
            collection="instances",
            schema="Instance",
            style="longrunning",
            id_in="instanceId",
            states=("state", "CREATING", "ACTIVE", "UPDATING", "DELETING"),
            fill=_fill,
        ),
    ),
)
