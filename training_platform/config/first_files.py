"""The first stack files of an environment and a team, as text: the fewest lines that can be deployed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from training_platform.catalog import MACHINE_TYPES, ZONES
from training_platform.catalog.locations import region_of
from training_platform.catalog.topologies import legal_topologies
from training_platform.config.model.stack import PROJECT, parse_stack
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import STACKS_FOLDER, cross_check, read_workspace

SCHEMA = "# yaml-language-server: $schema=./stack.schema.json\n"
_REGION = "us-central1"
_CAPACITIES = ("spot", "on-demand", "flex-start")  # a reservation has a name that only its owner knows


def first_zone(machine_type: str) -> str:
    """Return a zone that offers a machine type by the catalogue, in us-central1 where one does."""
    machine = MACHINE_TYPES[machine_type]
    offered = machine.zones or ZONES - set(machine.missing_zones)
    return min(offered, key=lambda zone: (region_of(zone) != _REGION, zone))


def first_capacity(machine_type: str) -> str:
    """Return a provisioning model that the machine type supports and that needs no reservation."""
    capacities = MACHINE_TYPES[machine_type].capacities
    return next(capacity for capacity in (*_CAPACITIES, "reservation") if capacity in capacities)


def environment_text(
    *, project: str, production: bool, machine_type: str, zone: str, capacity: str, emails: Sequence[str] = ()
) -> str:
    """Return an environment with one cluster and one node pool of one VM or one slice."""
    machine = MACHINE_TYPES[machine_type]
    region = region_of(zone)
    fields = {"machine_type": machine_type, "zone": zone, "capacity": capacity, "max_nodes": "1"}
    if machine.kind == "tpu":
        del fields["max_nodes"]
        fields |= {"topology": machine.single_host or next(legal_topologies(machine)), "slices": "1"}
    if capacity == "flex-start":
        fields["max_run_hours"] = "24"
    pool = ", ".join(f"{key}: {value}" for key, value in fields.items())
    name = machine.accelerator.name if machine.accelerator else machine_type
    alerts = f"    alerts: {{emails: [{', '.join(emails)}]}}\n" if emails else ""
    return (
        f"{SCHEMA}config:\n  {PROJECT}:environment:\n    project: {project}\n"
        f"    production: {str(production).lower()}\n{alerts}"
        f"    clusters:\n      {region}:\n        location: {region}\n"
        "        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/14, services: 10.1.0.0/20}\n"
        f"        node_pools:\n          {name}: {{{pool}}}\n"
    )


def team_text(*, environment: str, name: str, members: Sequence[str], shares: Mapping[str, Mapping[str, int]]) -> str:
    """Return a team with its members, and its nominal quotas by cluster and flavor."""
    lines = [f"{SCHEMA}config:", f"  {PROJECT}:team:", f"    environment: {environment}", f"    name: {name}"]
    lines += ["    members:", *(f"      - {member}" for member in members)]
    if shares:
        lines.append("    shares:")
    for cluster, flavors in shares.items():
        lines.append(f"      {cluster}:")
        lines += [f"        {flavor}: {{nominal_quota: {quota}}}" for flavor, quota in flavors.items()]
    return "\n".join(lines) + "\n"


def findings_of(root: Path, name: str, text: str) -> tuple[Finding, ...]:
    """Return what the model finds wrong in a new stack beside those of the repository."""
    stack = parse_stack(name, parse_source(text, f"{STACKS_FOLDER}/Pulumi.{name}.yaml"))
    workspace = read_workspace(root)
    return cross_check(replace(workspace, stacks={**workspace.stacks, name: stack})).stacks[name].findings
