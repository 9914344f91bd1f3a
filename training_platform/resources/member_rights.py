"""Permissions of people in Google Cloud: a team's members on its resources, and the administrators of clusters.

None of these roles gives access to data or secrets of another team. None of them allows starting anything, unless the
team has its own project and its file allows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from training_platform.config.model.team import BucketSpec
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.custom_roles import custom_role
from training_platform.resources.plan import Component, Resource
from training_platform.resources.scope import Scope, slug
from training_platform.resources.storage import VERSION_ADDER, secret_grant
from training_platform.resources.team_account import (
    BucketRole,
    RepositoryRef,
    RepositoryRole,
    acting,
    bucket_grant,
    repository_grant,
    role_part,
)

# For calls with a quota project, which the caller must have the right to use; Cloud Quotas requires one.
# Source: Google Cloud docs, set the quota project, read 2026-11-24.
CONSUMER_ROLE = "roles/serviceusage.serviceUsageConsumer"
# Starts jobs on Vertex AI as any account that the project's custom code agent may act as: all of the project's.
SUBMITTER_ROLE = "roles/aiplatform.user"
# Members upload source and read results. Without the right to delete, nobody overwrites a colleague's checkpoint.
READ_AND_ADD: tuple[BucketRole, ...] = ("roles/storage.objectViewer", "roles/storage.objectCreator")
READ_AND_WRITE: tuple[BucketRole, ...] = ("roles/storage.objectUser",)
ALWAYS = 'request.time >= timestamp("2020-01-01T00:00:00Z")'


@dataclass(frozen=True, kw_only=True)
class TeamResources:
    """The resources that a team's members use: buckets, other teams' data set buckets, secrets, images.

    - ``projects`` are the projects whose APIs the members call.
    - ``repositories`` contain images. They are keyed by the names of their grants.
    - ``pushes_to`` lists the repositories to which members push.
    - ``submits`` says whether members start jobs on Vertex AI.
    - ``sees_runs`` says whether members only read the states of jobs that a pipeline starts.
    - ``file_systems`` is the project of the file-system instances that Vertex AI jobs mount, None if they mount none.
    """

    projects: Iterable[str]
    buckets: Mapping[str, tuple[BucketSpec, Any]] = field(default_factory=dict)
    data_sets: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Resource] = field(default_factory=dict)
    repositories: Mapping[str, RepositoryRef] = field(default_factory=dict)
    pushes_to: Collection[str] = ()
    submits: bool = False
    sees_runs: bool = False
    file_systems: str | None = None


def member_rights(into: Component, scope: Scope, members: Iterable[str], uses: TeamResources) -> None:
    """Add the roles of a team's members."""
    for member in dict.fromkeys(members):
        who = slug(member)
        if uses.submits:
            into.add(shared_role(f"members-submit-{who}", scope, scope.project, SUBMITTER_ROLE, member))
            _add_address_reader(into, "members", scope, uses, member)
        if uses.sees_runs:
            role = custom_role("job_states", scope.project)
            into.add(shared_role(f"members-job-states-{who}", scope, scope.project, role, member))
        for project in dict.fromkeys(uses.projects):
            into.add(shared_role(f"members-consumer-{project}-{who}", scope, project, CONSUMER_ROLE, member))
        for key, repository in uses.repositories.items():
            pushes = key in uses.pushes_to
            may: RepositoryRole = "roles/artifactregistry.writer" if pushes else "roles/artifactregistry.reader"
            into.add(repository_grant(f"members-{key}-{who}", repository, may, member))
        for key, (spec, bucket) in uses.buckets.items():
            for grant in member_bucket_grants(declared_name("buckets", key), spec, bucket, (member,)):
                into.add(grant)
        for key, bucket_name in uses.data_sets.items():
            name = f"{declared_name('data_sets', key)}-access-{who}"
            into.add(bucket_grant(name, bucket_name, "roles/storage.objectViewer", member))
        for key, secret in uses.secrets.items():
            name = f"{declared_name('secrets', key)}-adder-{who}"
            into.add(secret_grant(name, scope, secret, VERSION_ADDER, member))


def member_bucket_grants(name: str, spec: BucketSpec, bucket: Any, members: Iterable[str]) -> Iterator[Resource]:
    """Yield the roles of members on a bucket of their team. The grants' names begin with ``name``."""
    roles = READ_AND_WRITE if spec.members_write else READ_AND_ADD
    for member in dict.fromkeys(members):
        for role in roles:
            yield bucket_grant(f"{name}-{role_part(role)}-{slug(member)}", bucket, role, member)


def submitter_rights(
    into: Component, scope: Scope, submitters: Iterable[str], account: Resource, uses: TeamResources
) -> None:
    """Add the roles of pipelines that start a team's jobs on Vertex AI from reviewed files.

    Each role is on a resource that the team owns, or has a condition. The pipeline's account is the same for every
    team: without the condition, deleting one team's stack would also delete another team's equal role. The
    environment's stack allows the pipelines to read its images.
    """
    for member in dict.fromkeys(submitters):
        who = slug(member)
        into.add(shared_role(f"{into.name}-{who}", scope, scope.project, SUBMITTER_ROLE, member))
        _add_address_reader(into, into.name, scope, uses, member)
        into.add(acting(f"{into.name}-account-{who}", account, "roles/iam.serviceAccountUser", member))
        for key, repository in uses.repositories.items():
            if key in uses.pushes_to:
                name = f"{into.name}-{key}-{who}"
                into.add(repository_grant(name, repository, "roles/artifactregistry.reader", member))
        for key, (_, bucket) in uses.buckets.items():
            for role in READ_AND_ADD:
                into.add(bucket_grant(f"{into.name}-{key}-{role_part(role)}-{who}", bucket, role, member))


def _add_address_reader(into: Component, name: str, scope: Scope, uses: TeamResources, member: str) -> None:
    """Allow a member who submits jobs to Vertex AI to look up the addresses of file systems that the jobs mount."""
    if uses.file_systems:
        role = custom_role("addresses", uses.file_systems)
        into.add(shared_role(f"{name}-addresses-{slug(member)}", scope, uses.file_systems, role, member))


def restart_rights(scope: Scope, admins: Iterable[str]) -> Iterator[Resource]:
    """Yield the roles with which an environment's administrators list and restart a team's persistent resources."""
    for member in dict.fromkeys(admins):
        role = custom_role("restarts", scope.project)
        yield shared_role(f"admins-{slug(member)}", scope, scope.project, role, member)


def shared_role(name: str, scope: Scope, project: str, role: str, member: str) -> Resource:
    """Return a grant of a role that other stacks may also grant to the same member in the same project.

    A condition that is always true makes this a separate grant. Deleting it leaves the grants of other stacks in place.
    """
    return gcp.iam_member(
        name,
        project=project,
        role=role,
        member=member,
        condition={"title": f"team {scope.prefix}", "expression": ALWAYS},
    )
