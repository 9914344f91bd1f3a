"""``training-platform persistent-resource``: lists idle persistent resources and their cost, and restarts their VMs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import (
    Commands,
    complete_stacks,
    example,
    fail,
    local_cloud_option,
    need,
    repository,
    root_option,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from training_platform.clients.google_services import PersistentResources
    from training_platform.config.model.environment import Environment
    from training_platform.config.model.team import PersistentResourceSpec, Team
    from training_platform.resources.scope import Scope

app = Commands("persistent-resource", help="Show and restart the VMs that Vertex AI keeps for a team.")


@app.command("list", epilog=example("training-platform persistent-resource list prod-vision"))
@click.argument(
    "stack", required=False, shell_complete=complete_stacks, help="The team's stack; default: the stacks of all teams."
)
@local_cloud_option
@root_option
def list_resources(stack: str | None, local_cloud: str | None, root: Path | None) -> None:
    """Print persistent resources with state, VMs in use and cost, for people and for a nightly alert.

    Needs application default credentials. Exit code 1: a resource is idle, or older than 30 days, after which Google
    recommends a new one. 2: Vertex AI did not answer.
    """
    from datetime import UTC, datetime

    from training_platform.parts.jobs.vertex.worker_pools import kept_machines

    teams = _teams(root)
    wrong = False
    names = [stack] if stack else list(teams)
    for team in names:
        scope, resources = _team(team, teams)
        for name, spec in resources.items():
            client, resource_id = _client(scope, name, spec, local_cloud)
            usage = kept_machines(spec, client.get(resource_id), datetime.now(UTC))
            wrong = wrong or usage.idle or usage.old
            say(f"{name if stack else f'{team} {name}'}: {usage}")
    sys.exit(int(wrong))


@app.command("reboot", epilog=example("training-platform persistent-resource reboot prod-vision tuning"))
@click.argument("stack", shell_complete=complete_stacks, help="The team's stack, such as prod-vision.")
@click.argument("name", help="The persistent resource, by its key in the stack file.")
@local_cloud_option
@root_option
def reboot(stack: str, name: str, local_cloud: str | None, root: Path | None) -> None:
    """Restart the idle VMs of a persistent resource. Pools with autoscaling restart with their minimum number of VMs.

    Needs application default credentials. Exit code 2: Vertex AI refused the request or did not answer.
    """
    from training_platform.catalog.nearest import find_nearest

    scope, resources = _team(stack, _teams(root))
    if name not in resources:
        nearest = find_nearest(name, resources)
        fail(f"{stack} has no persistent resource {name}.{f' Nearest: {nearest}.' if nearest else ''}")
    client, resource_id = _client(scope, name, resources[name], local_cloud)
    say(f"{name} restarts: {client.reboot(resource_id)}")


def _teams(root: Path | None) -> dict[str, tuple[Team, Environment]]:
    """Return the teams with their environments, keyed by stack."""
    from training_platform.config.workspace import read_workspace

    need("jobs", "Asking Vertex AI")
    return {stack.name: (team, home) for stack, team, home in read_workspace(repository(root)).teams()}


def _team(stack: str, teams: Mapping[str, tuple[Team, Environment]]) -> tuple[Scope, dict[str, PersistentResourceSpec]]:
    """Return a team's scope and its persistent resources. Exits if the stack is not a team's."""
    from training_platform.resources.scope import team_scope

    if stack not in teams:
        fail(f"{stack} is not a team's stack. Allowed: {', '.join(teams) or 'none is declared'}.")
    team, home = teams[stack]
    return team_scope(team, home), team.vertex.persistent_resources


def _client(
    scope: Scope, name: str, spec: PersistentResourceSpec, local_cloud: str | None
) -> tuple[PersistentResources, str]:
    from training_platform.clients.google_api import local_endpoint
    from training_platform.clients.google_services import PersistentResources
    from training_platform.resources.scope import persistent_resource_id

    endpoint = local_endpoint(local_cloud, "aiplatform")
    return PersistentResources(scope.project, spec.region, endpoint), persistent_resource_id(scope, name)
