"""IAM policies of any resource: read, write whole, and compare etags."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from training_platform.sandbox.cloud.requests.errors import conflict, invalid
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

Json = dict[str, Any]
EMPTY: Final = {"version": 1, "etag": "ACAB"}  # Google's own etag of a policy that was never set
_MEMBER: Final = re.compile(
    r"(allUsers|allAuthenticatedUsers)\Z"
    r"|(user|serviceAccount|group|domain|projectOwner|projectEditor|projectViewer|deleted:\w+|principal|principalSet):.+"
)
_ROLE: Final = re.compile(r"(roles/[\w.]+|(projects|organizations)/[^/]+/roles/[\w.]+)\Z")
_OWN_ACCOUNT: Final = re.compile(r"serviceAccount:([^@]+)@([a-z0-9-]+)\.iam\.gserviceaccount\.com\Z")
_POOL: Final = re.compile(r"serviceAccount:([a-z0-9-]+)\.svc\.id\.goog\[[^\]/]+/[^\]/]+\]\Z")


def read_policy(record: Record) -> Json:
    """Return a resource's policy."""
    return dict(record.meta.get("policy", EMPTY))


def write_policy(cloud: Cloud, record: Record, policy: Json) -> Json:
    """Replace a resource's policy. Raises ApiError for a stale etag, and for members and roles that cannot be."""
    held = read_policy(record)
    if policy.get("etag", held["etag"]) != held["etag"]:
        raise conflict(
            "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff."
        )
    bindings = [each for each in policy.get("bindings", ()) if each.get("members")]
    for binding in bindings:
        if not _ROLE.match(binding.get("role", "")):
            raise invalid(f"Role {binding.get('role')} is not supported for this resource.")
        for member in binding["members"]:
            _check_member(cloud, member)
    etag = base64.b64encode(f"policy-{cloud.store.serial()}".encode()).decode()
    version = max([1, *(3 for each in bindings if "condition" in each)])
    record.meta["policy"] = {"version": version, "etag": etag, "bindings": bindings}
    if policy.get("auditConfigs"):
        record.meta["policy"]["auditConfigs"] = policy["auditConfigs"]
    cloud.store.put(record)
    return read_policy(record)


def _check_member(cloud: Cloud, member: str) -> None:
    if not _MEMBER.match(member):
        raise invalid(f"Invalid member '{member}': the type of the identity is missing or unknown.")
    account = _OWN_ACCOUNT.match(member)
    if account and account[2] in cloud.projects.ids():
        email = member.partition(":")[2]
        if cloud.store.get(f"iam/projects/{account[2]}/serviceAccounts/{email}") is None:
            raise invalid(f"Service account {email} does not exist.")
    pool = _POOL.match(member)
    if pool and pool[1] in cloud.projects.ids() and not cloud.has_identity_pool(pool[1]):
        raise invalid(f"Identity Pool does not exist ({pool[1]}.svc.id.goog).")
