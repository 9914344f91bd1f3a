"""``training-platform init``: writes the first files of environments, teams and jobs, and adds node pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from training_platform.cli.answers import (
    Answers,
    among,
    environment_answer,
    fits,
    given,
    legal_topology,
    refuse_existing,
    refuse_wrong,
    whole,
    write_stack,
)
from training_platform.cli.shared import (
    Commands,
    LateCommands,
    example,
    part_commands,
    repository,
    root_option,
    say_folded,
)

if TYPE_CHECKING:
    from training_platform.config.lent_quota import Amounts
    from training_platform.config.workspace import Workspace

app = Commands(
    "init",
    commands=LateCommands(part_commands("init")),
    help="Write the first file of an environment, a team or a job, or add a node pool.",
)
_MACHINES = "Machine type, or accelerator such as h100 or tpu-v5e"


@app.command(
    "environment",
    epilog=example(
        "training-platform init environment lab --project example-lab --no-production --machine-type a3-highgpu-8g"
    ),
)
@click.argument("name", help="Name of the stack, such as dev.")
@click.option("--project", help="Google Cloud project id.")
@click.option("--production/--no-production", default=None, help="Whether the rules for production apply.")
@click.option("--machine-type", "machine_types", multiple=True, help=f"{_MACHINES}; each adds a node pool; repeatable.")
@click.option(
    "--zone", "zones", multiple=True, help="Zone; once, or once for each pool; default: one that has the machine type."
)
@click.option(
    "--capacity", "capacities", multiple=True, help="Provisioning model; once, or once for each pool; default: spot."
)
@click.option(
    "--reservation", "reservations", multiple=True, help="For each pool with capacity reservation: NAME or any."
)
@click.option(
    "--max-nodes",
    type=click.IntRange(1),
    multiple=True,
    help="GPUs: maximum number of VMs; once, or once for each pool.",
)
@click.option("--topology", "topologies", multiple=True, help="TPUs: topology of a slice; once, or once for each pool.")
@click.option(
    "--slices", type=click.IntRange(1), multiple=True, help="TPUs: number of slices; once, or once for each pool."
)
@click.option("--alert-email", "emails", multiple=True, help="Recipient of alerts; repeatable.")
@click.option("--google-groups-domain", help="Domain whose Google Groups can have rights in the clusters.")
@root_option
def environment(
    *,
    name: str,
    project: str | None,
    production: bool | None,
    machine_types: tuple[str, ...],
    zones: tuple[str, ...],
    capacities: tuple[str, ...],
    reservations: tuple[str, ...],
    max_nodes: tuple[int, ...],
    topologies: tuple[str, ...],
    slices: tuple[int, ...],
    emails: tuple[str, ...],
    google_groups_domain: str | None,
    root: Path | None,
) -> None:
    """Write stacks/Pulumi.NAME.yaml: an environment, its node pools, and a cluster for each of their regions.

    Exit code 2: nothing was written.
    """
    from training_platform.config.first_files import environment_text, machine_named
    from training_platform.config.reading.section import Email, HostName, ProjectId
    from training_platform.config.workspace import read_workspace

    folder = repository(root)
    refuse_existing(folder, f"stacks/Pulumi.{name}.yaml")
    answers = Answers()
    project_id = answers.of(project, "--project", "Google Cloud project id", fits(ProjectId), example="example")
    is_production = answers.production(production)
    machines = answers.of_all(
        machine_types, "--machine-type", f"{_MACHINES}; repeatable", machine_named, example="h100"
    )
    pools = answers.pools([machine.name for machine in machines], zones, capacities, reservations)
    pools = answers.sized(pools, max_nodes, topologies, slices)
    emails = tuple(answers.of(email, "--alert-email", "", fits(Email), example="a@example.com") for email in emails)
    if (domain := google_groups_domain) is not None:
        domain = answers.of(domain, "--google-groups-domain", "", fits(HostName), example="example.com")
    answers.end()
    workspace = read_workspace(folder)
    other_environments = [section for _, section in workspace.environments()]
    text = environment_text(
        name=name, project=project_id, production=is_production, pools=pools, emails=emails,
        google_groups_domain=domain, other_environments=other_environments,
    )  # fmt: skip
    write_stack(folder, workspace, name, text)
    workspace = read_workspace(folder)
    _say_pools(workspace, name)
    _say_next(workspace, name)


@app.command("pool", epilog=example("training-platform init pool prod --machine-type a2-highgpu-1g"))
@click.argument("environment", help="Stack of the environment.")
@click.option("--name", help="Name of the pool; default: the accelerator's.")
@click.option("--machine-type", help=f"{_MACHINES}.")
@click.option("--zone", help="Zone; default: one that offers the machine type, near the environment's clusters.")
@click.option("--capacity", help="Provisioning model; default: spot.")
@click.option("--reservation", help="Name of the reservation, or any; for capacity reservation.")
@click.option("--cluster", help="Cluster; default: one in the zone's region, or a new one.")
@click.option("--max-nodes", type=click.IntRange(1), help="GPUs: maximum number of VMs; default: 1.")
@click.option("--topology", help="TPUs: topology of a slice; default: the smallest.")
@click.option("--slices", type=click.IntRange(1), help="TPUs: slices; default: 1.")
@root_option
def pool(
    *,
    environment: str,
    name: str | None,
    machine_type: str | None,
    zone: str | None,
    capacity: str | None,
    reservation: str | None,
    cluster: str | None,
    max_nodes: int | None,
    topology: str | None,
    slices: int | None,
    root: Path | None,
) -> None:
    """Add a node pool to stacks/Pulumi.ENVIRONMENT.yaml and keep all other lines. Exit code 2: nothing was written."""
    from dataclasses import replace

    from training_platform.catalog.locations import region_of
    from training_platform.checks.output import write_files
    from training_platform.config.first_files import machine_named, with_pool
    from training_platform.config.reading.section import Name
    from training_platform.config.workspace import read_workspace

    folder = repository(root)
    workspace = read_workspace(folder)
    answers = Answers()
    home = environment_answer(answers, environment, workspace, "ENVIRONMENT")
    section = workspace.stacks[home].environment
    source = workspace.stacks[home].source
    clusters = section.clusters if section else {}
    near = [region_of(spec.location) for spec in clusters.values()]
    machine = answers.of(machine_type, "--machine-type", _MACHINES, machine_named, example="h100")
    (first,) = answers.pools([machine.name], given(zone), given(capacity), given(reservation), near)
    if name is not None:
        answers.of(name, "--name", "", fits(Name), example="h100")
    if cluster is not None:
        answers.of(cluster, "--cluster", "", among(clusters), example=next(iter(clusters), None))
    if topology is not None and machine.kind == "tpu":
        answers.of(topology, "--topology", "", legal_topology(machine), example=machine.single_host)
    answers.end()
    more = {"max_nodes": max_nodes, "topology": topology, "slices": slices}
    first = replace(first, more={key: str(value) for key, value in more.items() if value is not None})
    path = folder / source.file
    other_environments = [other for stack, other in workspace.environments() if stack.name != home]
    before = path.read_bytes().decode("utf-8-sig")
    text, where, called = with_pool(
        before, home, first, name=name, cluster=cluster, other_environments=other_environments
    )
    refuse_wrong(workspace, home, text)
    write_files({path: text})
    cluster = f"cluster {where}" if where in clusters else f"the new cluster {where}"
    say_folded(f"{source.file}: node pool {called} written, in {cluster}")
    workspace = read_workspace(folder)
    flavor = _say_pools(workspace, home, called)
    teams = [team for _, team, _ in workspace.teams() if team.environment == home]
    if not any(flavor in team.shares.get(where, {}) for team in teams):
        say_folded(f"No team has a share of {flavor} yet: add one to a team's file, or to a new team.")
    _say_next(workspace, home)


@app.command(
    "team", epilog=example("training-platform init team robots --environment prod --member group:robots@example.com")
)
@click.argument("name", help="Name of the team; also its namespace in the clusters.")
@click.option("--environment", help="Stack of the team's environment.")
@click.option("--member", "members", multiple=True, help="IAM member, such as group:vision@example.com; repeatable.")
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="[CLUSTER/]FLAVOR=AMOUNT",
    help="GPUs or chips of a flavor; repeatable; default: everything that no team has.",
)
@root_option
def team(
    name: str, environment: str | None, members: tuple[str, ...], shares: tuple[str, ...], root: Path | None
) -> None:
    """Write stacks/Pulumi.ENVIRONMENT-NAME.yaml: a team, by default with all unassigned capacity.

    Exit code 2: nothing was written.
    """
    from training_platform.config.first_files import team_text
    from training_platform.config.reading.section import Member
    from training_platform.config.workspace import read_workspace

    folder = repository(root)
    workspace = read_workspace(folder)
    answers = Answers()
    home = environment_answer(answers, environment, workspace)
    refuse_existing(folder, f"stacks/Pulumi.{home}-{name}.yaml")
    description = "IAM member, such as group:vision@example.com; repeatable"
    of = answers.of_all(members, "--member", description, fits(Member), example="group:vision@example.com")
    amounts = _amounts(answers, workspace, home, shares)
    answers.end()
    text = team_text(environment=home, name=name, members=of, shares=amounts)
    write_stack(folder, workspace, f"{home}-{name}", text)
    workspace = read_workspace(folder)
    _say_shares(workspace, home, amounts)
    groups = [member for member in of if member.startswith("group:")]
    file = workspace.stacks[home].source.file
    spec = workspace.stacks[home].environment
    if groups and spec and spec.clusters and not spec.google_groups_domain:
        domain = groups[0].rpartition("@")[2]
        say_folded(
            f"Groups have no rights in clusters yet: write google_groups_domain: {domain} into {file}, directly below "
            f"training-platform:environment, and add the groups to the group gke-security-groups@{domain}."
        )
    _say_next(workspace, home)


def _say_pools(workspace: Workspace, home: str, only: str | None = None) -> str:
    """Print an environment's node pools, or only those named ``only``. Return the flavor of the last printed one."""
    from training_platform.config.expansion import flavor_name, pools
    from training_platform.config.reading.section import counted

    section = workspace.stacks[home].environment
    flavor = ""
    written_pools = pools(section) if section else []
    for pool in written_pools:
        if only in (None, pool.name):
            flavor = flavor_name(pool)
            unit = "chip" if pool.machine.kind == "tpu" else "GPU"
            say_folded(
                f"  node pool {pool.name} in {pool.cluster}: up to {counted(pool.max_nodes, 'VM')} of "
                f"{pool.machine.name} ({counted(pool.max_chips, unit)}) in {pool.zone or pool.region}, "
                f"{pool.spec.capacity}; teams use it as flavor {flavor}"
            )
            if section and section.production and pool.spec.capacity == "spot":
                say_folded("    Google stops spot VMs at any time. For production, see --capacity.")
    return flavor


