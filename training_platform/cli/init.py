"""``training-platform init``: first files of environments, teams and jobs, and more pools: by flags or questions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from training_platform.cli.shared import Commands, example, fail, repository, root_option, say

if TYPE_CHECKING:
    from training_platform.config.first_files import FirstPool
    from training_platform.config.workspace import Amounts, Workspace

app = Commands("init", help="Write the first file of an environment, a team or a job, or add a node pool.")
JOB_NAME_PARTS = 2
_SHOWN = 6  # choices in a question
_Value = TypeVar("_Value")
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
@click.option("--machine-type", "machine_types", multiple=True, help=f"{_MACHINES}; a node pool each; repeatable.")
@click.option(
    "--zone", "zones", multiple=True, help="Zone; once, or once for each pool; default: one with the machine."
)
@click.option("--capacity", "capacities", multiple=True, help="Provisioning model; once, or for each; default: spot.")
@click.option(
    "--reservation", "reservations", multiple=True, help="For each pool of capacity reservation; NAME or any."
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
    emails: tuple[str, ...],
    google_groups_domain: str | None,
    root: Path | None,
) -> None:
    """Write stacks/Pulumi.NAME.yaml: an environment, its node pools, and a cluster for each of their regions.

    Exit code 2: not written.
    """
    from training_platform.config.first_files import environment_text, machine_named
    from training_platform.config.reading.section import Email, HostName, ProjectId
    from training_platform.config.workspace import read_workspace

    folder = repository(root)
    _absent(folder, f"stacks/Pulumi.{name}.yaml")
    answers = Answers()
    project_id = answers.of(project, "--project", "Google Cloud project id", _fits(ProjectId), example="example")
    is_production = answers.production(production)
    machines = answers.of_all(
        machine_types, "--machine-type", f"{_MACHINES}; several with spaces", machine_named, default="h100"
    )
    pools = answers.pools([machine.name for machine in machines], zones, capacities, reservations)
    emails = tuple(answers.of(each, "--alert-email", "", _fits(Email), example="a@example.com") for each in emails)
    if (domain := google_groups_domain) is not None:
        domain = answers.of(domain, "--google-groups-domain", "", _fits(HostName), example="example.com")
    answers.end()
    workspace = read_workspace(folder)
    others = [section for _, section in workspace.environments()]
    text = environment_text(
        name=name, project=project_id, production=is_production, pools=pools, emails=emails,
        google_groups_domain=domain, others=others,
    )  # fmt: skip
    _write_stack(folder, workspace, name, text)
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
@click.option("--max-nodes", type=click.IntRange(1), help="GPUs: most VMs; default: 1.")
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
    """Add a node pool to stacks/Pulumi.ENVIRONMENT.yaml; all other lines stay. Exit code 2: not written."""
    from dataclasses import replace

    from training_platform.catalog.locations import region_of
    from training_platform.checks.output import write_files
    from training_platform.config.first_files import machine_named, with_pool
    from training_platform.config.reading.section import Name
    from training_platform.config.workspace import read_workspace

    folder = repository(root)
    workspace, answers = read_workspace(folder), Answers()
    home = _environment(answers, environment, workspace, "ENVIRONMENT")
    section, source = workspace.stacks[home].environment, workspace.stacks[home].source
    clusters = section.clusters if section else {}
    near = [region_of(spec.location) for spec in clusters.values()]
    machine = answers.of(machine_type, "--machine-type", _MACHINES, machine_named, default="h100")
    (first,) = answers.pools([machine.name], _given(zone), _given(capacity), _given(reservation), near)
    if name is not None:
        answers.of(name, "--name", "", _fits(Name), example="h100")
    if cluster is not None:
        answers.of(cluster, "--cluster", "", _among(clusters), example=next(iter(clusters), None))
    answers.end()
    more = {"max_nodes": max_nodes, "topology": topology, "slices": slices}
    first = replace(first, more={key: str(value) for key, value in more.items() if value is not None})
    path = folder / source.file
    others = [other for stack, other in workspace.environments() if stack.name != home]
    before = path.read_bytes().decode("utf-8-sig")
    text, where, called = with_pool(before, home, first, name=name, cluster=cluster, others=others)
    _refuse_wrong(workspace, home, text)
    write_files({path: text})
    at = f"in the new cluster {where}" if where not in clusters else f"in cluster {where}"
    say(f"{source.file}: node pool {called} written, {at}")
    workspace = read_workspace(folder)
    flavor = _say_pools(workspace, home, called)
    say(f"No team has a share of {flavor} yet: write one into a team's file, or give one to a new team.")
    _say_next(workspace, home)


@app.command(
    "team", epilog=example("training-platform init team robots --environment prod --member group:robots@example.com")
)
@click.argument("name", help="Name of the team; also its namespace in the clusters.")
@click.option("--environment", help="Stack of its environment.")
@click.option("--member", "members", multiple=True, help="IAM member, such as group:vision@example.com; repeatable.")
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="[CLUSTER/]FLAVOR=AMOUNT",
    help="GPUs or chips of a flavor; repeatable; default: all that no team has.",
)
@root_option
def team(
    name: str, environment: str | None, members: tuple[str, ...], shares: tuple[str, ...], root: Path | None
) -> None:
    """Write stacks/Pulumi.ENVIRONMENT-NAME.yaml: a team, by default with all unassigned capacity.

    Exit code 2: not written.
    """
    from training_platform.config.first_files import team_text
    from training_platform.config.reading.section import Member
    from training_platform.config.workspace import read_workspace

    folder = repository(root)
    workspace, answers = read_workspace(folder), Answers()
    home = _environment(answers, environment, workspace)
    _absent(folder, f"stacks/Pulumi.{home}-{name}.yaml")
    question = "IAM members, such as group:vision@example.com; several with spaces"
    of = answers.of_all(members, "--member", question, _fits(Member), example="group:vision@example.com")
    amounts = _amounts(answers, workspace, home, shares)
    answers.end()
    text = team_text(environment=home, name=name, members=of, shares=amounts)
    _write_stack(folder, workspace, f"{home}-{name}", text)
    workspace = read_workspace(folder)
    _say_shares(workspace, home, amounts)
    groups = [member for member in of if member.startswith("group:")]
    file, spec = workspace.stacks[home].source.file, workspace.stacks[home].environment
    if groups and spec and spec.clusters and not spec.google_groups_domain:
        domain = groups[0].rpartition("@")[2]
        say(f"Groups have no rights in clusters yet: write google_groups_domain: {domain} into {file}, at the top of")
        say(f"training-platform:environment, and make them members of the group gke-security-groups@{domain}.")
    _say_next(workspace, home)


def _say_pools(workspace: Workspace, home: str, only: str | None = None) -> str:
    """Print an environment's node pools, or the last of one name; return the last one's flavor."""
    from training_platform.checks.reports.wording import counted
    from training_platform.config.pools import flavor_name, pools

    section, flavor = workspace.stacks[home].environment, ""
    for pool in pools(section) if section else ():
        if only in (None, pool.name):
            flavor, unit = flavor_name(pool), "chip" if pool.machine.kind == "tpu" else "GPU"
            say(
                f"  node pool {pool.name} in {pool.cluster}: up to {counted(pool.max_nodes, 'VM')} of "
                f"{pool.machine.name} ({counted(pool.max_chips, unit)}) in {pool.zone or pool.region}, "
                f"{pool.spec.capacity}; teams name it {flavor}"
            )
            if section and section.production and pool.spec.capacity == "spot":
                say("    Google stops spot VMs at any time. For production, see --capacity.")
    return flavor


def _say_next(workspace: Workspace, home: str) -> None:
    """Print what to run next: amounts of quota are only to write where the project has none yet."""
    from training_platform.quota.snapshot import FOLDER

    section = workspace.stacks[home].environment
    known = section is not None and (workspace.root / FOLDER / f"{section.project}.yaml").exists()
    click.echo(f"Next: {'' if known else 'training-platform quota init, then '}training-platform check.")


def _amounts(answers: Answers, workspace: Workspace, home: str, shares: Sequence[str]) -> Amounts:
    """Return a new team's GPUs or chips: as flags have them, else by questions, else all that no team has."""
    from training_platform.config.workspace import unpromised

    section = workspace.stacks[home].environment
    rows = {
        f"{at}/{name}": flavor
        for at in (section.clusters if section else ())
        for name, flavor in workspace.flavors(home, at).items()
    }
    known, left = list(rows), unpromised(workspace, home)

    def share_of(text: str) -> tuple[str, str, int]:
        named, _, amount = text.partition("=")
        meant = [row for row in known if named in (row, row.partition("/")[2])]
        meant = meant or [row for row, flavor in rows.items() if named == flavor.accelerator.name]
        if len(meant) != 1:
            _among(meant or known)(named)
        at, _, flavor = meant[0].partition("/")
        return at, flavor, fitting(at, flavor, _whole(amount))

    def fitting(at: str, flavor: str, amount: int) -> int:
        """Return an amount that is whole VMs or slices, and that no other team has."""
        size, most = rows[f"{at}/{flavor}"].chips_per_slice, left.get(at, {}).get(flavor, 0)
        if amount % size:
            unit = "slice" if rows[f"{at}/{flavor}"].accelerator.kind == "tpu" else "VM"
            nearest = max(size, min(most, amount // size * size))
            raise ValueError(
                f"{flavor}={amount} is no whole number of {unit}s: one {unit} is {size}. Nearest: {flavor}={nearest}."
            )
        if amount > most:
            raise ValueError(
                f"{flavor}={amount} is more than teams have left of {flavor} in {at}: {most}. Nearest: "
                f"{flavor}={most}, or a lower nominal_quota of another team, or more VMs in its pools."
            )
        return amount

    amounts: Amounts = {}
    for share in shares:
        at, flavor, amount = answers.of(share, "--share", "", share_of, example=f"{known[0]}=0" if known else None)
        amounts.setdefault(at, {})[flavor] = amount
    for at, free in {} if shares else left.items():
        for flavor, most in free.items():
            taken = partial(lambda at, flavor, text: fitting(at, flavor, _whole(text)), at, flavor)
            if amount := answers.of(None, "--share", f"Share of {flavor} in {at}", taken, default=str(most)):
                amounts.setdefault(at, {})[flavor] = amount
    return amounts


def _say_shares(workspace: Workspace, home: str, amounts: Amounts) -> None:
    """Print what a new team has, and how the next one gets a share."""
    from training_platform.config.workspace import unpromised

    for at, given in amounts.items():
        for flavor, amount in given.items():
            row = workspace.flavors(home, at)[flavor]
            unit = "chips" if row.accelerator.kind == "tpu" else "GPUs"
            say(f"  share of {flavor} in {at}: {amount:,} of {row.queue_chips:,} {unit}")
    if not amounts:
        say(f"  no share: {home} has no capacity that is assigned to no team")
    if not unpromised(workspace, home):
        of_home = (
            stack.source.file
            for stack, other, _ in workspace.teams()
            if other.environment == home
            and any(row.nominal_quota for own in other.shares.values() for row in own.values())
        )
        if files := ", ".join(of_home):
            if amounts and not any(amount for given in amounts.values() for amount in given.values()):
                say(f"It can only borrow: for GPUs or chips of its own, lower a nominal_quota in {files} first.")
                return
            way = "or give it --share FLAVOR=0, to borrow"
            say(f"Nothing is left for another team: lower a nominal_quota in {files} first, {way}.")


@app.command(
    "job",
    epilog=example("training-platform init job vision/train --environment prod --image registry.example.com/train:1"),
)
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
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.reading.clock import today
    from training_platform.config.workspace import read_workspace
    from training_platform.jobs import first_file
    from training_platform.quota.snapshot import read_snapshots

    folder = repository(root)
    _absent(folder, f"jobs/{name}.yaml")
    workspace, answers = read_workspace(folder), Answers()
    home = _environment(answers, environment, workspace)
    parts = name.split("/")
    owners = {team.name: team for _, team, _ in workspace.teams() if team.environment == home}
    if len(parts) != JOB_NAME_PARTS or parts[0] not in owners:
        teams = ", ".join(sorted(owners)) or "no team"
        nearest = find_nearest(parts[0], owners)
        hint = f" Nearest: {nearest}/{parts[-1]}." if nearest else ""
        fail(f"{name!r} is not TEAM/NAME of a team of {home}, which has {teams}.{hint}")
    owner = owners[parts[0]]
    section = workspace.stacks[home].environment
    limits = read_snapshots(folder, today(folder, None)).get(owner.project or (section.project if section else ""))
    where = answers.one_of(target, "--target", "Where it runs", ("gke", "vertex", "both"))
    text = first_file.head(home, answers.of(image, "--image", "Container image with its tag", str, example="image:1"))
    chosen = None
    if where != "vertex":
        if not owner.shares:
            fail(f"Team {owner.name} has no share of a flavor in {home}: add one under shares in its stack file.")
        shares = [(at, row) for at, own in owner.shares.items() for row in own]
        if where == "both":  # with one image: accelerators that Vertex AI grants as well come first
            kinds = first_file.granted_kinds(limits)
            rows = {share: workspace.flavors(home, share[0]).get(share[1]) for share in shares}
            shares.sort(key=lambda share: (row := rows[share]) is None or row.accelerator.kind not in kinds)
        at = answers.one_of(cluster, "--cluster", "Cluster", list(dict.fromkeys(at for at, _ in shares)))
        on = answers.one_of(flavor, "--flavor", f"Flavor in {at}", [row for place, row in shares if place == at])
        chosen = workspace.flavors(home, at).get(on)
        if chosen is None:
            fail(f"Team {owner.name} has a share of {on} in {at}, which is not a flavor of {home}.")
        text += first_file.on_gke(at, chosen)
    if where != "gke":
        machines = first_file.vertex_machines(chosen, limits)
        machine = answers.one_of(machine_type, "--machine-type", "Machine type on Vertex AI", machines)
        sections = (section for stack, section in workspace.environments() if stack.name == home)
        near = [cluster.location for section in sections for cluster in section.clusters.values()]
        regions = first_file.vertex_regions(machine, near, limits)
        text += first_file.on_vertex(answers.one_of(region, "--region", "Region of Vertex AI", regions), machine)
    answers.end()
    _write(folder, f"jobs/{name}.yaml", text)
    click.echo(f"Next: set its command, then training-platform job check jobs/{name}.yaml.")


class Answers:
    """Values by flags, else by questions on a terminal, else by default; ``wrong`` has a sentence for each mistake.

    On a terminal a wrong value is asked for again, and no other answer is lost.
    """

    def __init__(self) -> None:
        self.terminal = sys.stdin.isatty()
        self.wrong: list[str] = []

    def of(
        self,
        flag: str | None,
        option: str,
        question: str,
        parse: Callable[[str], _Value],
        *,
        default: str | None = None,
        example: str | None = None,
    ) -> _Value:
        """Return a value; that of the default or the example where it is missing or wrong, to find further mistakes."""
        if flag is not None:
            try:
                return parse(flag)
            except ValueError as error:
                self._refuse(f"{option} {error}")
        elif default is None and not self.terminal:
            self._refuse(f"{option} is missing: {question}.")
        if self.terminal:
            return click.prompt(question or option, default=default, value_proc=_again_if_wrong(parse))
        if default is None and example is None:
            self.end()
        return parse(default or example or "")

    def of_all(
        self,
        flags: Sequence[str],
        option: str,
        question: str,
        parse: Callable[[str], _Value],
        *,
        default: str | None = None,
        example: str | None = None,
    ) -> list[_Value]:
        """Return the values of a flag that may be repeated; an answer has spaces or commas between them."""
        if flags:
            return [self.of(flag, option, "", parse, default=default, example=example) for flag in flags]
        several = lambda text: [parse(part) for part in text.replace(",", " ").split()]  # noqa: E731
        return self.of(None, option, question, several, default=default, example=example)

    def one_of(self, flag: str | None, option: str, question: str, allowed: Sequence[str]) -> str:
        """Return a value that is one of ``allowed``, by default the first."""
        shown = f"{question} ({', '.join(allowed[:_SHOWN])}{', ...' if len(allowed) > _SHOWN else ''})"
        return self.of(flag, option, shown, _among(allowed), default=allowed[0])

    def production(self, flag: bool | None) -> bool:
        """Return whether an environment is production."""
        if flag is None and self.terminal:
            return click.confirm("Is it production, where nothing that holds data may be deletable?")
        if flag is None:
            self._refuse("--production or --no-production is missing.")
        return bool(flag)

    def pools(
        self,
        machines: Sequence[str],
        zones: Sequence[str],
        capacities: Sequence[str],
        reservations: Sequence[str],
        near: Sequence[str] = (),
    ) -> list[FirstPool]:
        """Return a pool for each machine type; zones and capacities are one for all or one for each."""
        from training_platform.catalog import MACHINE_TYPES, ZONES
        from training_platform.catalog.locations import region_of
        from training_platform.config.first_files import FirstPool, first_capacity, first_zone, offered_zones
        from training_platform.config.model.capacity import ReservationRef

        for option, values in (("--zone", zones), ("--capacity", capacities)):
            if len(values) not in {0, 1, len(machines)}:
                self._refuse(
                    f"{option} is given {len(values)} times: once for all pools, or once for each of {len(machines)}."
                )
        pools: list[FirstPool] = []
        named = iter(reservations)
        for number, machine in enumerate(machines):
            of_pool = f" of {machine}" if len(machines) > 1 else ""
            regions = [*near, *(region_of(pool.zone) for pool in pools)]
            zone = self.of(
                zones[min(number, len(zones) - 1)] if zones else None,
                "--zone",
                f"Zone{of_pool}",
                _among(ZONES, offered_zones(machine)),
                default=first_zone(machine, regions),
            )
            ways: list[str] = list(MACHINE_TYPES[machine].capacities)
            ways += ["queued-provisioning"] * ("flex-start" in ways and MACHINE_TYPES[machine].kind == "gpu")
            capacity = self.of(
                capacities[min(number, len(capacities) - 1)] if capacities else None,
                "--capacity",
                f"Provisioning model{of_pool} ({', '.join(ways)})",
                _among(ways),
                default="reservation" if reservations else first_capacity(machine),
            )
            reservation = None
            if capacity == "reservation":
                question = f"Name of the reservation{of_pool}, or any"
                name = next(named, None)
                reservation = self.of(name, "--reservation", question, _fits(ReservationRef), example="any")
            pools.append(FirstPool(machine_type=machine, zone=zone, capacity=capacity, reservation=reservation))
        for name in named:
            self._refuse(f"--reservation {name!r} has no pool of capacity reservation.")
        return pools

    def end(self) -> None:
        """End the command where a flag is missing or wrong, with a line for each."""
        if self.wrong:
            for sentence in dict.fromkeys(self.wrong):
                say(sentence, err=True)
            fail("nothing was written.")

    def _refuse(self, sentence: str) -> None:
        if self.terminal:
            say(sentence, err=True)
        else:
            self.wrong.append(sentence)


def _again_if_wrong(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return a parser whose refusals click prints before it asks again."""

    def answered(text: str) -> _Value:
        try:
            return parse(text)
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    return answered


def _fits(kind: Any) -> Callable[[str], str]:
    """Return a parser of values that a field of a type takes."""
    from training_platform.config.reading.section import refusal

    def parse(text: str) -> str:
        if why := refusal(kind, text):
            raise ValueError(why)
        return text

    return parse


def _among(allowed: Collection[str], better: Collection[str] = ()) -> Callable[[str], str]:
    """Return a parser of names; the nearest is one of the ``better`` ones where there are any."""
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.reading.section import listed

    def parse(text: str) -> str:
        if text not in allowed:
            names = better or allowed
            nearest = find_nearest(text, names)
            shown = listed(sorted(names) if better else list(names)) or "none is declared"
            raise ValueError(f"{text!r} is unknown. Allowed: {shown}.{f' Nearest: {nearest}.' if nearest else ''}")
        return text

    return parse


def _given(flag: str | None) -> list[str]:
    return [] if flag is None else [flag]


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a whole number.")
    return int(text)


def _environment(answers: Answers, flag: str | None, workspace: Workspace, option: str = "--environment") -> str:
    """Return the environment of a team, job or pool: by default the only one."""
    names = [stack.name for stack in workspace.stacks.values() if stack.team is None]
    if not names:
        fail("No environment is declared: training-platform init environment NAME writes one.")
    default = names[0] if len(names) == 1 else None
    question = f"Stack of the environment ({', '.join(names)})"
    home = answers.of(flag, option, question, _among(names), default=default, example=names[0])
    answers.end()
    return home


def _absent(folder: Path, file: str) -> None:
    """End the command, before any question, where a file is there already."""
    if (folder / file).exists():
        fail(f"{file} is there already; it was not changed.")


def _refuse_wrong(workspace: Workspace, name: str, text: str) -> None:
    """End the command where the model refuses the text of a stack beside all others."""
    from training_platform.config.first_files import findings_of

    if wrong := findings_of(workspace, name, text):
        for finding in wrong:
            say(str(finding), err=True)
        fail("nothing was written.")


def _write_stack(folder: Path, workspace: Workspace, name: str, text: str) -> None:
    """Write a stack file that the model takes beside all others."""
    _refuse_wrong(workspace, name, text)
    _write(folder, f"stacks/Pulumi.{name}.yaml", text)


def _write(folder: Path, file: str, text: str) -> None:
    from training_platform.checks.output import write_files

    write_files({folder / file: text}, folders=True)
    say(f"{file}: written")
