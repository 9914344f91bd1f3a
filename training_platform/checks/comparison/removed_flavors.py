"""Flavors that a change takes out together with the shares of them: that wants two deployments, teams first."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace

RULE = "removed-flavor"


def removed_flavors(head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Find a flavor that the environment loses in the change in which a team's share of it goes.

    Kueue keeps a ResourceFlavor, by its finalizer, while a queue names it; the environment is deployed before the team,
    and its deployment would wait for the queue (seen on Kueue 0.19.2: the flavor stays until the queue lets go).
    """
    for _, team, environment in base.teams():
        home = head.stacks.get(team.environment)
        if home is None or home.environment is None:
            continue
        for cluster in team.shares.keys() & environment.clusters.keys() & home.environment.clusters.keys():
            left = head.flavors(team.environment, cluster)
            had = base.flavors(team.environment, cluster)
            for flavor in sorted(team.shares[cluster].keys() & had.keys() - left.keys()):
                message = (
                    f"flavor {flavor} goes in the change in which team {team.name}'s share of it goes, and Kueue keeps "
                    "it until the team is deployed, which is after the environment"
                )
                allowed = "two changes: first the share, then the pool"
                yield home.finding(RULE, ("clusters", cluster), message, severity="warning", allowed=allowed)
