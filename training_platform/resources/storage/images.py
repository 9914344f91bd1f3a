"""The Artifact Registry repository for container images of the platform and its teams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.config.model import environment
from training_platform.resources import gcp
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import REPOSITORY
from training_platform.resources.scope import Scope

if TYPE_CHECKING:
    from pulumi_gcp.artifactregistry import RepositoryCleanupPolicyArgsDict as CleanupPolicy

UNTAGGED_SECONDS = 30 * 24 * 3600


def image_repository(name: str, spec: environment.ImageRepositorySpec, scope: Scope) -> Declared:
    """Return the repository of an environment; ``name`` is the component's."""
    inputs = gcp.repository(
        repository_id=repository_id(scope.environment),
        project=scope.project,
        location=spec.location,
        format="DOCKER",
        description=f"Images of environment {scope.environment}",
        kms_key_name=scope.key(spec.location),
        cleanup_policies=_cleanup_policies(spec.keep_versions),
        labels=scope.labels,
    )
    # Running jobs pull from it, and nobody keeps what built the older images.
    options = Options(protect=scope.deletion_protection, delete_before_replace=True)  # its id is taken until it goes
    return Declared(type=REPOSITORY, name=f"{name}-repository", inputs=inputs, options=options)


def repository_id(environment_name: str) -> str:
    """Return a repository's id, ``{environment}-images``, which takes 63 characters."""
    return short_name(f"{environment_name}-images", NAME_LIMIT)


def repository_url(environment_name: str, project: str, location: str) -> str:
    """Return what names of images in the repository begin with, without a scheme."""
    return f"{location}-docker.pkg.dev/{project}/{repository_id(environment_name)}"


def _cleanup_policies(keep_versions: int) -> list[CleanupPolicy]:
    """Return what clean-up keeps and deletes; what both policies match is kept."""
    return [
        {"id": "keep-newest", "action": "KEEP", "most_recent_versions": {"keep_count": keep_versions}},
        {
            "id": "delete-untagged",
            "action": "DELETE",
            "condition": {"tag_state": "UNTAGGED", "older_than": f"{UNTAGGED_SECONDS}s"},
        },
    ]
