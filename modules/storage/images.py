"""The repository for container images of the platform and its teams."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import artifactregistry

from modules.register import register
from training_platform.config.model import environment
from training_platform.resources.scope import Scope
from training_platform.resources.storage.images import image_repository, repository_id, repository_url


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
        self.location = args.spec.location
        self.repository_id = repository_id(args.scope.environment)
        self.url = repository_url(args.scope.environment, args.scope.project, args.spec.location)
        register(artifactregistry.Repository, image_repository(name, args.spec, args.scope), self)
        self.register_outputs({"repository_id": self.repository_id, "url": self.url})
