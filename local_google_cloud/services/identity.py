"""Identity and secrets: IAM's service accounts and custom roles, Policy Troubleshooter, Cloud KMS, Secret Manager.

A key of Cloud KMS exists, with a policy, as soon as a request names it; nothing is encrypted. The versions of a secret,
which contain its values, are not stored.
"""

from __future__ import annotations

from typing import Final

from local_google_cloud.requests.errors import Refusal, not_found
from local_google_cloud.resources.actions import mask_paths, read_policy, write_policy
from local_google_cloud.resources.resource_kinds import Call, ResourceKind, Service
from local_google_cloud.state.authorization import Caller, held_permissions
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json

# IAM


def _fill_account(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    if old:
        return
    email = f"{call.body['accountId']}@{record.project}.iam.gserviceaccount.com"
    path = f"projects/{record.project}/serviceAccounts/{email}"
    record.name = f"iam/{path}"
    unique = str(10**20 + cloud.store.serial() * 104_729)
    record.body |= {
        "name": path,
        "projectId": record.project,
        "uniqueId": unique,
        "email": email,
        "oauth2ClientId": unique,
    }


def _get_account(cloud: Cloud, call: Call) -> Json:
    """Return a service account, given its e-mail address or its unique id."""
    record = cloud.store.get(call.name)
    if record is not None:
        return record.body
    unique = call.path.rpartition("/")[2]
    for account in cloud.store.all(call.project):
        if account.body.get("uniqueId") == unique:
            return account.body
    raise not_found(call.path)


def _patch_account(cloud: Cloud, call: Call) -> Json:
    record = cloud.existing(call.name)
    for path in mask_paths(call.body.get("updateMask", "")):
        if path not in ("displayName", "description"):
            raise Refusal(400, f"Invalid field mask path: {path}")
        record.body[path] = call.body.get("serviceAccount", {}).get(path, "")
    cloud.store.put(record)
    return record.body


def _fill_role(_cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if not old:
        record.body["name"] = record.name.removeprefix("iam/")


IAM: Final = Service(
    name="iam",
    kinds=(
        ResourceKind(
            collection="serviceAccounts",
            schema="ServiceAccount",
            wrapper="serviceAccount",
            id_in="accountId",
            id_form=r"[a-z](?:[-a-z0-9]{4,28}[a-z0-9])",  # 6 to 30 characters
            fill=_fill_account,
            etag="etag",
        ),
        ResourceKind(
            collection="roles",
            schema="Role",
            wrapper="role",
            id_in="roleId",
            id_form=r"[a-zA-Z0-9_.]{3,64}",
            fill=_fill_role,
            etag="etag",
        ),
    ),
    handlers={
        "serviceAccounts.patch": _patch_account,
        "serviceAccounts.get": _get_account,
    },
)

# Policy Troubleshooter, which tells everything to everybody here


def _troubleshoot(cloud: Cloud, call: Call) -> Json:
    access = call.body["accessTuple"]
    email = access["principal"]
    kind = "serviceAccount" if email.endswith(".gserviceaccount.com") else "user"
    path = access["fullResourceName"].removeprefix("//").partition("/")[2]
    resource = path.removeprefix("projects/_/")  # of a bucket
    held = held_permissions(cloud, Caller(f"{kind}:{email}"), resource, [access["permission"]])
    return {"accessTuple": access, "overallAccessState": "CAN_ACCESS" if held else "CANNOT_ACCESS"}


POLICY_TROUBLESHOOTER: Final = Service(
    name="policytroubleshooter", needs_enabling=False, handlers={"iam.troubleshoot": _troubleshoot}
)

# Cloud KMS


def _key(cloud: Cloud, call: Call) -> Record:
    record = cloud.store.get(call.name)
    if record is None:
        record = Record(name=call.name, project=call.project, body={"name": call.path, "purpose": "ENCRYPT_DECRYPT"})
        cloud.store.put(record)
    return record


CLOUD_KMS: Final = Service(
    name="cloudkms",
    needs_enabling=False,  # keys are in another project, whose APIs no stack enables
    handlers={
        "cryptoKeys.get": lambda cloud, call: _key(cloud, call).body,
        "cryptoKeys.getIamPolicy": lambda cloud, call: read_policy(_key(cloud, call)),
        "cryptoKeys.setIamPolicy": lambda cloud, call: write_policy(
            cloud, _key(cloud, call), call.body.get("policy", {})
        ),
    },
)

# Secret Manager


def _fill_secret(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if not old:
        name = f"projects/{cloud.judge.project_number(record.project)}/secrets/{record.id}"
        record.body |= {"name": name, "createTime": cloud.time()}


SECRET_MANAGER: Final = Service(
    name="secretmanager",
    kinds=(ResourceKind(collection="secrets", schema="Secret", id_in="secretId", fill=_fill_secret, etag="etag"),),
)
