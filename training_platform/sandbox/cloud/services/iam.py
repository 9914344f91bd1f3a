"""IAM: service accounts, and custom roles of projects."""

from __future__ import annotations

from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError, not_found
from training_platform.sandbox.cloud.requests.masks import mask_paths
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

_ID: Final = r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])"  # 6 to 30 characters


def _fill(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    if old:
        return
    account = call.body["accountId"]
    email = f"{account}@{record.project}.iam.gserviceaccount.com"
    path = f"projects/{record.project}/serviceAccounts/{email}"
    record.name = f"iam/{path}"
    unique = str(10**20 + cloud.store.serial() * 104_729)
    record.body |= {
        "name": path, "projectId": record.project, "uniqueId": unique, "email": email, "oauth2ClientId": unique,
    }  # fmt: skip


def _patch(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    given = call.body.get("serviceAccount", {})
    for path in mask_paths(call.body.get("updateMask", "")):
        if path not in ("displayName", "description"):
            raise ApiError(400, f"Invalid field mask path: {path}")
        record.body[path] = given.get(path, "")
    cloud.store.put(record)
    return record.body


def _switch(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    record.body.pop("disabled", None)
    if call.method.action == "disable":
        record.body["disabled"] = True
    cloud.store.put(record)
    return {}


def _get(cloud: Cloud, call: Call) -> Json:
    record = cloud.store.get(call.name)
    if record is None:
        unique = call.path.rpartition("/")[2]
        record = next((each for each in cloud.store.all(call.project) if each.body.get("uniqueId") == unique), None)
    if record is None:
        raise not_found(call.path)
    return record.body


def _name(_cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if not old:
        record.body["name"] = record.name.removeprefix("iam/")


SERVICE = Service(
    name="iam",
    kinds=(
        Kind(
            collection="serviceAccounts",
            schema="ServiceAccount",
            wrapper="serviceAccount",
            id_in="accountId",
            id_form=_ID,
            fill=_fill,
            etag="etag",
        ),
        Kind(
            collection="roles",
            schema="Role",
            wrapper="role",
            id_in="roleId",
            id_form=r"[a-zA-Z0-9_.]{3,64}",
            fill=_name,
            etag="etag",
        ),
    ),
    handlers={
        "serviceAccounts.patch": _patch,
        "serviceAccounts.get": _get,
        "serviceAccounts.enable": _switch,
        "serviceAccounts.disable": _switch,
    },
)
