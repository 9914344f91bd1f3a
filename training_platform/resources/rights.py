"""Evaluates, as IAM does, whether a principal has a permission on a resource: grants, groups, roles and conditions.

A resource is named relative to its API, ``projects/p/secrets/s``. The name of a bucket contains no project, so it is
``buckets/b``. A grant on a resource applies to everything below it. Folders, organizations and deny policies are not
supported. Source: IAM docs, policy inheritance, principal identifiers and conditions, read 2026-11-24.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl

from training_platform.catalog.permissions import Need, permissions, permissions_of
from training_platform.catalog.types import Json

WORKLOAD_USER: Final = "roles/iam.workloadIdentityUser"


class AnyGrant(Protocol):
    """A role of one principal on one resource. It is planned (``resources.grants``) or part of an IAM policy."""

    @property
    def principal(self) -> str:
        """The principal, as an IAM member."""

    @property
    def role(self) -> str:
        """The role's name, ``roles/...`` or ``projects/p/roles/...``."""

    @property
    def resource(self) -> str:
        """The resource whose policy contains the grant."""

    @property
    def condition(self) -> str:
        """The expression of the grant's condition, empty if it has none."""

    @property
    def permissions(self) -> Collection[str] | None:
        """The permissions of a custom role, None for a predefined role."""


class PolicyGrant(NamedTuple):
    """A grant in an IAM policy."""

    principal: str
    role: str
    resource: str
    condition: str = ""
    permissions: Collection[str] | None = None


class Requirement(NamedTuple):
    """A permission on a resource that a call requires. ``agent`` names Google's account if that account needs it."""

    permission: str
    resource: str
    agent: str = ""


class UnsupportedCondition(Exception):
    """An expression that this module cannot evaluate. A grant with such a condition grants nothing."""


@dataclass(frozen=True, kw_only=True)
class Rights:
    """Evaluates who has which permissions.

    ``groups`` maps each group's e-mail to its members, which may be groups too. ``project_of`` returns the project of a
    bucket by its name, empty if unknown.
    """

    grants: Collection[AnyGrant]
    groups: Mapping[str, Collection[str]]
    project_of: Callable[[str], str]

    def grant_of(
        self,
        principal: str,
        permission: str,
        resource: str,
        *,
        time: datetime | None = None,
        modified_roles: Collection[str] = (),
    ) -> AnyGrant | None:
        """Return a grant that gives a principal a permission on a resource, or None.

        ``modified_roles`` are the roles that the call grants or revokes if it changes a policy.
        """
        identities = self.identities(principal)
        covered = set(self.ancestry(resource))
        for grant in self.grants:
            if grant.principal not in identities or grant.resource not in covered:
                continue
            if permission in role_permissions(grant) and _holds(grant.condition, resource, time, modified_roles):
                return grant
        return None

    def identities(self, principal: str) -> frozenset[str]:
        """Return all names by which policies may refer to a principal.

        A workload of a workload identity pool also has the identity of every service account that it may act as. Nobody
        else can be that account, and its pods or pipelines exchange their token immediately. A workload may have
        attributes as a query, ``principal://iam.googleapis.com/.../subject/S?attribute.environment=prod``.
        """
        names = {"allUsers", "allAuthenticatedUsers", *_of_pool(principal)}
        kind, _, address = principal.partition(":")
        if kind in ("user", "group"):
            names.add(f"domain:{address.partition('@')[2]}")
        before = 0
        while before != len(names):
            before = len(names)
            names |= {f"group:{name}" for name, members in self.groups.items() if not names.isdisjoint(members)}
        if kind == "principal" or ".svc.id.goog[" in principal:
            accounts = [g for g in self.grants if g.role == WORKLOAD_USER and g.principal in names]
            names |= {f"serviceAccount:{grant.resource.rpartition('/')[2]}" for grant in accounts}
        return frozenset(names)

    def ancestry(self, resource: str) -> Iterator[str]:
        """Yield a resource and everything above it; its project is last."""
        parts = resource.split("/")
        for end in range(len(parts), 1, -1):
            yield "/".join(parts[:end])
        if parts[0] == "buckets":
            yield f"projects/{self.project_of(parts[1])}"


def role_permissions(grant: AnyGrant) -> Collection[str]:
    """Return the permissions of a grant's role. Permissions that no method in the catalogue requires may be missing."""
    return permissions_of(grant.role) if grant.permissions is None else grant.permissions


def requirements(method: str, resource: str, body: Json) -> Iterator[Requirement]:
    """Yield the permissions that a call of a method requires, given the resource in its path and its body.

    Raises KeyError for a method that is not in the catalogue.
    """
    project = resource.split("/")[1] if resource.startswith("projects/") else ""
    for need in permissions().methods[method]:
        for name in _resources(need, resource, body, project):
            yield Requirement(need.permission, name, agent=need.agent)


