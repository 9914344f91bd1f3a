"""The service account that a team's jobs run as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects, serviceaccount

from modules.storage.grants import RepositoryRef, grant_bucket, grant_repository
from training_platform.resources.cloud_names import jobs_account_id, slug
from training_platform.resources.scope import Scope

# In the team's project: start and read Vertex AI jobs, write metrics, write logs.
PROJECT_ROLES = ("roles/aiplatform.user", "roles/monitoring.metricWriter", "roles/logging.logWriter")


@dataclass(frozen=True, kw_only=True)
class KubernetesAccount:
    """A Kubernetes service account; ``project`` is the clusters', whose workload identity pool all of them share."""

    project: str
    namespace: str
    name: str


@dataclass(frozen=True, kw_only=True)
class TeamServiceAccountArgs:
    """``buckets`` are names of buckets by their keys; ``members`` may start jobs that run as this account."""

    scope: Scope
    buckets: Mapping[str, pulumi.Input[str]]
    members: tuple[str, ...]
    repository: RepositoryRef | None = None
    kubernetes: KubernetesAccount | None = None


class TeamServiceAccount(pulumi.ComponentResource):
    """A service account, ``{environment}-{team}-jobs``, with what jobs need: the team's buckets, images, Vertex AI.

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
        for key, bucket in args.buckets.items():
            grant_bucket(f"{name}-bucket-{key}", bucket, "roles/storage.objectUser", account.member, child)
        if args.repository:
            grant_repository(f"{name}-images", args.repository, "roles/artifactregistry.reader", account.member, child)
        for suffix, role, member in users(args):
            serviceaccount.IAMMember(
                f"{name}-{suffix}", service_account_id=account.name, role=role, member=member, opts=child
            )
        self.register_outputs({"email": self.email, "member": self.member})


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
