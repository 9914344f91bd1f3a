"""The common properties of a stack's resources: environment, team, project, labels, and names in Google Cloud.

Google Cloud limits names in length: they are cut so that they stay unique and never change. Components create things by
these names and jobs refer to the same things by them, so that each name is made only here.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from training_platform.catalog.locations import region_of
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team

if TYPE_CHECKING:
    from training_platform.config.component_arguments import Place

MANAGED_BY = "training-platform"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
TEAM_LABEL = f"{MANAGED_BY}/team"  # of a team's namespace in each cluster


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The stack that a resource belongs to.

    ``labels`` are complete: the stack file's own, then ``environment``, ``team`` (of a team stack) and
    ``managed-by``, which a stack file cannot override. They suit Google Cloud and, as they are, Kubernetes. ``keys``
    are the environment's of Cloud KMS, by region.
    """

    environment: str
    team: str | None
    project: str
    labels: dict[str, str]
    deletion_protection: bool
    keys: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kubernetes_labels(self) -> dict[str, str]:
        """The labels of its Kubernetes objects."""
        return {**self.labels, MANAGED_BY_LABEL: MANAGED_BY}

    @property
    def prefix(self) -> str:
        """The start of names that must be unique in a project: ``dev`` or ``dev-vision``."""
        return self.environment if self.team is None else f"{self.environment}-{self.team}"

    def within(self, cluster: ClusterSpec) -> Scope:
        """Return the scope of resources that are deleted with a cluster: protected if the cluster is."""
        return dataclasses.replace(self, deletion_protection=self.deletion_protection and cluster.deletion_protection)

    def key(self, location: str) -> str | None:
        """Return the key for data in a region or zone, or None if Google's own keys encrypt it."""
        return self.keys.get(region_of(location))


def place_scope(place: Place) -> Scope:
    """Return the scope of a component in a program without stack files."""
    return Scope(
        environment=place.environment,
        team=place.team,
        project=place.project,
        labels=complete_labels(place.labels, place.environment, place.team),
        deletion_protection=place.deletion_protection,
        keys=place.keys,
    )


def environment_scope(name: str, environment: Environment) -> Scope:
    """Return the scope of an environment stack called ``name``."""
    return Scope(
        environment=name,
        team=None,
        project=environment.project,
        labels=complete_labels(environment.labels, name),
        deletion_protection=environment.deletion_protection,
        keys=_keys(environment),
    )


def team_scope(team: Team, environment: Environment) -> Scope:
    """Return the scope of a team stack; the team's labels win over the environment's of the same key."""
    return Scope(
        environment=team.environment,
        team=team.name,
        project=team.project or environment.project,
        labels=complete_labels({**environment.labels, **team.labels}, team.environment, team.name),
        deletion_protection=environment.deletion_protection,
        keys=_keys(environment),
    )


def complete_labels(chosen: Mapping[str, str], environment: str, team: str | None = None) -> dict[str, str]:
    """Return the labels of resources: the platform's replace chosen ones of the same key."""
    labels = {**chosen, "environment": environment}
    if team:
        labels["team"] = team
    labels["managed-by"] = MANAGED_BY
    return labels


def _keys(environment: Environment) -> dict[str, str]:
    return environment.encryption.by_region if environment.encryption else {}


SERVICE_ACCOUNT = "training"  # the Kubernetes service account of a team's namespace that its jobs run as
TEAM_GROUP = 100  # may write to a team's folders and buckets, whatever user an image has: "users", also of Jupyter's
ACCOUNT_ID_LIMIT = 30
NAME_LIMIT = 63
SECRET_LIMIT = 255
_DIGITS = 6  # 24 bits: among 1,000 cut names with one beginning, two are equal with a probability of 3 %


def short_name(text: str, limit: int) -> str:
    """Return ``text`` if it fits ``limit`` characters, else its beginning, a dash and a hash of all of it.

    The result depends on the text and limit alone, so a resource keeps its name; it ends in a letter or digit where the
    text does. ``limit`` is at least 8: a letter, the dash and the hash.
    """
    if limit < _DIGITS + 2:
        raise ValueError(f"limit is {limit}, and a cut name has at least {_DIGITS + 2} characters")
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{text[: limit - _DIGITS - 1].rstrip('-')}-{digest}"


def account_id(*parts: str) -> str:
    """Return the id of a service account, ``{part}-{part}...`` in at most 30 characters.

    Google Cloud wants 6 to 30 lower-case letters, digits and dashes, a letter first; parts that are too short in all
    are left as they are. Source: IAM API, ``accountId`` of CreateServiceAccountRequest, as pulumi-gcp 10.2 gives it.
    """
    return short_name("-".join(parts), ACCOUNT_ID_LIMIT)


def jobs_account_id(scope: Scope) -> str:
    """Return the id of the service account of a team's jobs in Google Cloud, ``{environment}-{team}-jobs``."""
    return account_id(scope.prefix, "jobs")


def jobs_account_email(scope: Scope) -> str:
    """Return the email address of the account of a team's jobs, as IAM forms it from id and project."""
    return f"{jobs_account_id(scope)}@{scope.project}.iam.gserviceaccount.com"


def bucket_id(scope: Scope, key: str) -> str:
    """Return a bucket's globally unique name, ``{project}-{environment}-{team}-{key}``, cut to 63 characters."""
    return short_name(f"{scope.project}-{scope.prefix}-{key}", NAME_LIMIT)


def persistent_resource_id(scope: Scope, key: str) -> str:
    """Return the id by which jobs name a persistent resource: ``{environment}-{team}-{key}``, cut to 63 characters."""
    return short_name(f"{scope.prefix}-{key}", NAME_LIMIT)


def repository_id(environment_name: str, remote: str = "") -> str:
    """Return a repository's id, ``{environment}-images`` or ``{environment}-images-{remote}``, cut to 63 characters."""
    return short_name(f"{environment_name}-images{f'-{remote}' if remote else ''}", NAME_LIMIT)


def team_repository_id(environment_name: str, team: str) -> str:
    """Return the id of a team's repository, ``{environment}-{team}-images``, cut to 63 characters."""
    return short_name(f"{environment_name}-{team}-images", NAME_LIMIT)


def python_repository_id(environment_name: str) -> str:
    """Return the id of the repository in front of the public index of packages, ``{environment}-python``."""
    return short_name(f"{environment_name}-python", NAME_LIMIT)


def package_index(environment_name: str, project: str, location: str) -> str:
    """Return the address of that repository as pip reads it."""
    return f"https://{location}-python.pkg.dev/{project}/{python_repository_id(environment_name)}/simple/"


def repository_url(repository: str, project: str, location: str) -> str:
    """Return the prefix of names of images in a repository, given by its id, without a scheme."""
    return f"{location}-docker.pkg.dev/{project}/{repository}"


def secret_id(scope: Scope, key: str) -> str:
    """Return the id of a team's secret, ``{environment}-{team}-{key}``, cut to 255 characters."""
    return short_name(f"{scope.prefix}-{key}", SECRET_LIMIT)


def slug(identity: str) -> str:
    """Return an address or IAM member as a part of a logical name, ``group-a-at-example.com``.

    Dots, dashes and case stay as they are, so that two identities do not become one resource.
    """
    return identity.replace(":", "-").replace("@", "-at-")
