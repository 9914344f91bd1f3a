"""The service account that a team's jobs run as, its roles, and functions for grants to any account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from training_platform.resources import gcp
from training_platform.resources.custom_roles import CustomRoleName, custom_role
from training_platform.resources.plan import Component, Resource
from training_platform.resources.scope import Scope, jobs_account_id, slug

# Roles in the team's project. Every pod of the team can act as the account, so it has no role that starts anything: who
# may create a job of Vertex AI without an account of its own acts as Google's agent there, which reads and writes the
# storage of the whole project. Whoever writes metrics can write any series of the project, also Kueue's of other teams.
LOG_WRITER = "roles/logging.logWriter"
METRIC_WRITER = "roles/monitoring.metricWriter"

BucketRole = Literal[
    "roles/storage.bucketViewer",
    "roles/storage.objectCreator",
    "roles/storage.objectUser",
    "roles/storage.objectViewer",
]
WORKLOAD_USER = "roles/iam.workloadIdentityUser"
# Programs ask for the bucket itself, by get_bucket() of google-cloud-storage; roles on objects do not hold buckets.get.
# Source: dumps of IAM's roles of 2026-08-22, read 2026-11-24.
BUCKET_VIEWER: BucketRole = "roles/storage.bucketViewer"
RepositoryRole = Literal["roles/artifactregistry.reader", "roles/artifactregistry.writer"]


@dataclass(frozen=True, kw_only=True)
class KubernetesAccount:
    """A Kubernetes service account. ``project`` is the clusters' project, whose workload identity pool they share."""

    project: str
    namespace: str
    name: str

    @property
    def member(self) -> str:
        """The account as an IAM member."""
        return f"serviceAccount:{self.project}.svc.id.goog[{self.namespace}/{self.name}]"


@dataclass(frozen=True, kw_only=True)
class RepositoryRef:
    """An Artifact Registry repository, identified by project, location and id."""

    project: str
    location: str
    repository_id: Any


@dataclass(frozen=True, kw_only=True)
class TeamAccount:
    """A service account, ``{environment}-{team}-jobs``, with what jobs need: the team's buckets, images, TensorBoards.

    - ``buckets`` are names of buckets, keyed by their keys in the file.
    - ``members`` may start jobs that run as this account.
    - ``repositories`` are the repositories for images and packages, keyed by names for their grants.
    - ``tensorboard`` says whether the team has a TensorBoard that its jobs write to.
    - ``registry`` says whether its jobs register models.
    - ``metrics`` says whether its jobs write metrics.

    Pods use the account through workload identity, with one Kubernetes service account in every cluster of the project.
    """

    scope: Scope
    buckets: Mapping[str, Any]
    members: tuple[str, ...]
    tensorboard: bool = False
    registry: bool = False
    metrics: bool = False
    repositories: Mapping[str, RepositoryRef] = field(default_factory=dict)
    kubernetes: KubernetesAccount | None = None


def team_account(into: Component, args: TeamAccount) -> Resource:
    """Add a team's service account with its roles, and return the account."""
    name = into.name
    scope = args.scope
    account = into.add(service_account(f"{name}-account", scope, jobs_account_id(scope), f"Jobs of {scope.prefix}"))
    member = account.output("member")
    roles = (LOG_WRITER, METRIC_WRITER) if args.metrics else (LOG_WRITER,)
    for role in roles:
        into.add(project_role(f"{name}-{role_part(role)}", scope.project, role, member))
    if args.tensorboard:
        _grant_custom_role(into, scope, "tensorboard", member)
    if args.registry:
        _grant_custom_role(into, scope, "registry", member)
    for key, bucket in args.buckets.items():
        for grant in bucket_grants(f"{name}-bucket-{key}", bucket, "roles/storage.objectUser", member):
            into.add(grant)
    for key, repository in args.repositories.items():
        into.add(repository_grant(f"{name}-{key}", repository, "roles/artifactregistry.reader", member))
    for user in dict.fromkeys(args.members):
        into.add(acting(f"{name}-user-{slug(user)}", account, "roles/iam.serviceAccountUser", user))
    if args.kubernetes:
        into.add(acting(f"{name}-workload", account, WORKLOAD_USER, args.kubernetes.member))
    return account


def _grant_custom_role(into: Component, scope: Scope, part: CustomRoleName, member: Any) -> None:
    role = custom_role(part, scope.project)
    into.add(project_role(f"{into.name}-{part}", scope.project, role, member))


def role_part(role: str) -> str:
    """Return a role as part of a logical name: ``aiplatform-user``."""
    return role.removeprefix("roles/").replace(".", "-")


def service_account(name: str, scope: Scope, account_id: str, title: str) -> Resource:
    """Return a service account of the project."""
    return gcp.service_account(name, account_id=account_id, project=scope.project, display_name=title)


def acting(name: str, account: Resource, role: str, member: str) -> Resource:
    """Return a grant that lets a member act as a service account."""
    return gcp.service_account_member(name, service_account_id=account.output("name"), role=role, member=member)


def project_role(name: str, project: str, role: Any, member: Any) -> Resource:
    """Return a grant of a role in a project."""
    return gcp.iam_member(name, project=project, role=role, member=member)


def bucket_grant(name: str, bucket: Any, role: BucketRole, member: Any) -> Resource:
    """Return a grant of a role on a bucket, which is given by its name."""
    return gcp.bucket_member(name, bucket=bucket, role=role, member=member)


def bucket_grants(name: str, bucket: Any, role: BucketRole, member: Any) -> Iterator[Resource]:
    """Yield grants on a bucket for an account that programs run as: a role on its objects, and reading its metadata."""
    yield bucket_grant(name, bucket, role, member)
    yield bucket_grant(f"{name}-viewer", bucket, BUCKET_VIEWER, member)


def repository_grant(name: str, repository: RepositoryRef, role: RepositoryRole, member: Any) -> Resource:
    """Return a grant of a role on a repository: a reader can pull, a writer can also push."""
    return gcp.repository_member(
        name,
        project=repository.project,
        location=repository.location,
        repository=repository.repository_id,
        role=role,
        member=member,
    )
