"""The first stack files of an environment and a team, as text with as few lines as possible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network

from training_platform.catalog import MACHINE_TYPES, ZONES
from training_platform.catalog.locations import region_of
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.topologies import legal_topologies
from training_platform.catalog.types import MachineType
from training_platform.config.model.environment import Environment
from training_platform.config.model.node_pool import usual_machines
from training_platform.config.model.stack import PROJECT, parse_stack
from training_platform.config.reading.editing import with_entry
from training_platform.config.reading.finding import Finding, UserError
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import STACKS_FOLDER, Workspace, cross_check

SCHEMA = "# yaml-language-server: $schema=./stack.schema.json\n"
_REGION = "us-central1"
_CAPACITIES = ("spot", "on-demand", "flex-start")  # only its owner knows a reservation's name
_MOST_CLUSTERS = 32  # with ranges in 10.0.0.0/8


@dataclass(frozen=True, kw_only=True)
class FirstPool:
    """A node pool that ``init`` writes. ``more`` contains further fields of the model."""

    machine_type: str
    zone: str
    capacity: str
    reservation: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def value(self) -> str:
        """The YAML value of the pool: one VM, or one slice of the smallest size, unless ``more`` says otherwise."""
        machine = MACHINE_TYPES[self.machine_type]
        fields = {"machine_type": self.machine_type, "zone": self.zone, "capacity": self.capacity}
        if self.reservation is not None:
            fields["reservation"] = self.reservation
        if machine.kind == "tpu":
            fields |= {"topology": machine.single_host or next(legal_topologies(machine)), "slices": "1"}
        else:
            fields["max_nodes"] = "1"
        if self.capacity in ("flex-start", "queued-provisioning"):
            fields["max_run_hours"] = "24"
        return f"{{{', '.join(f'{key}: {value}' for key, value in {**fields, **self.more}.items())}}}"

    def name_beside(self, taken: Collection[str]) -> str:
        """Return an unused name: the accelerator's. If it is taken, append the capacity, and then also a number."""
        accelerator = MACHINE_TYPES[self.machine_type].accelerator
        name = accelerator.name if accelerator else self.machine_type
        names = (name, f"{name}-{self.capacity}", *(f"{name}-{self.capacity}-{number}" for number in range(2, 100)))
        return next(free for free in names if free not in taken)


def machine_named(name: str) -> MachineType:
    """Return a machine type, given its name or an accelerator such as ``h100`` or ``v5e``. Raises ValueError.

    If the name is that of an accelerator, the result is the machine type that is usual for it.
    """
    accelerated = {name: machine for name, machine in MACHINE_TYPES.items() if machine.accelerator is not None}
    usual = usual_machines()
    folded = name.strip().casefold()
    for spelling in (folded, f"tpu-{folded}"):
        if machine := accelerated.get(spelling) or usual.get(spelling):
            return machine
    if len(alike := [row for row in usual if row.startswith(f"{folded}-")]) > 1:
        titles = {row: usual[row].accelerator for row in alike}
        machines = " or ".join(f"{row} ({of.title}, {usual[row].name})" for row, of in titles.items() if of)
        raise ValueError(f"{name!r} matches several accelerators: write {machines}.")
    nearest = find_nearest(name, [*accelerated, *usual])
    advice = (
        f"Nearest: {nearest}."
        if nearest
        else (f"Allowed: {', '.join(usual)}, or a machine type with one of these accelerators.")
    )
    raise ValueError(f"{name!r} is not a machine type with TPUs or GPUs. {advice}")


def offered_zones(machine_type: str) -> Collection[str]:
    """Return the zones that offer a machine type according to the catalogue, which may be outdated."""
    machine = MACHINE_TYPES[machine_type]
    return machine.zones or ZONES - set(machine.missing_zones)


def first_zone(machine_type: str, near: Iterable[str] = ()) -> str:
    """Return a zone that offers a machine type: in one of the regions ``near``, else in us-central1, else anywhere."""
    regions = [*near, _REGION]
    return min(
        offered_zones(machine_type),
        key=lambda zone: (regions.index(region_of(zone)) if region_of(zone) in regions else len(regions), zone),
    )


def first_capacity(machine_type: str) -> str:
    """Return a provisioning model that the machine type supports, preferably without a reservation."""
    capacities = MACHINE_TYPES[machine_type].capacities
    return next(capacity for capacity in (*_CAPACITIES, "reservation") if capacity in capacities)


