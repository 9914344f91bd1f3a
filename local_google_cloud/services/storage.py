"""Cloud Storage's buckets with their policies, and Artifact Registry's repositories. Contents are not stored."""

from __future__ import annotations

from typing import Final

from local_google_cloud.requests.errors import Refusal, unimplemented
from local_google_cloud.resources.actions import (
    ACTIONS,
    caller_permissions,
    read_policy,
    write_policy,
)
from local_google_cloud.resources.resource_kinds import Call, ResourceKind, Service
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json

# Cloud Storage

_NAME: Final = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"
_MULTI_REGIONS: Final = frozenset({"US", "EU", "ASIA"})


def _fill_bucket(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    now = cloud.time()
    if not old:
        location = body.get("location", "US").upper()
        multi_region = location in _MULTI_REGIONS
        body |= {
            "kind": "storage#bucket",
            "id": record.id,
            "projectNumber": cloud.judge.project_number(record.project),
            "timeCreated": now,
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{record.id}",
            "location": location,
            "locationType": "multi-region" if multi_region else "region",
            "generation": cloud.number(),
        }
        if multi_region:
            body.setdefault("rpo", "DEFAULT")
        soft = body.setdefault("softDeletePolicy", {"retentionDurationSeconds": "604800"})
        if soft.get("retentionDurationSeconds") != "0":
            soft.setdefault("effectiveTime", now)
    elif body.get("location", "").upper() != old["location"]:
        raise Refusal(400, "The location of a bucket cannot be changed.")
    iam = body["iamConfiguration"]
    uniform = iam["uniformBucketLevelAccess"]
    if uniform.get("enabled"):
        uniform.setdefault("lockedTime", now)
    iam["bucketPolicyOnly"] = dict(uniform)
    body |= {"updated": now, "metageneration": str(int(old.get("metageneration", "0")) + 1)}


def _write_on_conditions(cloud: Cloud, call: Call) -> Json:
    """Change or delete a bucket if its metageneration meets the conditions in the request."""
    current = cloud.existing(call.name).body["metageneration"]
    for name, must_match in (("ifMetagenerationMatch", True), ("ifMetagenerationNotMatch", False)):
        value = call.parameters.get(name)
        if value is not None and (str(value) == current) is not must_match:
            raise Refusal(412, "At least one of the pre-conditions you specified did not hold.")
    return ACTIONS[call.method.action](cloud, STORAGE.kinds[0], call)


def _list_buckets(cloud: Cloud, call: Call) -> Json:
    buckets = [record.body for record in cloud.store.children("storage/b") if record.project == call.project]
    prefix = call.parameters.get("prefix", "")
    return {"kind": "storage#buckets", "items": [bucket for bucket in buckets if bucket["id"].startswith(prefix)]}


def _get_policy(cloud: Cloud, call: Call) -> Json:
    record = _bucket(cloud, call)
    return {"kind": "storage#policy", "resourceId": f"projects/_/buckets/{record.id}", **read_policy(record)}


def _set_policy(cloud: Cloud, call: Call) -> Json:
    record = _bucket(cloud, call)
    policy = {key: value for key, value in call.body.items() if key in ("bindings", "etag", "version")}
    written = write_policy(cloud, record, policy)
    return {"kind": "storage#policy", "resourceId": f"projects/_/buckets/{record.id}", **written}


def _test_permissions(cloud: Cloud, call: Call) -> Json:
    _bucket(cloud, call)
    return {"kind": "storage#testIamPermissionsResponse", **caller_permissions(cloud, call)}


def _list_nothing(cloud: Cloud, call: Call) -> Json:
    """Return an empty list of objects or caches, since buckets have none here."""
    cloud.existing("/".join(call.name.split("/")[:3]))
    return {"kind": f"storage#{call.method.collection}"}


def _accept_object(cloud: Cloud, call: Call) -> Json:
    """Accept an object in an existing bucket without storing it, if the cloud's settings allow it."""
    if not cloud.settings.accept_objects:
        raise unimplemented(call.method.id)
    bucket = cloud.existing(call.name.removesuffix("/o"))
    return {"kind": "storage#object", "bucket": bucket.id, "name": call.parameters.get("name", "")}


def _no_object(_cloud: Cloud, call: Call) -> Json:
    """Refuse a request for an object, since buckets contain none here."""
    raise Refusal(404, f"No such object: {call.path.removeprefix('b/').replace('/o/', '/', 1)}")


def _bucket(cloud: Cloud, call: Call) -> Record:
    """Return the bucket whose policy is at the path ``storage/b/<name>/iam``."""
    return cloud.existing(call.name.partition("/iam")[0])


STORAGE: Final = Service(
    name="storage",
    kinds=(ResourceKind(collection="buckets", schema="Bucket", id_form=_NAME, fill=_fill_bucket, etag="etag"),),
    handlers={
        "buckets.list": _list_buckets,
        "buckets.patch": _write_on_conditions,
        "buckets.update": _write_on_conditions,
        "buckets.delete": _write_on_conditions,
        "buckets.getIamPolicy": _get_policy,
        "buckets.setIamPolicy": _set_policy,
        "buckets.testIamPermissions": _test_permissions,
        "objects.get": _no_object,
        "objects.insert": _accept_object,
        "objects.list": _list_nothing,
        "anywhereCaches.list": _list_nothing,
    },
)

# Artifact Registry


def _fill_repository(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    body = record.body
    if not old:
        if body.get("format", "FORMAT_UNSPECIFIED") == "FORMAT_UNSPECIFIED":
            raise Refusal(400, "a repository format must be specified")
        host = f"{call.location}-{body['format'].lower()}.pkg.dev"
        body["registryUri"] = f"{host}/{record.project}/{record.id}"
        body["satisfiesPzs"] = body["satisfiesPzi"] = False
        body["vulnerabilityScanningConfig"] = {
            **body.get("vulnerabilityScanningConfig", {}),
            "enablementState": "SCANNING_DISABLED",
            "enablementStateReason": "API containerscanning.googleapis.com is not enabled.",
        }
    elif body.get("format") != old.get("format"):
        raise Refusal(400, "The format of a repository cannot be changed")
    body["updateTime"] = cloud.time()


def _metadata(_cloud: Cloud, call: Call, _kind: ResourceKind, _record: Record) -> Json:
    return {"@type": f"type.googleapis.com/google.devtools.artifactregistry.{call.api.version}.OperationMetadata"}


ARTIFACT_REGISTRY: Final = Service(
    name="artifactregistry",
    package="google.devtools.artifactregistry",
    metadata=_metadata,
    kinds=(
        ResourceKind(
            collection="repositories",
            schema="Repository",
            style="longrunning",
            id_in="repositoryId",
            fill=_fill_repository,
        ),
    ),
)
