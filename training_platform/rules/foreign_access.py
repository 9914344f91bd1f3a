"""Roles of one team on another team's resources: its buckets, secrets, images, account, namespaces and folders.

A data set in another team's bucket causes such a role, and `own_resources.py` can add one. The owner of a bucket
consents in its own file, with ``readers`` and ``writers``. Every check reports the roles without consent; a comparison
also reports which of them a change adds. If no stack has the bucket, a data set in the environment's file says who may
use it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.storage import TeamDataSpec
from training_platform.config.model.team import Team
from training_platform.config.names import Locator
from training_platform.config.reading.declaration import Draft, Subject, declare, finding
from training_platform.config.reading.finding import Path, dotted
from training_platform.config.reading.section import listed
from training_platform.config.workspace import Workspace
from training_platform.resources.grants import plan_grants
from training_platform.resources.kubernetes_objects import PERSISTENT_VOLUME, ROLE_BINDING
from training_platform.resources.plan import Plan, Resource, own_anchor
from training_platform.resources.scope import (
    bucket_id,
    jobs_account_email,
    secret_id,
    team_repository_id,
    team_scope,
)
from training_platform.resources.team_account import BUCKET_VIEWER
from training_platform.views.inputs import at, keys, rows

FOREIGN_ACCESS = declare(
    "foreign-access",
    "Find a role that one team has on another team's bucket, secret, account, namespace, folder or images.",
    ruleset="rights",
    source="house rule: only a team's own file can give other teams access to its resources",
    refused_by="`check` only. Google Cloud and Kubernetes grant the role",
    excuse="exemption",
)


class ForeignGrant(NamedTuple):
    """A role that people or jobs of one team have on a resource of another team, ``owner``; ``planned`` grants it."""

    planned: Resource
    principal: str
    team: str
    role: str
    resource: str
    owner: str


READS = frozenset({BUCKET_VIEWER, "roles/storage.objectViewer"})
WRITES = READS | {"roles/storage.objectUser", "roles/storage.objectCreator"}
_MOST_PRINCIPALS = 2  # that a finding names


class Teams:
    """The members and resources of each team, and the teams that may use each team's buckets."""

    def __init__(self, workspace: Workspace) -> None:
        self._of_principal: dict[str, set[str]] = defaultdict(set)
        self._of_resource: dict[str, set[str]] = defaultdict(set)
        self._consented: dict[tuple[str, str], frozenset[str]] = {}  # roles by resource and stack
        self._buckets: dict[str, Path] = {}  # sections by resource
        for stack, team, home in workspace.teams():
            scope = team_scope(team, home)
            project = f"projects/{scope.project}"
            account = jobs_account_email(scope)
            for principal in (*team.members, f"serviceAccount:{account}", f"namespace:{team.environment}/{team.name}"):
                self._of_principal[principal].add(stack.name)
            owned = [f"buckets/{bucket_id(scope, key)}" for key in team.buckets]
            owned += [f"{project}/secrets/{secret_id(scope, key)}" for key in team.secrets]
            owned += [f"{project}/serviceAccounts/{account}", f"namespaces/{team.environment}/{team.name}"]
            if home.images:
                images = team_repository_id(team.environment, team.name)
                owned.append(f"projects/{home.project}/locations/{home.images.location}/repositories/{images}")
            for directory in team.directories.values():
                instance = home.filestore.get(directory.filestore)
                if instance and directory.of_folder(instance):
                    share = f"shares/{team.environment}/{instance.share}"
                    owned += [share, f"{share}/{team.name}"]
            for resource in owned:
                self._of_resource[resource].add(stack.name)
            for key, spec in team.buckets.items():
                bucket = f"buckets/{bucket_id(scope, key)}"
                self._buckets[bucket] = ("buckets", key)
                readers = chain.from_iterable(workspace.teams_meant(name, team.environment) for name in spec.readers)
                writers = chain.from_iterable(workspace.teams_meant(name, team.environment) for name in spec.writers)
                self._consented.update({(bucket, reader): READS for reader in readers})
                self._consented.update({(bucket, writer): WRITES for writer in writers})

    def without_consent(self, principal: str, role: str, resource: str, stack: str) -> tuple[str, str] | None:
        """Return the stacks of a principal's team and of a resource's owner if the owner did not consent to the role.

        If a principal belongs to several teams, it is treated as a member of the team whose ``stack`` grants the role.
        """
        teams = self._of_principal.get(principal, set())
        other_teams = self._of_resource.get(resource, set()) - teams
        if any(role in self._consented.get((resource, team), ()) for team in teams):
            return None
        if not teams or not other_teams:
            return None
        return stack if stack in teams else min(teams), min(other_teams)

    def section(self, resource: str) -> Path | None:
        """Return the section of a bucket in its team's file, or None for any other resource."""
        return self._buckets.get(resource)


def foreign_access(workspace: Workspace) -> Iterator[Draft]:
    """Find roles of teams on other teams' resources, in every stack whose grants were recorded."""
    for stack in workspace.stacks.values():
        if stack.section is not None:
            yield from _of_other_teams(stack, Locator(stack.section), workspace)
    for stack, team, home in workspace.teams():
        for key, spec in team.data_sets.items():
            if owners(workspace).section(f"buckets/{spec.bucket.name}") is None:
                yield from _of_no_team(stack, ("data_sets", key, "bucket", "name"), team, spec, home)


