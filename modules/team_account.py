"""The service account that a team's jobs run as, and its rights to read and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pulumi
from pulumi_gcp import artifactregistry, projects, serviceaccount, storage

from training_platform.resources.scope import NAME_LIMIT, Scope, jobs_account_id, short_name, slug

# In the team's project: write metrics, write logs. Every pod of the team can act as the account, so it has no role that
# starts anything: who may create a job of Vertex AI without an account of its own acts as Google's agent there, which
# reads and writes the storage of the whole project.
PROJECT_ROLES = ("roles/monitoring.metricWriter", "roles/logging.logWriter")
# What writes and reads curves in a TensorBoard, and nothing else of Vertex AI: no predefined role is as narrow. That
# Vertex AI's own uploader is content with it is (unverified). IAM has no such grant on one TensorBoard alone.
# Source: Vertex AI, IAM permissions by REST method, read 2026-11-22.
TENSORBOARD_PERMISSIONS = (
    "aiplatform.tensorboards.get",
    *(f"aiplatform.tensorboardExperiments.{verb}" for verb in ("create", "get", "list", "update", "write")),
    *(f"aiplatform.tensorboardRuns.{verb}" for verb in ("batchCreate", "create", "get", "list", "update", "write")),
    *(
        f"aiplatform.tensorboardTimeSeries.{verb}"
        for verb in ("batchCreate", "batchRead", "create", "get", "list", "read", "update")
    ),
)
# What reads managed data sets, and registers models with their versions and evaluations. IAM has no grant on one of
# them: whoever may do so in a project sees those of all of its teams. Nothing here deploys, exports or deletes.
# Source: Vertex AI, IAM permissions and predefined roles, read 2026-11-22.
REGISTRY_PERMISSIONS = (
    *(f"aiplatform.datasets.{verb}" for verb in ("get", "list")),
    *(f"aiplatform.{kind}.list" for kind in ("annotations", "dataItems")),
    *(f"aiplatform.{kind}.{verb}" for kind in ("annotationSpecs", "datasetVersions") for verb in ("get", "list")),
    *(f"aiplatform.models.{verb}" for verb in ("get", "list", "update", "upload")),
    *(f"aiplatform.modelEvaluations.{verb}" for verb in ("get", "import", "list")),
)


@dataclass(frozen=True, kw_only=True)
class KubernetesAccount:
    """A Kubernetes service account; ``project`` is the clusters', whose workload identity pool all of them share."""

    project: str
    namespace: str
    name: str


@dataclass(frozen=True, kw_only=True)
class TeamServiceAccountArgs:
    """``buckets`` are names of buckets by their keys; ``members`` may start jobs that run as this account.

    ``tensorboard`` says whether the team has one that its jobs write to, ``registry`` whether they register models.
    """

    scope: Scope
    buckets: Mapping[str, pulumi.Input[str]]
    members: tuple[str, ...]
    tensorboard: bool = False
    registry: bool = False
    repository: RepositoryRef | None = None
    kubernetes: KubernetesAccount | None = None


class TeamServiceAccount(pulumi.ComponentResource):
    """A service account, ``{environment}-{team}-jobs``, with what jobs need: the team's buckets, images, TensorBoards.

    Pods get it by workload identity, in every cluster of the project, through one Kubernetes service account.
    """

    email: pulumi.Output[str]
    member: pulumi.Output[str]  # serviceAccount:email

    def __init__(self, name: str, args: TeamServiceAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:TeamServiceAccount", name, {}, opts)
        scope, child = args.scope, pulumi.ResourceOptions(parent=self)
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=jobs_account_id(scope),
            project=scope.project,
            display_name=f"Jobs of {scope.prefix}",
            opts=child,
        )
        self.email, self.member = account.email, account.member
        for role in PROJECT_ROLES:
            projects.IAMMember(
                f"{name}-{role_part(role)}", project=scope.project, role=role, member=account.member, opts=child
            )
        own_roles = {
            "tensorboard": ("TensorBoard", TENSORBOARD_PERMISSIONS if args.tensorboard else ()),
            "registry": ("Models and data sets", REGISTRY_PERMISSIONS if args.registry else ()),
        }
        for part, (title, permissions) in own_roles.items():
            if permissions:
                # The account waits for IAM's API, which this role is of too, unlike what its module says.
                after = pulumi.ResourceOptions(parent=self, depends_on=[account])
                own = _own_role(f"{name}-{part}", title, permissions, scope, after)
                projects.IAMMember(
                    f"{name}-{part}", project=scope.project, role=own.name, member=account.member, opts=child
                )
        for key, bucket in args.buckets.items():
            grant_bucket(f"{name}-bucket-{key}", bucket, "roles/storage.objectUser", account.member, child)
        if args.repository:
            grant_repository(f"{name}-images", args.repository, "roles/artifactregistry.reader", account.member, child)
        for suffix, role, member in users(args):
            serviceaccount.IAMMember(
                f"{name}-{suffix}", service_account_id=account.name, role=role, member=member, opts=child
            )
        self.register_outputs({"email": self.email, "member": self.member})


def _own_role(
    name: str, title: str, permissions: Sequence[str], scope: Scope, opts: pulumi.ResourceOptions
) -> projects.IAMCustomRole:
    """Create a role of the project for this team, ``{environment}_{team}_{part}``, without dashes."""
    part = name.rpartition("-")[2]
    return projects.IAMCustomRole(
        f"{name}-role",
        role_id=short_name(f"{scope.prefix}-{part}", NAME_LIMIT).replace("-", "_"),
        project=scope.project,
        title=f"{title} of {scope.prefix}",
        permissions=list(permissions),
        opts=opts,
    )


def users(args: TeamServiceAccountArgs) -> list[tuple[str, str, str]]:
    """Return who may act as the account: last part of the grant's name, role, member."""
    users = [(f"user-{slug(member)}", "roles/iam.serviceAccountUser", member) for member in dict.fromkeys(args.members)]
    if args.kubernetes:
        users.append(("workload", "roles/iam.workloadIdentityUser", workload_member(args.kubernetes)))
    return users


def workload_member(account: KubernetesAccount) -> str:
    """Return a Kubernetes service account as IAM knows it."""
    return f"serviceAccount:{account.project}.svc.id.goog[{account.namespace}/{account.name}]"


def role_part(role: str) -> str:
    """Return a role as part of a logical name: ``aiplatform-user``."""
    return role.removeprefix("roles/").replace(".", "-")


BucketRole = Literal["roles/storage.objectViewer", "roles/storage.objectUser"]
RepositoryRole = Literal["roles/artifactregistry.reader", "roles/artifactregistry.writer"]


@dataclass(frozen=True, kw_only=True)
class RepositoryRef:
    """An Artifact Registry repository by its place."""

    project: str
    location: str
    repository_id: str


def grant_bucket(
    name: str,
    bucket: pulumi.Input[str],
    role: BucketRole,
    member: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> storage.BucketIAMMember:
    """Grant a role on a bucket, by its name."""
    return storage.BucketIAMMember(name, bucket=bucket, role=role, member=member, opts=opts)


def grant_repository(
    name: str,
    repository: RepositoryRef,
    role: RepositoryRole,
    member: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> artifactregistry.RepositoryIamMember:
    """Grant a role on an image repository: reader to pull, writer to push too."""
    return artifactregistry.RepositoryIamMember(
        name,
        project=repository.project,
        location=repository.location,
        repository=repository.repository_id,
        role=role,
        member=member,
        opts=opts,
    )
