"""The repository for container images of the platform and its teams."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import artifactregistry

from training_platform.config.spec import environment
from training_platform.resources.cloud_names import short_name
from training_platform.resources.scope import Scope

UNTAGGED_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, kw_only=True)
class ImageRepositoryArgs:
    """``spec`` is the stack file's."""

    scope: Scope
    spec: environment.ImageRepositorySpec


class ImageRepository(pulumi.ComponentResource):
    """An Artifact Registry repository for container images.

    Clean-up deletes what has had no tag for 30 days, but never the newest versions of an image. Everything about it is
    known before it exists, so that a team stack can name it without asking.
    """

    location: str
    repository_id: str
    url: str

    def __init__(self, name: str, args: ImageRepositoryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:storage:ImageRepository", name, {}, opts)
        scope, spec = args.scope, args.spec
        self.location = spec.location
        self.repository_id = repository_id(scope.environment)
        self.url = repository_url(scope.environment, scope.project, spec.location)
        artifactregistry.Repository(
            f"{name}-repository",
            repository_id=self.repository_id,
            project=scope.project,
            location=spec.location,
            format="DOCKER",
            description=f"Images of environment {scope.environment}",
            cleanup_policies=cleanup_policies(spec.keep_versions),
            labels=scope.labels,
            # Running jobs pull from it, and nobody keeps what built the older images.
            opts=pulumi.ResourceOptions(parent=self, protect=scope.deletion_protection),
        )
        self.register_outputs({"repository_id": self.repository_id, "url": self.url})


def repository_id(environment_name: str) -> str:
    """Return a repository's id, ``{environment}-images``, which takes 63 characters."""
    return short_name(f"{environment_name}-images", 63)


def repository_url(environment_name: str, project: str, location: str) -> str:
    """Return what names of images in the repository begin with, without a scheme."""
    return f"{location}-docker.pkg.dev/{project}/{repository_id(environment_name)}"


def cleanup_policies(keep_versions: int) -> list[artifactregistry.RepositoryCleanupPolicyArgs]:
    """Return what clean-up keeps and deletes; what both policies match is kept."""
    return [
        artifactregistry.RepositoryCleanupPolicyArgs(
            id="keep-newest",
            action="KEEP",
            most_recent_versions=artifactregistry.RepositoryCleanupPolicyMostRecentVersionsArgs(
                keep_count=keep_versions
            ),
        ),
        artifactregistry.RepositoryCleanupPolicyArgs(
            id="delete-untagged",
            action="DELETE",
            condition=artifactregistry.RepositoryCleanupPolicyConditionArgs(
                tag_state="UNTAGGED", older_than=f"{UNTAGGED_SECONDS}s"
            ),
        ),
    ]
