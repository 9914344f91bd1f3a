"""Images in the repositories of environments and teams: their names, and the commands that build and push them.

Sources: gcloud builds submit, docker build and push, buildah build and push: their references, read 2026-11-22.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.section import IMAGE_PATH
from training_platform.config.workspace import Workspace
from training_platform.resources.scope import repository_id, repository_url, team_repository_id

_NAME = re.compile(IMAGE_PATH)
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Repository(NamedTuple):
    """A Docker repository of Artifact Registry, as ``HOST/PROJECT/REPOSITORY``, and its project."""

    path: str
    project: str


def repository_of(workspace: Workspace, environment: str, team: str | None = None) -> Repository:
    """Return the repository of an environment, or of a team in it. Raises UserError if it has none."""
    home = workspace.stacks.get(environment)
    if home is None or home.environment is None:
        names = [stack.name for stack, _ in workspace.environments()]
        nearest = find_nearest(environment, names)
        raise UserError(f"There is no environment {environment}." + (f" Nearest: {nearest}." if nearest else ""))
    images = home.environment.images
    if images is None:
        raise UserError(f"{environment} has no repository of images: set images.location in its stack file.")
    project = home.environment.project
    repository = repository_id(environment)
    if team is not None:
        teams = sorted({spec.name for _, spec, _ in workspace.teams() if spec.environment == environment})
        if team not in teams:
            nearest = find_nearest(team, teams)
            raise UserError(f"{environment} has no team {team}." + (f" Nearest: {nearest}." if nearest else ""))
        repository = team_repository_id(environment, team)
    return Repository(repository_url(repository, project, images.location), project)


def image_name(repository: Repository, name: str, tag: str) -> str:
    """Return an image's name for job files. Raises UserError for an invalid name or tag."""
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is not a name of an image: lower-case letters, digits, and . _ - / between them.")
    if not _TAG.fullmatch(tag):
        raise UserError(f"{tag!r} is not a tag of an image: letters, digits, _ . and -, at most 128.")
    return f"{repository.path}/{name}:{tag}"


def commands(builder: str, image: str, folder: Path, project: str) -> list[list[str]]:
    """Return the commands that build and push an image. The last prints its name with digest, or only the digest."""
    if builder == "cloud-build":
        described = ["artifacts", "docker", "images", "describe", image, "--project", project]
        return [
            ["gcloud", "builds", "submit", str(folder), "--tag", image, "--project", project],
            ["gcloud", *described, "--format", "value(image_summary.fully_qualified_digest)"],
        ]
    build = [builder, "build", "--platform", "linux/amd64", "--tag", image, str(folder)]
    if builder == "buildah":
        return [build, ["buildah", "push", "--digestfile", "/dev/stdout", image]]
    return [build, ["docker", "push", image], ["docker", "inspect", "--format", "{{index .RepoDigests 0}}", image]]


def by_digest(image: str, printed: str) -> str:
    """Return an image's name with the digest that the last command printed. Raises UserError if there is none.

    A tag can be moved, but a digest cannot, so nodes pull the same program at every start.
    """
    digest = _DIGEST.search(printed)
    if digest is None:
        raise UserError(f"{image} was pushed, but its digest was not printed: {printed.strip() or 'nothing was'}")
    return f"{image.rpartition(':')[0]}@{digest[0]}"
