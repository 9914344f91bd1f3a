"""Probes of grants: whether IAM gives the people and accounts in stack files the permissions that the files promise.

Policy Troubleshooter tests accounts that cannot be impersonated: jobs, nodes, pipelines, Google's agents. It does not
accept a group, so a test account in the team's group tests its own permissions with ``testIamPermissions``. Source:
discovery document of Policy Troubleshooter v3, revision 20260111.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Final

from training_platform.clients.google_api import GoogleApi
from training_platform.parts.verify.probes import Answer, Platform, proven, refuted, undecided
from training_platform.rules.rights import NeededRight

_PODS: Final = ".svc.id.goog["  # in the address of a cluster's workload, which Policy Troubleshooter does not take
_PROJECT_ID: Final = re.compile(r"\{(.+)\}")
_SERVICES: Final = {
    "repositories": "artifactregistry",
    "secrets": "secretmanager",
    "serviceAccounts": "iam",
    "views": "logging",
}
"""The API service of each kind of resource. Kinds that are not listed belong to the service of projects."""


def tenancy_grants(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on each permission that stack files promise to a service account, from Policy Troubleshooter."""
    api = platform.api("policytroubleshooter")

    @cache
    def email(principal: str) -> str:
        return _email(platform, principal)

    kept = 0
    for promise in platform.promises:
        if not promise.principal.startswith("serviceAccount:") or _PODS in promise.principal:
            continue
        lacking: list[str] = []
        unknown: list[str] = []
        for permission in promise.permissions:
            state = _access_state(api, email(promise.principal), promise.resource, permission)
            if state == "CANNOT_ACCESS":
                lacking.append(permission)
            elif state.startswith(("UNKNOWN", "OVERALL")):
                unknown.append(permission)
        if lacking:
            yield _broken(promise, lacking)
        elif unknown:
            says = f"{promise.who}: unknown whether they can {promise.does}"
            yield undecided(says, f"Policy Troubleshooter does not show you {', '.join(unknown)}")
        else:
            kept += 1
    if kept:
        yield proven(f"{kept} promised rights of accounts are granted", "Policy Troubleshooter, CAN_ACCESS")


def _email(platform: Platform, principal: str) -> str:
    """Return the address of a principal. In a planned agent's address, the project id is replaced by the number."""
    address = principal.partition(":")[2]
    project = _PROJECT_ID.search(address)
    if project is None:
        return address
    body = platform.api("cloudresourcemanager").call("GET", f"projects/{project[1]}")
    return address.replace(project[0], str(body["projectNumber"]))


def _access_state(api: GoogleApi, email: str, resource: str, permission: str) -> str:
    access = {
        "principal": email,
        "fullResourceName": _full_name(resource),
        "permission": permission,
        "conditionContext": {"request": {"receiveTime": datetime.now(UTC).isoformat()}},  # some grants have an end
    }
    response = api.call("POST", "iam:troubleshoot", {"accessTuple": access})
    return str(response.get("overallAccessState"))


def tenancy_members(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on each permission that is promised to the test group, tested by an account in the group."""
    group = platform.options["group"]
    account = platform.options["account"]
    kept = 0
    for promise in platform.promises:
        if promise.principal != f"group:{group}":
            continue
        held = set(_held_permissions(platform, account, promise))
        lacking = [permission for permission in promise.permissions if permission not in held]
        if lacking:
            yield _broken(promise, lacking)
        else:
            kept += 1
    if kept:
        yield proven(f"{kept} promised rights of members are granted", "testIamPermissions, as an account in the group")


def _broken(promise: NeededRight, lacking: Iterable[str]) -> Answer:
    return refuted(f"{promise.who} cannot {promise.does}", f"no {', '.join(lacking)} on {promise.resource}")


def _held_permissions(platform: Platform, account: str, promise: NeededRight) -> Iterator[str]:
    """Yield the permissions in a promise that an account really has, as its own request to IAM shows."""
    kind, _, name = promise.resource.partition("/")
    if kind == "buckets":
        storage = platform.api("storage", account=account)
        for permission in promise.permissions:
            response = storage.call("GET", f"b/{name}/iam/testPermissions", permissions=permission)
            yield from response.get("permissions") or ()
        return
    api = platform.api(_service(promise.resource), account=account)
    body = {"permissions": list(promise.permissions)}
    response = api.call("POST", f"{promise.resource}:testIamPermissions", body)
    yield from response.get("permissions") or ()


def _full_name(resource: str) -> str:
    """Return the full resource name. Source: IAM docs, full resource names, general knowledge."""
    kind, _, name = resource.partition("/")
    if kind == "buckets":
        return f"//storage.googleapis.com/projects/_/buckets/{name}"
    return f"//{_service(resource)}.googleapis.com/{resource}"


def _service(resource: str) -> str:
    *_, collection, _ = resource.split("/")
    return _SERVICES.get(collection, "cloudresourcemanager")