def _say_next(workspace: Workspace, home: str) -> None:
    """Print the next commands, including `quota init` only for a project without recorded limits."""
    from training_platform.quota.snapshot import FOLDER

    section = workspace.stacks[home].environment
    has_snapshot = section is not None and (workspace.root / FOLDER / f"{section.project}.yaml").exists()
    click.echo(f"Next: {'' if has_snapshot else 'training-platform quota init, then '}training-platform check.")


def _amounts(answers: Answers, workspace: Workspace, home: str, shares: Sequence[str]) -> Amounts:
    """Return how many GPUs or chips a new team gets: as given by flags, or all that no other team has."""
    from training_platform.config.lent_quota import unpromised

    section = workspace.stacks[home].environment
    clusters = list(section.clusters) if section else []
    rows = {
        f"{cluster}/{name}": flavor for cluster in clusters for name, flavor in workspace.flavors(home, cluster).items()
    }
    names = list(rows)
    unpromised_chips = unpromised(workspace, home)

    def share_of(text: str) -> tuple[str, str, int]:
        named, _, amount = text.partition("=")
        meant = [row for row in names if named in (row, row.partition("/")[2])]
        meant = meant or [row for row, flavor in rows.items() if named == flavor.accelerator.name]
        if len(meant) > 1:
            raise ValueError(f"{named!r} is ambiguous: {', '.join(meant)}. Allowed: one of them.")
        if not meant:
            among(names)(named)
        cluster, _, flavor = meant[0].partition("/")
        return cluster, flavor, fitting(cluster, flavor, whole(amount))

    def fitting(cluster: str, flavor: str, amount: int) -> int:
        """Return an amount if it consists of whole VMs or slices that no other team has. Raises ValueError."""
        row = rows[f"{cluster}/{flavor}"]
        size = row.chips_per_slice
        available = unpromised_chips.get(cluster, {}).get(flavor, 0)
        if amount % size:
            unit = "slice" if row.accelerator.kind == "tpu" else "VM"
            nearest = max(size, min(available, amount // size * size))
            raise ValueError(
                f"{flavor}={amount} must be a multiple of {size}, one {unit}. Nearest: {flavor}={nearest}."
            )
        if amount > available:
            raise ValueError(
                f"{flavor}={amount} exceeds the unassigned {flavor} in {cluster}: {available}. Nearest: "
                f"{flavor}={available}, or a lower nominal_quota of another team, or more VMs in the flavor's pools."
            )
        return amount

    amounts: Amounts = {}
    for share in shares:
        example = f"{names[0]}=0" if names else None
        cluster, flavor, amount = answers.of(share, "--share", "", share_of, example=example)
        amounts.setdefault(cluster, {})[flavor] = amount
    if shares:
        return amounts
    free = {cluster: _positive(flavors) for cluster, flavors in unpromised_chips.items()}
    return {cluster: flavors for cluster, flavors in free.items() if flavors}


def _positive(amounts: Mapping[str, int]) -> dict[str, int]:
    return {flavor: amount for flavor, amount in amounts.items() if amount}


def _say_shares(workspace: Workspace, home: str, amounts: Amounts) -> None:
    """Print a new team's shares, and explain how the next team can get one."""
    from training_platform.config.lent_quota import unpromised

    for cluster, flavors in amounts.items():
        for flavor, amount in flavors.items():
            row = workspace.flavors(home, cluster)[flavor]
            unit = "chips" if row.accelerator.kind == "tpu" else "GPUs"
            say_folded(f"  share of {flavor} in {cluster}: {amount:,} of {row.queue_chips:,} {unit}")
    if not amounts:
        say_folded(f"  no share: all capacity of {home} is assigned to teams")
    if not unpromised(workspace, home):
        of_home = (
            stack.source.file
            for stack, other, _ in workspace.teams()
            if other.environment == home
            and any(share.nominal_quota for flavors in other.shares.values() for share in flavors.values())
        )
        if files := ", ".join(of_home):
            if amounts and not any(amount for flavors in amounts.values() for amount in flavors.values()):
                say_folded(
                    f"The team can only borrow. To give it GPUs or chips, lower a nominal_quota in {files} first."
                )
                return
            way = "or let it only borrow with --share FLAVOR=0"
            say_folded(f"Nothing is left for another team: lower a nominal_quota in {files} first, {way}.")