def _of_no_team(stack: Stack, path: Path, team: Team, spec: TeamDataSpec, home: Environment) -> Iterator[Draft]:
    """Find a team's data set in a bucket that belongs to no stack and that the environment does not allow it to use.

    The environment allows this with a data set of its own.
    """
    bucket = spec.bucket.name
    declared = [row for row in home.data_sets.values() if row.bucket and row.bucket.name == bucket]
    if spec.writable:
        consents = any(row.writer == team.name for row in declared)
        fields = f"teams: [{team.name}], writer: {team.name}"
    else:
        consents = any(row.readable_by(team.name) for row in declared)
        fields = f"teams: [{team.name}]"
    if not consents:
        roles = (BUCKET_VIEWER, "roles/storage.objectUser" if spec.writable else "roles/storage.objectViewer")
        yield finding(
            stack,
            path,
            f"{stack.name} gets roles on bucket {bucket}, which belongs to no team, so {team.environment} has to "
            f"consent",
            rule=FOREIGN_ACCESS,
            allowed=f"a bucket of the team, or a data set of {team.environment} in that bucket with {fields}",
            about=_grant(roles, f"buckets/{bucket}", stack.name),
        )


def _of_other_teams(stack: Stack, locator: Locator, workspace: Workspace) -> Iterator[Draft]:
    """Find roles on other teams' resources in a stack's plan. Roles of one section on one resource are one finding."""
    together: dict[tuple[object, str, str], list[ForeignGrant]] = defaultdict(list)
    for grant in kept_foreign_grants(stack.name, workspace):
        planned = grant.planned
        place = planned.key if planned.own_line is not None else locator.path(planned.name)
        together[place, grant.resource, grant.team].append(grant)
    for (_, resource, team), grants in together.items():
        first = grants[0]
        subject: Subject = stack
        path = locator.path(first.planned.name)
        if first.planned.own_line is not None:
            subject = own_anchor(stack.name, first.planned.own_line)
            path = ()
        principals = listed(sorted({grant.principal for grant in grants}), _MOST_PRINCIPALS)
        roles = sorted({grant.role for grant in grants})
        yield finding(
            subject,
            path,
            f"{team} gets {', '.join(roles)} on {resource} of {first.owner}, for {principals}",
            rule=FOREIGN_ACCESS,
            allowed=_consent(resource, roles, workspace.stacks[team], workspace.stacks[first.owner], workspace),
            resource=f"{first.planned.type} {first.planned.name}",
            about=_grant(roles, resource, team),
        )


def _grant(roles: Iterable[str], resource: str, team: str) -> str:
    """Return a team's roles on a resource in the form in which an exemption names them."""
    return f"{', '.join(sorted(roles))} on {resource} for {team}"


def _consent(resource: str, roles: Iterable[str], stack: Stack, owner: Stack, workspace: Workspace) -> str:
    """Return the field in which the owner's file consents to the roles, if there is one."""
    section = owners(workspace).section(resource)
    if section is None or stack.team is None or not WRITES.issuperset(roles):
        return f"roles of {owner.name} only"
    field = "readers" if READS.issuperset(roles) else "writers"
    name = stack.team.name if stack.environment_name == owner.environment_name else stack.name
    return f"{field}: [{name}] at {dotted(section)} in {owner.source.file}, with which {owner.name} consents"


def keep_foreign_grants(plan: Plan, environment: str, workspace: Workspace) -> None:
    """Record which roles a plan gives to a team on other teams' resources, for ``kept_foreign_grants``."""
    workspace.once(_key(plan.name), lambda: tuple(foreign_grants(plan, environment, owners(workspace))))


def owners(workspace: Workspace) -> Teams:
    """Return the members and resources of all teams in a workspace."""
    return workspace.once("owners of resources", lambda: Teams(workspace))


def kept_foreign_grants(name: str, workspace: Workspace) -> tuple[ForeignGrant, ...]:
    """Return the roles that were recorded for a stack's plan; empty without a plan."""
    return workspace.once(_key(name), tuple)


def _key(name: str) -> tuple[str, str]:
    return "foreign grants", name


def foreign_grants(plan: Plan, environment: str, teams: Teams) -> Iterator[ForeignGrant]:
    """Yield the roles that a plan gives to a team on another team's resources without that team's consent."""
    roles = [(grant.planned_as, grant.principal, grant.role, grant.resource) for grant in plan_grants(plan)]
    for resource in plan.resources():
        inputs = resource.inputs
        if resource.type == ROLE_BINDING:
            namespace = f"namespaces/{environment}/{at(inputs, keys('metadata.namespace'))}"
            role = str(at(inputs, keys("roleRef.name")))
            principals = (_principal(subject, environment) for subject in rows(inputs.get("subjects")))
            roles += [(resource, principal, role, namespace) for principal in principals]
        path = at(inputs, keys("spec.nfs.path"))
        if resource.type == PERSISTENT_VOLUME and isinstance(path, str):
            claimed_by = f"namespace:{environment}/{at(inputs, keys('spec.claimRef.namespace'))}"
            folder = "/".join(
                ("shares", environment, *path.strip("/").split("/")[:2])
            )  # of the share, or a team's of it
            roles.append((resource, claimed_by, "a volume", folder))
    for planned, principal, role, target in roles:
        if pair := teams.without_consent(principal, role, target, plan.name):
            yield ForeignGrant(planned, principal, team=pair[0], role=role, resource=target, owner=pair[1])


def _principal(subject: Any, environment: str) -> str:
    """Return the subject of a binding as an IAM principal. All service accounts of a namespace belong to its team."""
    kind = str(at(subject, ("kind",)))
    if kind == "ServiceAccount":
        return f"namespace:{environment}/{at(subject, ('namespace',))}"
    return f"{kind.lower()}:{at(subject, ('name',))}"
