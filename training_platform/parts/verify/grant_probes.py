"""Probes of grants: whether IAM lets the people and accounts of stack files do what the files promise them.

Policy Troubleshooter answers for accounts that nobody impersonates: jobs, nodes, pipelines, Google's agents.
It takes no group, so a test account in the team's group asks for itself, by ``testIamPermissions``.
Source: discovery document of Policy Troubleshooter v3, revision 20260111.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Final

from training_platform.catalog.types import Json
from training_platform.clients.google_api import GoogleApi
from training_platform.parts.verify.probes import Answer, Platform, proven, refuted, undecided
from training_platform.rules.rights import Promise

_PODS: Final = ".svc.id.goog["  # a workload of a cluster, which Policy Troubleshooter does not take
_OF_PROJECT: Final = re.compile(r"\{(.+)\}")
_SERVICES: Final = {
    "repositories": "artifactregistry",
    "secrets": "secretmanager",
    "serviceAccounts": "iam",
    "views": "logging",
}
"""The service of a resource, by its collection; of others it is that of projects."""


def tenancy_grants(platform: Platform) -> Iterator[Answer]:
    """Answer for each promise to a service account, by Policy Troubleshooter."""
    api = platform.api("policytroubleshooter")

    @cache
    def email(principal: str) -> str:
        """Return an address; an agent's in a plan has the id of a project in place of its number."""
        address = principal.partition(":")[2]
        project = _OF_PROJECT.search(address)
        if project is None:
            return address
        number = platform.api("cloudresourcemanager").call("GET", f"projects/{project[1]}")["projectNumber"]
        return address.replace(project[0], str(number))

    def states(promise: Promise) -> Iterator[tuple[str, str]]:
        for permission in promise.permissions:
            access = {
                "principal": email(promise.principal),
                "fullResourceName": full_name(promise.resource),
                "permission": permission,
                # Some grants have a condition on the time.
                "conditionContext": {"request": {"receiveTime": datetime.now(UTC).isoformat()}},
            }
            answer = api.call("POST", "iam:troubleshoot", {"accessTuple": access})
            yield permission, str(answer.get("overallAccessState"))

    kept = 0
    for promise in platform.promises:
        if not promise.principal.startswith("serviceAccount:") or _PODS in promise.principal:
            continue
        answers = dict(states(promise))
        lacking = [permission for permission, state in answers.items() if state == "CANNOT_ACCESS"]
        unknown = [permission for permission, state in answers.items() if state.startswith(("UNKNOWN", "OVERALL"))]
        if lacking:
            yield _broken(promise, lacking)
        elif unknown:
            says = f"{promise.who}: whether they can {promise.does} is not known"
            yield undecided(says, f"Policy Troubleshooter does not show you {', '.join(unknown)}")
        else:
            kept += 1
    if kept:
        yield proven(f"{kept} promises to accounts are kept", "Policy Troubleshooter, CAN_ACCESS")


def tenancy_members(platform: Platform) -> Iterator[Answer]:
    """Answer for each promise to the members of the test group, as an account in it."""
    group, account = platform.options["group"], platform.options["account"]
    promises = [promise for promise in platform.promises if promise.principal == f"group:{group}"]
    kept = 0
    for promise in promises:
        held = set(held_permissions(platform, account, promise))
        lacking = [permission for permission in promise.permissions if permission not in held]
        if lacking:
            yield _broken(promise, lacking)
        else:
            kept += 1
    if kept:
        yield proven(f"{kept} promises to members are kept", "testIamPermissions, as an account in the group")


def _broken(promise: Promise, lacking: Iterable[str]) -> Answer:
    return refuted(f"{promise.who} cannot {promise.does}", f"no {', '.join(lacking)} on {promise.resource}")


def held_permissions(platform: Platform, account: str, promise: Promise) -> Iterable[str]:
    """Return the permissions of a promise that an account says it has."""
    kind, _, name = promise.resource.partition("/")
    if kind == "buckets":
        storage = platform.api("storage", account=account)
        for permission in promise.permissions:
            answer = storage.call("GET", f"b/{name}/iam/testPermissions", permissions=permission)
            yield from answer.get("permissions") or ()
        return
    api: GoogleApi = platform.api(_service(promise.resource), account=account)
    body: Json = {"permissions": list(promise.permissions)}
    yield from api.call("POST", f"{promise.resource}:testIamPermissions", body).get("permissions") or ()


def full_name(resource: str) -> str:
    """Return a resource as Policy Troubleshooter names it. Source: IAM docs, full resource names, general knowledge."""
    kind, _, name = resource.partition("/")
    if kind == "buckets":
        return f"//storage.googleapis.com/projects/_/buckets/{name}"
    return f"//{_service(resource)}.googleapis.com/{resource}"


def _service(resource: str) -> str:
    *_, collection, _ = resource.split("/")
    return _SERVICES.get(collection, "cloudresourcemanager")