def _resources(need: Need, resource: str, body: Json, project: str) -> Iterator[str]:
    if not need.field:
        yield resource
        return
    for value in dict.fromkeys(_values(body, need.field.split("."))):
        name = f"projects/{value}" if need.field.endswith("Project") else resource_named(value, project)
        at_home = need.foreign and name.startswith(f"projects/{project}/")
        if name and not at_home and need.kind in ("", name.split("/")[-2]):
            yield name


def _values(message: Any, path: list[str]) -> Iterator[str]:
    """Yield the strings at a path of fields. In a list, the path applies to each item."""
    if isinstance(message, list):
        for item in message:
            yield from _values(item, path)
    elif not path:
        if isinstance(message, str) and message:
            yield message
    elif isinstance(message, dict):
        yield from _values(message.get(path[0]), path[1:])


_IMAGE: Final = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/([^/:@]+)")


def resource_named(value: str, project: str) -> str:
    """Return the resource that a field of a request names, or an empty string if it is not one of Google's resources.

    ``project`` is the project of the caller.
    """
    image = _IMAGE.match(value)
    if image:
        return f"projects/{image[2]}/locations/{image[1]}/repositories/{image[3]}"
    if value.startswith("gs://"):
        bucket, _, name = value.removeprefix("gs://").partition("/")
        return f"buckets/{bucket}/objects/{name}" if name else f"buckets/{bucket}"
    if "projects/" in value:
        path = value.partition("projects/")[2]
        return f"projects/{path}"
    if "@" in value:
        host = value.partition("@")[2]
        home = host.removesuffix(".iam.gserviceaccount.com") if host.endswith(".iam.gserviceaccount.com") else project
        return f"projects/{home}/serviceAccounts/{value}"
    return ""


def _of_pool(principal: str) -> Iterator[str]:
    """Yield a principal, and the principal sets in its workload identity pool to which it belongs."""
    name, _, attributes = principal.partition("?")
    yield name
    if name.startswith("principal://"):
        pool = name.removeprefix("principal://").partition("/subject/")[0]
        yield f"principalSet://{pool}/*"
        for attribute, value in parse_qsl(attributes):
            yield f"principalSet://{pool}/{attribute}/{value}"


# Conditions, as far as this platform writes them

_TIME: Final = re.compile(r'request\.time\s*(<=|>=|<|>)\s*timestamp\("([^"]+)"\)')
_NAME: Final = re.compile(r'resource\.name\s*(?:==\s*"([^"]*)"|\.(startsWith|endsWith)\("([^"]*)"\))')
_ROLES: Final = re.compile(
    r"api\.getAttribute\(\s*['\"]iam\.googleapis\.com/modifiedGrantsByRole['\"]\s*,\s*\[\]\s*\)"
    r"\.hasOnly\(\s*\[([^\]]*)\]\s*\)"
)
_COMPARE: Final[Mapping[str, Callable[[datetime, datetime], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _holds(expression: str, resource: str, time: datetime | None, modified_roles: Collection[str]) -> bool:
    try:
        return condition_holds(expression, resource, time or datetime.now(UTC), modified_roles)
    except UnsupportedCondition:
        return False


def condition_holds(expression: str, resource: str, time: datetime, modified_roles: Collection[str]) -> bool:
    """Return True if a condition is met. It consists of parts joined by ``&&``, and alternatives joined by ``||``.

    Raises UnsupportedCondition.
    """
    if not expression:
        return True
    alternatives = [alternative.split("&&") for alternative in expression.split("||")]
    return any(
        all(_part_holds(part.strip(), resource, time, modified_roles) for part in parts) for parts in alternatives
    )


def _part_holds(part: str, resource: str, time: datetime, modified_roles: Collection[str]) -> bool:
    if match := _TIME.fullmatch(part):
        return _COMPARE[match[1]](time, datetime.fromisoformat(match[2]))
    if match := _NAME.fullmatch(part):
        name = f"projects/_/{resource}" if resource.startswith("buckets/") else resource
        if match[2]:
            return name.startswith(match[3]) if match[2] == "startsWith" else name.endswith(match[3])
        return name == match[1]
    if match := _ROLES.fullmatch(part):
        allowed = set(re.findall(r"['\"]([^'\"]+)['\"]", match[1]))
        return set(modified_roles) <= allowed
    raise UnsupportedCondition(part)


def described(requirement: Requirement) -> str:
    """Return a requirement in the wording of IAM's error message."""
    return f"Permission '{requirement.permission}' denied on resource '{requirement.resource}' (or it may not exist)."


def lacking(
    rights: Rights,
    principal: str,
    needs: Iterable[Requirement],
    agent: Callable[[str], str],
    *,
    time: datetime | None = None,
    modified_roles: Collection[str] = (),
) -> Iterator[tuple[str, Requirement]]:
    """Yield each unmet requirement with the member that does not meet it; ``agent`` returns an agent as a member."""
    for need in needs:
        who = agent(need.agent) if need.agent else principal
        if rights.grant_of(who, need.permission, need.resource, time=time, modified_roles=modified_roles) is None:
            yield who, need
