"""The caller of a request, the IAM policies in the cloud, and refusals for missing permissions with Google's messages.

A bearer token names the caller: ``as:user:ada@example.com``, ``as:serviceAccount:...``, or ``as:group:...`` for a
person who is only in that group. Any other token means the owner of the projects, whose requests are not checked. The
``Judge`` decides, by the policies, what a member may do. If an operation's name contains no project, everyone who may
start it may also poll it.

Source of the messages: refusals that users of Google Cloud quoted, read 2026-11-24. The message about a service agent
is inferred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from local_google_cloud.requests.errors import Refusal, error_info
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.questions import Access, Grant, Missing, Policies
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json

_USE: Final = "serviceusage.services.use"
_PEOPLE: Final = ("user:", "group:")
_NEEDS_QUOTA_PROJECT: Final = "cloudquotas"


class Caller(NamedTuple):
    """The sender of a request, and the quota project that the request names ("" if it names none)."""

    member: str
    quota_project: str = ""


def caller_of(headers: Mapping[str, str]) -> Caller | None:
    """Return the caller that a request's headers name, or None for the owner of the projects."""
    token = headers.get("authorization", "").removeprefix("Bearer ")
    if not token.startswith("as:"):
        return None
    return Caller(token.removeprefix("as:"), headers.get("x-goog-user-project", ""))


def authorize(cloud: Cloud, caller: Caller | None, access: Access) -> None:
    """Raise Refusal with Google's message if a caller may not make a request."""
    if caller is None:
        return
    policies = policies_of(cloud)
    if caller.quota_project:
        quota_project = cloud.projects.resolve(caller.quota_project)
        if not cloud.judge.held(caller.member, [_USE], f"projects/{quota_project}", policies):
            raise _quota_project_denied(quota_project, access.service)
    elif access.service == _NEEDS_QUOTA_PROJECT and caller.member.startswith(_PEOPLE):
        raise _quota_project_missing()
    access = access._replace(modified_roles=_modified_roles(cloud, access))
    for missing in cloud.judge.lacking(caller.member, access, policies):
        raise _denied(access.service, missing)


def held_permissions(cloud: Cloud, caller: Caller | None, resource: str, names: Collection[str]) -> list[str]:
    """Return those of the named permissions that a caller has on a resource. The owner has all."""
    return list(names) if caller is None else cloud.judge.held(caller.member, names, resource, policies_of(cloud))


def policies_of(cloud: Cloud) -> Policies:
    """Return the IAM policies in the cloud, and the data needed to evaluate groups, conditions and service agents."""
    return Policies(
        grants=[*_policy_grants(cloud)],
        groups=cloud.settings.groups,
        numbers=cloud.projects.numbers,
        buckets={bucket.id: bucket.project for bucket in cloud.store.children("storage/b")},
        enabled={(api.project, api.id) for api in cloud.store.children("serviceusage/projects/-/services")},
        time=datetime.fromtimestamp(cloud.clock.now(), UTC),
    )


def resource_of(cloud: Cloud, service: str, path: str, project: str) -> str:
    """Return the resource that a path names, in the format of ``resources.rights``, or "" if its project is unknown."""
    if service == "storage":
        _, bucket, *below = [*path.split("/"), ""]
        if not bucket:
            return f"projects/{project}"
        if below[0] == "o":
            return "/".join(["buckets", bucket, "objects", *below[1:]]).rstrip("/")
        return f"buckets/{bucket}"
    if path.startswith(("projects/", "billingAccounts/")):
        return path
    record = cloud.store.get(f"{service}/{path}")
    return f"projects/{project or (record.project if record else '')}" if project or record else ""


def _policy_grants(cloud: Cloud) -> Iterator[Grant]:
    for record in cloud.store.all():
        for binding in record.meta.get("policy", {}).get("bindings", ()):
            role = cloud.store.get(f"iam/{binding['role']}")
            custom = role.body.get("includedPermissions", ()) if role else None
            condition = binding.get("condition", {}).get("expression", "")
            for member in binding["members"]:
                yield Grant(
                    member,
                    binding["role"],
                    resource=_resource_of_record(record),
                    condition=condition,
                    permissions=custom,
                )


def _resource_of_record(record: Record) -> str:
    service, _, path = record.name.partition("/")
    return f"buckets/{record.id}" if service == "storage" else path


def _modified_roles(cloud: Cloud, access: Access) -> frozenset[str]:
    """Return the roles that a request grants or revokes by changing a policy."""
    if not access.method.endswith(".setIamPolicy"):
        return frozenset()
    policies = (
        record.meta.get("policy", {}) for record in cloud.store.all() if _resource_of_record(record) == access.resource
    )
    before = _members_by_role(next(policies, {}))
    after = _members_by_role(access.request.get("policy", access.request))
    return frozenset(role for role, _ in before ^ after)


def _members_by_role(policy: Json) -> set[tuple[str, str]]:
    return {(binding["role"], member) for binding in policy.get("bindings", ()) for member in binding["members"]}


# Refusals


def _denied(service: str, missing: Missing) -> Refusal:
    permission = missing.permission
    resource = missing.resource
    address = missing.member.partition(":")[2]
    if permission == "iam.serviceAccounts.actAs":
        account = resource.rpartition("/")[2]
        return Refusal(403, f"Permission '{permission}' denied on service account {account} (or it may not exist).")
    if missing.of_agent:
        message = f"Permission '{permission}' denied on resource '{resource}' (or it may not exist) for {address}."
    elif service == "storage":
        if ".objects." in permission:
            kind = "Storage object"
        elif resource.startswith("buckets/"):
            kind = "Storage bucket"
        else:
            kind = "project"
        message = (
            f"{address} does not have {permission} access to the Google Cloud {kind}. Permission '{permission}' denied "
            "on resource (or it may not exist)."
        )
    elif service == "compute":
        message = f"Required '{permission}' permission for '{resource}'"
    elif service == "container":
        message = f'Required "{permission}" permission(s) for "{resource}".'
    else:
        name = f"//{service}.googleapis.com/{resource}"
        message = f"Permission '{permission}' denied on resource '{name}' (or it may not exist)."
    info = error_info("IAM_PERMISSION_DENIED", {"permission": permission, "resource": resource}, "iam.googleapis.com")
    return Refusal(403, message, details=(info,))


def _quota_project_denied(project: str, service: str) -> Refusal:
    info = error_info(
        "USER_PROJECT_DENIED", {"consumer": f"projects/{project}", "service": f"{service}.googleapis.com"}
    )
    page = f"https://console.developers.google.com/iam-admin/iam/project?project={project}"
    return Refusal(
        403,
        f"Caller does not have required permission to use project {project}. Grant the caller the "
        f"roles/serviceusage.serviceUsageConsumer role, or a custom role with the {_USE} permission, by "
        f"visiting {page} and then retry. Propagation of the new permission may take a few minutes.",
        details=(info,),
    )


def _quota_project_missing() -> Refusal:
    host = f"{_NEEDS_QUOTA_PROJECT}.googleapis.com"
    return Refusal(
        403,
        f"Your application is authenticating by using local Application Default Credentials. The {host} API requires "
        "a quota project, which is not set by default. To learn how to set your quota project, see "
        "https://cloud.google.com/docs/authentication/adc-troubleshooting/user-creds .",
        details=(error_info("SERVICE_DISABLED", {"service": host, "consumer": "projects/764086051850"}),),
    )
