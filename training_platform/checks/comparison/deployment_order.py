"""Which teams of an environment a change is deployed to before it, and which after: by what they need of it.

What a team comes to need is deployed before it. What a team lets go is deployed after it: Kueue keeps a ResourceFlavor,
by its finalizer, while a queue names it, so that the environment's deployment would wait for the team's (seen on Kueue
0.19.2), and a cluster that is gone takes the team's objects out of reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.workspace import Workspace

RULE = "removed-flavor"


class Need(NamedTuple):
    """Something of an environment that a team needs: where it stands in the environment's file, and what it is."""

    path: Path
    what: str


class Order(NamedTuple):
    """What a change adds and removes of an environment that teams need, each with the team's stack."""

    added: tuple[tuple[str, Need], ...]
    removed: tuple[tuple[str, Need], ...]

    @property
    def before(self) -> frozenset[str]:
        """The stacks of teams that go before their environment, since they let something go."""
        return frozenset(stack for stack, _ in self.removed)

    @property
    def two_deployments(self) -> str:
        """Why no order deploys it in one go; an empty text where one does."""
        for stack, gone in self.removed:
            for new in (need for other, need in self.added if other == stack):
                return f"{stack} needs {new.what}, which is added, and lets {gone.what} go, which is removed"
        return ""


def deployment_order(head: Workspace, base: Workspace, environment: str) -> Order:
    """Return what decides the order of an environment and its teams."""
    offered, before = (_offered(side, environment) for side in (head, base))
    return Order(
        added=tuple(each for each in _needs(head, environment) if each[1] in offered - before),
        removed=tuple(each for each in _needs(base, environment) if each[1] in before - offered),
    )


def removals(head: Workspace, base: Workspace) -> Iterator[Finding]:
    """Find what an environment loses in the change in which a team lets it go: it goes first, or nothing helps."""
    for home, _ in head.environments():
        order = deployment_order(head, base, home.name)
        why = order.two_deployments
        for stack, need in order.removed:
            message = f"{need.what} goes in the change in which {stack} lets it go"
            if why:
                message, allowed = (
                    f"{message}, which wants two deployments: {why}",
                    "two changes: additions, then removals",
                )
            else:
                message, allowed = (
                    f"{message}: {stack} is deployed first, as pipelines do by themselves",
                    "the team first",
                )
            yield home.finding(RULE, need.path, message, severity="warning" if why else "note", allowed=allowed)


def _needs(workspace: Workspace, environment: str) -> Iterator[tuple[str, Need]]:
    for stack, team, home in workspace.teams():
        if team.environment == environment:
            yield from ((stack.name, need) for need in _of_team(team, home))


def _of_team(team: Team, home: Environment) -> Iterator[Need]:
    for cluster, shares in team.shares.items():
        yield _cluster(cluster)
        yield from (_flavor(cluster, flavor) for flavor in shares)
    for directory in team.directories.values():
        yield _instance(directory.filestore)
    for data in home.data_sets.values():
        if data.filestore and data.readable_by(team.name):
            yield _instance(data.filestore.instance)


def _offered(workspace: Workspace, environment: str) -> frozenset[Need]:
    """Return all that teams could need of an environment; nothing of one that is not there."""
    stack = workspace.stacks.get(environment)
    home = stack.environment if stack else None
    if home is None:
        return frozenset()
    flavors = (
        _flavor(cluster, flavor) for cluster in home.clusters for flavor in workspace.flavors(environment, cluster)
    )
    return frozenset((*map(_cluster, home.clusters), *flavors, *map(_instance, home.filestore)))


def _cluster(name: str) -> Need:
    return Need(("clusters",), f"cluster {name}")


def _flavor(cluster: str, name: str) -> Need:
    return Need(("clusters", cluster), f"flavor {name} of cluster {cluster}")


def _instance(name: str) -> Need:
    return Need(("filestore",), f"Filestore instance {name}")
