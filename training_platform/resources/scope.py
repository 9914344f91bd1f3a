"""What every resource of a stack shares: environment, team, project, labels."""

from __future__ import annotations

from dataclasses import dataclass

from training_platform.config.spec.environment import Environment
from training_platform.config.spec.team import Team

MANAGED_BY = "training-platform"


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The stack that a resource belongs to.

    ``labels`` are complete: the stack file's own, then ``environment``, ``team`` (of a team stack) and
    ``managed-by``, which a stack file cannot override. They suit Google Cloud and, as they are, Kubernetes.
    """

    environment: str
    team: str | None
    project: str
    labels: dict[str, str]
    deletion_protection: bool

    @property
    def prefix(self) -> str:
        """The start of names that must be unique in a project: ``dev`` or ``dev-vision``."""
        return self.environment if self.team is None else f"{self.environment}-{self.team}"


def environment_scope(name: str, environment: Environment) -> Scope:
    """Return the scope of an environment stack called ``name``."""
    return Scope(
        environment=name,
        team=None,
        project=environment.project,
        labels={**environment.labels, "environment": name, "managed-by": MANAGED_BY},
        deletion_protection=environment.deletion_protection,
    )


def team_scope(team: Team, environment: Environment) -> Scope:
    """Return the scope of a team stack; the team's labels win over the environment's of the same key."""
    return Scope(
        environment=team.environment,
        team=team.name,
        project=team.project or environment.project,
        labels={
            **environment.labels,
            **team.labels,
            "environment": team.environment,
            "team": team.name,
            "managed-by": MANAGED_BY,
        },
        deletion_protection=environment.deletion_protection,
    )
