"""Roles of one team on what is another team's: its buckets, secrets, images, account, namespaces and folders.

A data set that names another team's bucket gives such a role, and `own_resources.py` can. Every check finds them, and a
comparison also says which a change gives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from training_platform.config.names import Locator
from training_platform.config.reading.declaration import Draft, Subject, declare, finding
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
from training_platform.views.inputs import at, keys, rows

FOREIGN_ACCESS = declare(
    "foreign-access",
    "Find a role of one team on what is another team's: a bucket, secret, account, namespace, folder, or its images.",
    ruleset="rights",
    source="house rule: what a team has is its own, and whoever else uses it is named with a reason",
    refused_by="nobody but `check`. Google Cloud and Kubernetes give the role",
    excuse="exemption",
)


class ForeignGrant(NamedTuple):
    """A role that people or jobs of one team's stack get on a resource of ``owner``, another's, by ``planned``."""

    planned: Resource
    principal: str
    team: str
    role: str
    resource: str
    owner: str


class Teams:
    """Who belongs to which teams, and which resources are theirs."""

    def __init__(self, workspace: Workspace) -> None:
        self._of_principal: dict[str, set[str]] = defaultdict(set)
        self._of_resource: dict[str, set[str]] = defaultdict(set)
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

    def between(self, principal: str, resource: str) -> tuple[str, str] | None:
        """Return the stacks of a principal's team and of another team that has a resource, if it is so."""
        teams = self._of_principal.get(principal, set())
        other_teams = self._of_resource.get(resource, set()) - teams
        return (min(teams), min(other_teams)) if teams and other_teams else None


def foreign_access(workspace: Workspace) -> Iterator[Draft]:
    """Find the roles of teams on what is another team's, in every stack whose grants are kept."""
    for stack in workspace.stacks.values():
        if stack.section is None:
            continue
        for grant in kept_foreign_grants(stack.name, workspace):
            planned = grant.planned
            subject: Subject = stack
            path = Locator(stack.section).path(planned.name)
            if planned.own_line is not None:
                subject = own_anchor(stack.name, planned.own_line)
                path = ()
            message = f"{grant.principal} of {grant.team} has {grant.role} on {grant.resource} of {grant.owner}"
            yield finding(
                subject,
                path,
                message,
                rule=FOREIGN_ACCESS,
                allowed=f"roles of {grant.owner} only",
                resource=f"{planned.type} {planned.name}",
            )


def keep_foreign_grants(plan: Plan, environment: str, workspace: Workspace) -> None:
    """Keep the roles that a plan gives a team on what is another team's, for ``kept_foreign_grants``."""
    teams = workspace.once("owners of resources", lambda: Teams(workspace))
    workspace.once(_key(plan.name), lambda: tuple(foreign_grants(plan, environment, teams)))


def kept_foreign_grants(name: str, workspace: Workspace) -> tuple[ForeignGrant, ...]:
    """Return the kept roles of a stack's plan, none without a plan."""
    return workspace.once(_key(name), tuple)


def _key(name: str) -> tuple[str, str]:
    return "foreign grants", name


def foreign_grants(plan: Plan, environment: str, teams: Teams) -> Iterator[ForeignGrant]:
    """Yield the roles of a plan that a team gets on what is another team's."""
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
        if pair := teams.between(principal, target):
            yield ForeignGrant(planned, principal, pair[0], role, target, pair[1])


def _principal(subject: Any, environment: str) -> str:
    """Return a subject of a binding as IAM would name it; of accounts of a namespace all are its team's."""
    kind = str(at(subject, ("kind",)))
    if kind == "ServiceAccount":
        return f"namespace:{environment}/{at(subject, ('namespace',))}"
    return f"{kind.lower()}:{at(subject, ('name',))}"
