"""``training-platform init``: the first file of an environment, a team or a job, by flags or by questions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.shared import Commands, fail, repository, root_option

if TYPE_CHECKING:
    from training_platform.config.workspace import Workspace

app = Commands("init", help="Write the first file of an environment, a team or a job.")
JOB_NAME_PARTS = 2
_SHOWN = 6  # choices in a question


@app.command("environment")
@click.argument("name", help="Name of the stack, such as dev.")
@click.option("--project", help="Google Cloud project id.")
@click.option("--production/--no-production", default=None, help="Whether the rules for production apply.")
@click.option("--machine-type", help="Machine type of the node pool.")
@click.option("--zone", help="Zone of the node pool; default: a zone that offers the machine type.")
@click.option("--capacity", help="Provisioning model; default: spot.")
@click.option("--alert-email", "emails", multiple=True, help="Recipient of alerts; repeatable.")
@root_option
def environment(
    *,
    name: str,
    project: str | None,
    production: bool | None,
    machine_type: str | None,
    zone: str | None,
    capacity: str | None,
    emails: tuple[str, ...],
    root: Path | None,
) -> None:
    """Write stacks/Pulumi.NAME.yaml: an environment with one cluster and one node pool. Exit code 2: not written."""
    from training_platform.catalog import MACHINE_TYPES
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.first_files import environment_text, first_capacity, first_zone

    folder = repository(root)
    if not sys.stdin.isatty() and project is None and production is None:
        fail("--project and --production or --no-production are missing.")
    project_id = _asked(project, "--project", "Google Cloud project id")
    is_production = decided(production)
    chosen = _asked(machine_type, "--machine-type", "Machine type of the first node pool", "a3-highgpu-8g")
    accelerated = [machine.name for machine in MACHINE_TYPES.values() if machine.accelerator is not None]
    if chosen not in accelerated:
        nearest = find_nearest(chosen, accelerated)
        fail(f"{chosen!r} is not a machine type with TPUs or GPUs.{f' Nearest: {nearest}.' if nearest else ''}")
    text = environment_text(
        project=project_id,
        production=is_production,
        machine_type=chosen,
        zone=_asked(zone, "--zone", "Zone of the node pool", first_zone(chosen)),
        capacity=capacity or first_capacity(chosen),
        emails=emails,
    )
    _write_stack(folder, name, text)
    click.echo("Next: training-platform quota init, then training-platform check.")


@app.command("team")
@click.argument("name", help="Name of the team; also its namespace in the clusters.")
@click.option("--environment", help="Stack of its environment.")
@click.option("--member", "members", multiple=True, help="IAM member, such as group:vision@example.com; repeatable.")
@root_option
def team(name: str, environment: str | None, members: tuple[str, ...], root: Path | None) -> None:
    """Write stacks/Pulumi.ENVIRONMENT-NAME.yaml: a team with all unassigned capacity. Exit code 2: not written."""
    from training_platform.config.first_files import team_text
    from training_platform.config.workspace import read_workspace, unpromised

    folder = repository(root)
    workspace = read_workspace(folder)
    home = _environment(environment, workspace)
    of = members or [_asked(None, "--member", "IAM member, such as group:vision@example.com")]
    text = team_text(environment=home, name=name, members=of, shares=unpromised(workspace, home))
    _write_stack(folder, f"{home}-{name}", text)
    click.echo("Next: set the shares that the team is to have, then training-platform check.")


@app.command("job")
@click.argument("name", help="Team and name of the job, such as vision/train.")
@click.option("--environment", help="Stack of the environment.")
@click.option("--image", help="Container image with its tag.")
@click.option("--target", help="gke, vertex or both; default: gke.")
@click.option("--cluster", help="GKE: cluster in which the team has a share.")
@click.option("--flavor", help="GKE: a flavor of that share.")
@click.option("--region", help="Vertex AI: region that trains.")
@click.option("--machine-type", help="Vertex AI: machine type.")
@root_option
def job(
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
    """Write jobs/TEAM/NAME.yaml, by flags or by questions. Exit code 2: not written."""
    from training_platform.config.workspace import read_workspace
    from training_platform.jobs import first_file

    folder = repository(root)
    workspace = read_workspace(folder)
    home = _environment(environment, workspace)
    where = _one_of(target, "--target", "Where it runs: gke, vertex or both", ("gke", "vertex", "both"), "gke")
    parts = name.split("/")
    owners = {team.name: team for _, team, _ in workspace.teams() if team.environment == home}
    if len(parts) != JOB_NAME_PARTS or parts[0] not in owners:
        teams = f"has {', '.join(sorted(owners)) or 'no team'}"
        declared = any(stack.name == home for stack, _ in workspace.environments())
        fail(f"{name!r} is not TEAM/NAME of a team of {home}, which {teams if declared else 'is not an environment'}.")
    owner = owners[parts[0]]
    text = first_file.head(home, _asked(image, "--image", "Container image with its tag"))
    chosen = None
    if where != "vertex":
        if not owner.shares:
            fail(f"Team {owner.name} has no share of a flavor in {home}: add one under shares in its stack file.")
        at = _one_of(cluster, "--cluster", "Cluster", list(owner.shares))
        on = _one_of(flavor, "--flavor", f"Flavor in {at}", list(owner.shares[at]))
        chosen = workspace.flavors(home, at).get(on)
        if chosen is None:
            fail(f"Team {owner.name} has a share of {on} in {at}, which is not a flavor of {home}.")
        text += first_file.on_gke(at, chosen)
    if where != "gke":
        machines = first_file.vertex_machines(chosen)
        machine = _one_of(machine_type, "--machine-type", "Machine type on Vertex AI", machines)
        sections = (section for stack, section in workspace.environments() if stack.name == home)
        near = [cluster.location for section in sections for cluster in section.clusters.values()]
        regions = first_file.vertex_regions(machine, near)
        text += first_file.on_vertex(_one_of(region, "--region", "Region of Vertex AI", regions), machine)
    _write(folder, f"jobs/{name}.yaml", text)
    click.echo(f"Next: set its command, then training-platform job check jobs/{name}.yaml.")


def _one_of(flag: str | None, option: str, question: str, allowed: Sequence[str], default: str | None = None) -> str:
    """Return a flag's value or an answer, which has to be one of ``allowed``; the default is the first."""
    from training_platform.catalog.nearest import find_nearest

    asked = f"{question} ({', '.join(allowed[:_SHOWN])}{', ...' if len(allowed) > _SHOWN else ''})"
    chosen = _asked(flag, option, asked, default or allowed[0])
    if chosen not in allowed:
        nearest = find_nearest(chosen, allowed)
        fail(f"{option} {chosen!r} is not one of {', '.join(allowed)}." + (f" Nearest: {nearest}." if nearest else ""))
    return chosen


