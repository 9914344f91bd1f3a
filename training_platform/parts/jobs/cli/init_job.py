"""``training-platform init job``: writes a first job file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.answers import Answers, environment_answer, refuse_existing, write_file
from training_platform.cli.shared import example, fail, repository, root_option

if TYPE_CHECKING:
    from collections.abc import Collection

    from training_platform.config.expansion import Flavor
    from training_platform.config.model.team import Team
    from training_platform.config.workspace import Workspace
    from training_platform.quota.snapshot import Snapshot

_NAME_PARTS = 2


@click.command(
    "job",
    epilog=example("training-platform init job vision/train --environment prod --image registry.example.com/train:1"),
)
@click.argument("name", help="Team and name of the job, such as vision/train.")
@click.option("--environment", help="Stack of the environment.")
@click.option("--image", help="Container image with its tag.")
@click.option("--target", help="gke, vertex or both; default: gke.")
@click.option("--cluster", help="GKE: cluster in which the team has a share.")
@click.option("--flavor", help="GKE: a flavor of that share.")
@click.option("--region", help="Vertex AI: region of the job.")
@click.option("--machine-type", help="Vertex AI: machine type.")
@root_option
def init_job(
    *,
    name: str,
    environment: str | None,
    image: str | None,
    target: str | None,
    cluster: str | None,
    flavor: str | None,
    region: str | None,
    machine_type: str | None,
    root: Path | None,
) -> None:
    """Write jobs/TEAM/NAME.yaml. Exit code 2: the file was not written."""
    from training_platform.config.reading.clock import today
    from training_platform.config.workspace import read_workspace
    from training_platform.parts.jobs import first_file
    from training_platform.quota.snapshot import read_snapshots

    folder = repository(root)
    refuse_existing(folder, f"jobs/{name}.yaml")
    workspace = read_workspace(folder)
    answers = Answers()
    home = environment_answer(answers, environment, workspace)
    teams = {team.name: team for _, team, _ in workspace.teams() if team.environment == home}
    team = teams[_team_of(name, home, teams)]
    section = workspace.stacks[home].environment
    limits = read_snapshots(folder, today(folder, None)).get(team.project or (section.project if section else ""))
    where = answers.one_of(target, "--target", "Where it runs", ("gke", "vertex", "both"))
    text = first_file.head(home, answers.of(image, "--image", "Container image with its tag", str, example="image:1"))
    chosen = None
    if where != "vertex":
        shares = _shares(team, workspace, limits, both=where == "both")
        clusters = list(dict.fromkeys(key for key, _ in shares))
        cluster = answers.one_of(cluster, "--cluster", "Cluster", clusters, announced=True)
        flavors = [flavor_name for key, flavor_name in shares if key == cluster]
        flavor = answers.one_of(flavor, "--flavor", f"Flavor in {cluster}", flavors, announced=True)
        chosen = _flavor_of(team, cluster, flavor, workspace)
        text += first_file.on_gke(cluster, chosen)
    if where != "gke":
        machines = first_file.vertex_machines(chosen, limits)
        machine = answers.one_of(machine_type, "--machine-type", "Machine type on Vertex AI", machines)
        locations = [spec.location for spec in section.clusters.values()] if section else []
        regions = first_file.vertex_regions(machine, locations, limits)
        text += first_file.on_vertex(answers.one_of(region, "--region", "Region of Vertex AI", regions), machine)
    answers.end()
    write_file(folder, f"jobs/{name}.yaml", text)
    click.echo(f"Next: set its command, then training-platform job check jobs/{name}.yaml.")


def _shares(team: Team, workspace: Workspace, limits: Snapshot | None, *, both: bool) -> list[tuple[str, str]]:
    """Return a team's shares as pairs of cluster and flavor. Exits if there are none.

    A job for ``both`` targets has one image, so accelerators that Vertex AI also offers come first.
    """
    from training_platform.parts.jobs import first_file

    if not team.shares:
        fail(
            f"Team {team.name} has no share of a flavor in {team.environment}: add one under shares in its stack file."
        )
    shares = [(cluster, flavor) for cluster, flavors in team.shares.items() for flavor in flavors]
    if not both:
        return shares
    kinds = first_file.granted_kinds(limits)

    def is_not_on_vertex(share: tuple[str, str]) -> bool:
        flavor = workspace.flavors(team.environment, share[0]).get(share[1])
        return flavor is None or flavor.accelerator.kind not in kinds

    return sorted(shares, key=is_not_on_vertex)


def _flavor_of(team: Team, cluster: str, name: str, workspace: Workspace) -> Flavor:
    flavor = workspace.flavors(team.environment, cluster).get(name)
    if flavor is None:
        fail(f"Team {team.name} has a share of {name} in {cluster}, which is not a flavor of {team.environment}.")
    return flavor


def _team_of(name: str, home: str, teams: Collection[str]) -> str:
    """Return the team in a new job's name, TEAM/NAME. Exits if no job can have this name."""
    from training_platform.catalog.nearest import find_nearest
    from training_platform.parts.jobs.job_file import JOB_NAME, JOB_NAMES

    parts = name.split("/")
    if len(parts) != _NAME_PARTS or parts[0] not in teams:
        names = ", ".join(sorted(teams)) or "none"
        nearest = find_nearest(parts[0], teams)
        hint = f" Nearest: {nearest}/{parts[-1]}." if nearest else ""
        fail(f"{name!r} is not TEAM/NAME with a team of {home}. Its teams: {names}.{hint}")
    team, job = parts
    if not JOB_NAME.fullmatch(job):
        plain = re.sub("[^a-z0-9]+", "-", job.casefold()).strip("-")
        hint = f" Nearest: {team}/{plain}." if JOB_NAME.fullmatch(plain) else ""
        fail(f"a job cannot be called {job!r}. Allowed: {JOB_NAMES}.{hint}")
    return team