def environment_text(
    *,
    name: str,
    project: str,
    production: bool,
    pools: Sequence[FirstPool],
    emails: Sequence[str] = (),
    google_groups_domain: str | None = None,
    other_environments: Collection[Environment] = (),
) -> str:
    """Return the text of an environment with node pools, and with a cluster in each of their regions.

    Its address ranges do not overlap those of existing environments.
    """
    alerts = f"    alerts: {{emails: [{', '.join(emails)}]}}\n" if emails else ""
    groups = f"    google_groups_domain: {google_groups_domain}\n" if google_groups_domain else ""
    text = (
        f"{SCHEMA}config:\n  {PROJECT}:environment:\n    project: {project}\n"
        f"    production: {str(production).lower()}\n{groups}{alerts}"
    )
    for pool in pools:
        text, _, _ = with_pool(text, name, pool, other_environments=other_environments)
    return text


def with_pool(
    text: str,
    stack_name: str,
    pool: FirstPool,
    *,
    name: str | None = None,
    cluster: str | None = None,
    other_environments: Collection[Environment] = (),
) -> tuple[str, str, str]:
    """Return an environment's text with one more node pool, and the names of its cluster and of the pool.

    The cluster is the one named ``cluster``, else the first in the region of the pool's zone, else a new one. A new
    cluster has the region's name, and its address ranges overlap none of the ``other_environments``. All other lines
    are kept. Raises UserError if the model rejects the file, or if lines cannot be added to the file's layout.
    """
    file = f"{STACKS_FOLDER}/Pulumi.{stack_name}.yaml"
    stack = parse_stack(stack_name, parse_source(text, file))
    environment = stack.environment
    region = region_of(pool.zone)
    if environment is None:
        raise UserError("\n".join(str(finding) for finding in stack.findings))
    below = (*stack.below, "clusters")
    clusters = environment.clusters
    near = (key for key, spec in clusters.items() if region_of(spec.location) == region)
    home = cluster or next(near, region)
    if home not in clusters:
        subnet = _free_subnet((*other_environments, environment))
        lines = [f"{home}:", f"  location: {region}", f"  subnet: {subnet}"]
        if environment.production:
            lines += ["  cpu_pools:", "    general: {max_nodes: 2}"]
        text = with_entry(text, file, below, lines)
    taken = clusters[home].node_pools if home in clusters else {}
    if name in taken:
        raise UserError(f"Cluster {home} of {stack_name} already has a node pool {name}: choose another --name.")
    name = name or pool.name_beside(taken)
    return with_entry(text, file, (*below, home, "node_pools"), [f"{name}: {pool.value}"]), home, name


def _free_subnet(environments: Iterable[Environment]) -> str:
    """Return the address ranges for the subnet of a new cluster in the last of the given environments.

    They do not overlap the ranges of any cluster in any environment, so that networks can be connected later. Raises
    UserError if no range is free.
    """
    *_, environment = environments = list(environments)
    clusters = (cluster for other in environments for cluster in other.clusters.values())
    subnets = [cluster.subnet for cluster in clusters if cluster.subnet]
    taken = [IPv4Network(part) for row in subnets for part in (row.nodes, row.pods, row.services)]
    for number in range(_MOST_CLUSTERS if environment.network is None else 0):
        nodes = f"10.{2 * number}.0.0/20"
        services = f"10.{2 * number + 1}.0.0/20"
        pods = f"10.{64 + 4 * number}.0.0/14"
        if not any(IPv4Network(part).overlaps(other) for part in (nodes, pods, services) for other in taken):
            return f"{{nodes: {nodes}, pods: {pods}, services: {services}}}"
    raise UserError(
        "The pool needs a cluster in its region. First add that cluster, since only you know its address ranges."
    )


def team_text(*, environment: str, name: str, members: Sequence[str], shares: Mapping[str, Mapping[str, int]]) -> str:
    """Return the text of a team's stack file with its members and its nominal quotas, keyed by cluster and flavor."""
    lines = [f"{SCHEMA}config:", f"  {PROJECT}:team:", f"    environment: {environment}", f"    name: {name}"]
    lines += ["    members:", *(f"      - {member}" for member in members)]
    if shares:
        lines.append("    shares:")
    for cluster, flavors in shares.items():
        lines.append(f"      {cluster}:")
        lines += [f"        {flavor}: {{nominal_quota: {quota}}}" for flavor, quota in flavors.items()]
    return "\n".join(lines) + "\n"


def findings_of(workspace: Workspace, name: str, text: str) -> tuple[Finding, ...]:
    """Return the findings about the text of a stack, checked together with all other stacks."""
    stack = parse_stack(name, parse_source(text, f"{STACKS_FOLDER}/Pulumi.{name}.yaml"))
    return cross_check(replace(workspace, stacks={**workspace.stacks, name: stack})).stacks[name].findings
