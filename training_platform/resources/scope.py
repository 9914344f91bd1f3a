"""The properties that a stack's resources share: environment, team, project, labels, and names in Google Cloud.

Google Cloud limits the length of names. Long names are shortened in a way that keeps them unique and never changes.
Components create resources with these names and jobs refer to the same resources by them, so each name is composed only
here.
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

    ``labels`` are complete: the stack file's own labels, then ``environment``, ``team`` (of a team stack) and
    ``managed-by``, which a stack file cannot override. They are valid in Google Cloud and in Kubernetes. ``keys`` are
    the environment's Cloud KMS keys, keyed by region.
    """

    environment: str
    team: str | None
    project: str
    labels: dict[str, str]
    deletion_protection: bool
    keys: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kubernetes_labels(self) -> dict[str, str]:
        """The labels of the stack's Kubernetes objects."""
        return {**self.labels, MANAGED_BY_LABEL: MANAGED_BY}

    @property
    def prefix(self) -> str:
        """The beginning of names that must be unique in a project: ``dev`` or ``dev-vision``."""
        return self.environment if self.team is None else f"{self.environment}-{self.team}"

    def within(self, cluster: ClusterSpec) -> Scope:
        """Return the scope of resources that are deleted with a cluster. They are protected if the cluster is."""
        return dataclasses.replace(self, deletion_protection=self.deletion_protection and cluster.deletion_protection)

    def key(self, location: str) -> str | None:
        """Return the Cloud KMS key that encrypts data in a region or zone, or None if Google's own keys encrypt it."""
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
    """Return the scope of the environment stack named ``name``."""
    return Scope(
        environment=name,
        team=None,
        project=environment.project,
        labels=complete_labels(environment.labels, name),
        deletion_protection=environment.deletion_protection,
        keys=_keys(environment),
    )


def team_scope(team: Team, environment: Environment) -> Scope:
    """Return the scope of a team stack. The team's labels override the environment's labels with the same key."""
    return Scope(
        environment=team.environment,
        team=team.name,
        project=team.project or environment.project,
        labels=complete_labels({**environment.labels, **team.labels}, team.environment, team.name),
        deletion_protection=environment.deletion_protection,
        keys=_keys(environment),
    )


def complete_labels(chosen: Mapping[str, str], environment: str, team: str | None = None) -> dict[str, str]:
    """Return the labels of resources. The platform's labels replace chosen labels with the same key."""
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
    """Return ``text`` if it fits ``limit`` characters, otherwise its beginning, a dash, and a hash of the whole text.

    The result depends only on the text and the limit, so a resource keeps its name. It ends in a letter or digit if the
    text does. ``limit`` must be at least 8, for a letter, the dash and the hash.
    """
    if limit < _DIGITS + 2:
        raise ValueError(f"limit is {limit}, and a cut name has at least {_DIGITS + 2} characters")
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{text[: limit - _DIGITS - 1].rstrip('-')}-{digest}"


def account_id(*parts: str) -> str:
    """Return the id of a service account, ``{part}-{part}...``, with at most 30 characters.

    Google Cloud requires 6 to 30 lower-case letters, digits and dashes, starting with a letter. A result that is too
    short is not extended. Source: IAM API, ``accountId`` of CreateServiceAccountRequest, as in pulumi-gcp 10.2.
    """
    return short_name("-".join(parts), ACCOUNT_ID_LIMIT)


def jobs_account_id(scope: Scope) -> str:
    """Return the id of the service account in Google Cloud for a team's jobs, ``{environment}-{team}-jobs``."""
    return account_id(scope.prefix, "jobs")


def jobs_account_email(scope: Scope) -> str:
    """Return the e-mail address of the service account for a team's jobs. IAM forms it from the id and the project."""
    return f"{jobs_account_id(scope)}@{scope.project}.iam.gserviceaccount.com"


def bucket_id(scope: Scope, key: str) -> str:
    """Return a bucket's globally unique name, ``{project}-{environment}-{team}-{key}``, cut to 63 characters."""
    return short_name(f"{scope.project}-{scope.prefix}-{key}", NAME_LIMIT)


def persistent_resource_id(scope: Scope, key: str) -> str:
    """Return the id with which jobs refer to a persistent resource, ``{environment}-{team}-{key}``.

    It is cut to 63 characters.
    """
    return short_name(f"{scope.prefix}-{key}", NAME_LIMIT)


def repository_id(environment_name: str, remote: str = "") -> str:
    """Return a repository's id, ``{environment}-images`` or ``{environment}-images-{remote}``, cut to 63 characters."""
    return short_name(f"{environment_name}-images{f'-{remote}' if remote else ''}", NAME_LIMIT)


def team_repository_id(environment_name: str, team: str) -> str:
    """Return the id of a team's repository, ``{environment}-{team}-images``, cut to 63 characters."""
    return short_name(f"{environment_name}-{team}-images", NAME_LIMIT)


def python_repository_id(environment_name: str) -> str:
    """Return the id of the repository that caches the public package index, ``{environment}-python``."""
    return short_name(f"{environment_name}-python", NAME_LIMIT)


def package_index(environment_name: str, project: str, location: str) -> str:
    """Return the URL of the Python package repository, in the form for pip."""
    return f"https://{location}-python.pkg.dev/{project}/{python_repository_id(environment_name)}/simple/"


def repository_url(repository: str, project: str, location: str) -> str:
    """Return the prefix of image names in a repository, given by its id, without a scheme."""
    return f"{location}-docker.pkg.dev/{project}/{repository}"


def secret_id(scope: Scope, key: str) -> str:
    """Return the id of a team's secret, ``{environment}-{team}-{key}``, cut to 255 characters."""
    return short_name(f"{scope.prefix}-{key}", SECRET_LIMIT)


def slug(identity: str) -> str:
    """Return an address or IAM member as a part of a logical name, ``group-a-at-example.com``.

    Dots, dashes and letter case are kept, so that two identities never become one resource.
    """
    return identity.replace(":", "-").replace("@", "-at-")
