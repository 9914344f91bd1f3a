"""What is wrong with notebooks of teams, which only the teams' own files and the pools' machines can show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.model.workloads import NotebookTeam
from training_platform.config.pools import ExpandedPool, cluster_pools, flavor_name
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.resources.jupyterhub.profiles import holds_notebooks

RULE = "notebooks-of-teams"


def notebook_findings(workspace: Workspace) -> Iterator[Finding]:
    """Find profiles of teams that nobody could start: no team, no share, no such machine, no account, no image."""
    for stack, home in workspace.environments():
        teams = {team.name: team for _, team, _ in workspace.teams() if team.environment == stack.name}
        for cluster, spec in home.clusters.items():
            path: Path = ("clusters", cluster, "notebooks")
            pools = {pool.name: pool for pool in cluster_pools(cluster, spec)}
            if spec.notebooks is None:
                continue
            for name, team in spec.notebooks.teams.items():
                here = (*path, "teams", name)
                if name not in teams:
                    message = f"no stack of a team {name!r} belongs to {stack.name}"
                    allowed = enumeration(teams) or "the name of a team that has one"
                    nearest = find_nearest(name, teams)  # its file may come after the environment's
                    yield stack.finding(RULE, here, message, severity="warning", allowed=allowed, nearest=nearest)
                    continue
                yield from _pools(stack, here, team, teams[name], pools)
                yield from _people(stack, here, team, spec.notebooks.allowed_domain)
            yield from _image(stack, path, spec.notebooks.image, home) if spec.notebooks.teams else ()


def _pools(
    stack: Stack, path: Path, spec: NotebookTeam, team: Team, pools: Mapping[str, ExpandedPool]
) -> Iterator[Finding]:
    cluster = str(path[1])
    shares = team.shares.get(cluster, {})
    good = [name for name, pool in pools.items() if flavor_name(pool) in shares and holds_notebooks(pool)]
    for number, name in enumerate(spec.pools):
        if name in good:
            continue
        if holds_notebooks(pools[name]):
            flavor = flavor_name(pools[name])
            message = f"team {team.name} has no share of {flavor} in {cluster}: its notebooks would wait for ever"
        else:
            message = f"{name} has no notebooks: its VMs do not start for a notebook, which is a single pod"
        allowed = enumeration(good) or "a pool of single VMs of whose flavor the team has a share"
        yield stack.finding(RULE, (*path, "pools", number), message, allowed=allowed, nearest=min(good, default=None))


def _people(stack: Stack, path: Path, spec: NotebookTeam, domain: str) -> Iterator[Finding]:
    for number, user in enumerate(spec.users):
        name, _, own = user.partition("@")
        if own != domain:
            message = f"{user} is not an account of {domain}, which alone may sign in"
            yield stack.finding(RULE, (*path, "users", number), message, nearest=f"{name}@{domain}")


def _image(stack: Stack, path: Path, image: str | None, home: Environment) -> Iterator[Finding]:
    if home.image_sources and not (image or "").startswith(home.image_sources):
        message = f"{image or 'the image of the catalogue'} comes from elsewhere than image_sources say"
        yield stack.finding(
            RULE, (*path, "image"), f"{message}: pods of it are refused in namespaces of teams",
            allowed=f"images of {enumeration(home.image_sources)}",
        )  # fmt: skip
