"""Cloud Storage: buckets and their policies; objects are not kept."""

from __future__ import annotations

from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.actions import ACTIONS
from training_platform.sandbox.cloud.resources.iam_policies import read_policy, write_policy
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.projects import number
from training_platform.sandbox.cloud.state.store import Record

_NAME: Final = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"
_MULTI: Final = frozenset({"US", "EU", "ASIA"})


def _fill(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    now = cloud.time()
    if not old:
        location = body.get("location", "US").upper()
        body |= {
            "kind": "storage#bucket", "id": record.id, "projectNumber": number(record.project), "timeCreated": now,
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{record.id}", "location": location,
            "locationType": "multi-region" if location in _MULTI else "region", "generation": cloud.number(),
        }  # fmt: skip
        body.setdefault("rpo", "DEFAULT") if location in _MULTI else None
        soft = body.setdefault("softDeletePolicy", {"retentionDurationSeconds": "604800"})
        if soft.get("retentionDurationSeconds") != "0":
            soft.setdefault("effectiveTime", now)
    elif body.get("location", "").upper() != old["location"]:
        raise ApiError(400, "The location of a bucket cannot be changed.")
    iam = body["iamConfiguration"]
    uniform = iam["uniformBucketLevelAccess"]
    if uniform.get("enabled"):
        uniform.setdefault("lockedTime", now)
    iam["bucketPolicyOnly"] = dict(uniform)
    body |= {"updated": now, "metageneration": str(int(old.get("metageneration", "0")) + 1)}


def _conditions(call: Call, record: Record) -> None:
    held = record.body["metageneration"]
    for name, good in (("ifMetagenerationMatch", True), ("ifMetagenerationNotMatch", False)):
        given = call.parameters.get(name)
        if given is not None and (str(given) == held) is not good:
            raise ApiError(412, "At least one of the pre-conditions you specified did not hold.")


def _checked(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    _conditions(call, record)
    return ACTIONS[call.method.action](cloud, SERVICE.kinds[0], call)


def _policy_of(cloud: Cloud, call: Call) -> Record:
    return cloud.existing(call.name.removesuffix("/iam").removesuffix("/iam/testPermissions"))


def _get_policy(cloud: Cloud, call: Call) -> Json:
    record = _policy_of(cloud, call)
    return {"kind": "storage#policy", "resourceId": f"projects/_/buckets/{record.id}", **read_policy(record)}


def _set_policy(cloud: Cloud, call: Call) -> Json:
    record = _policy_of(cloud, call)
    policy = {key: value for key, value in call.body.items() if key in ("bindings", "etag", "version")}
    return {
        "kind": "storage#policy",
        "resourceId": f"projects/_/buckets/{record.id}",
        **write_policy(cloud, record, policy),
    }


def _test(cloud: Cloud, call: Call) -> Json:
    _policy_of(cloud, call)
    return {"kind": "storage#testIamPermissionsResponse", "permissions": call.parameters.get("permissions", [])}


def _list(cloud: Cloud, call: Call) -> Json:
    mine = [each.body for each in cloud.store.children("storage/b") if each.project == call.project]
    prefix = call.parameters.get("prefix", "")
    return {"kind": "storage#buckets", "items": [each for each in mine if each["id"].startswith(prefix)]}


def _nothing(cloud: Cloud, call: Call) -> Json:
    """List what no bucket has here: objects, and caches of them."""
    cloud.existing("/".join(call.name.split("/")[:3]))
    return {"kind": f"storage#{call.method.collection}"}


def _agent(_cloud: Cloud, call: Call) -> Json:
    """Return the account by which Cloud Storage itself acts in a project."""
    email = f"service-{number(call.project)}@gs-project-accounts.iam.gserviceaccount.com"
    return {"kind": "storage#serviceAccount", "email_address": email}


SERVICE = Service(
    name="storage",
    kinds=(Kind(collection="buckets", schema="Bucket", id_form=_NAME, fill=_fill, etag="etag"),),
    handlers={
        "buckets.list": _list,
        "buckets.patch": _checked,
        "buckets.update": _checked,
        "buckets.delete": _checked,
        "buckets.getIamPolicy": _get_policy,
        "buckets.setIamPolicy": _set_policy,
        "buckets.testIamPermissions": _test,
        "objects.list": _nothing,
        "serviceAccount.get": _agent,
        "anywhereCaches.list": _nothing,
    },
)
