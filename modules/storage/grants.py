"""Single grants of a role to a member; each is a resource of its own, so no other grant is ever taken away by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pulumi_gcp import artifactregistry, storage

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
    """Grant a role on a bucket, given by its name."""
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
