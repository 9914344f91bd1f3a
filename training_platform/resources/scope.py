"""What every resource of a stack shares: environment, team, project, labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from training_platform.catalog.locations import region_of
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.resources.planned import Shared

MANAGED_BY, MANAGED_BY_LABEL = "training-platform", "app.kubernetes.io/managed-by"
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
        return Shared({**self.labels, MANAGED_BY_LABEL: MANAGED_BY})

    @property
    def prefix(self) -> str:
        """The start of names that must be unique in a project: ``dev`` or ``dev-vision``."""
        return self.environment if self.team is None else f"{self.environment}-{self.team}"

    def within(self, cluster: ClusterSpec) -> Scope:
        """Return the scope of what stands and falls with a cluster: protected where the cluster is."""
        return dataclasses.replace(self, deletion_protection=self.deletion_protection and cluster.deletion_protection)

    def key(self, location: str) -> str | None:
        """Return the key for what is kept in a region or zone; None where Google's own keys encrypt it."""
        return self.keys.get(region_of(location))


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


def complete_labels(own: Mapping[str, str], environment: str, team: str | None = None) -> dict[str, str]:
    """Return labels as resources have them: ours win over those that somebody chose."""
    of_team = {"team": team} if team else {}
    return Shared({**own, "environment": environment, **of_team, "managed-by": MANAGED_BY})


def _keys(environment: Environment) -> dict[str, str]:
    return environment.encryption.by_region if environment.encryption else {}