def _asked(flag: str | None, option: str, question: str, default: str | None = None) -> str:
    """Return a flag's value, else an answer where somebody can be asked, else the default."""
    if flag is not None:
        return flag
    if sys.stdin.isatty():
        return str(click.prompt(question, default=default))
    return default if default is not None else fail(f"{option} is missing: {question}.")


def decided(production: bool | None) -> bool:
    """Return a flag's value, else an answer; ends the command where nobody can be asked."""
    if production is None and sys.stdin.isatty():
        return click.confirm("Is it production, where nothing that holds data may be deletable?")
    return production if production is not None else fail("--production or --no-production is missing.")


def _environment(flag: str | None, workspace: Workspace) -> str:
    """Return the environment of a team or job: a flag's value or an answer, by default the only environment."""
    names = [stack.name for stack, _ in workspace.environments()]
    question = f"Stack of the environment ({', '.join(names) or 'none is declared'})"
    return _asked(flag, "--environment", question, names[0] if len(names) == 1 else None)


def _write_stack(folder: Path, name: str, text: str) -> None:
    """Write a stack file that the model takes beside all others."""
    from training_platform.config.first_files import findings_of

    if wrong := findings_of(folder, name, text):
        for finding in wrong:
            click.echo(str(finding), err=True)
        fail("nothing was written.")
    _write(folder, f"stacks/Pulumi.{name}.yaml", text)


def _write(folder: Path, file: str, text: str) -> None:
    from training_platform.checks.output import write_files

    if (folder / file).exists():
        fail(f"{file} is there already; it was not changed.")
    write_files({folder / file: text}, folders=True)
    click.echo(f"{file}: written")
