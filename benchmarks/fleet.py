"""Invents organisations of any size: environments with pools of every family, their teams, and quotas that fit.

The same shape gives the same files. Nothing is wrong with them, unless a fault is planted.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import is_zone, region_of
from training_platform.catalog.topologies import hosts, legal_topologies
from training_platform.catalog.types import ChargedCapacity, Json, MachineType
from training_platform.config.expansion import flavors
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import SECTIONS
from training_platform.config.reading.clock import CLOCK_FILE
from training_platform.config.workspace import STACKS_FOLDER, read_workspace
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import project_ledgers
from training_platform.quota.snapshot import FOLDER as QUOTAS_FOLDER
from training_platform.quota.snapshot import Snapshots

TODAY = date(2026, 11, 21)
FILES_OF_THE_PROGRAM = ("Pulumi.yaml", "__main__.py")
ROOT = Path(__file__).resolve().parents[1]
POOLS_PER_CLUSTER = 10
MOST_HOSTS = 8  # VMs of the largest slice
_ENVIRONMENT, _TEAM = SECTIONS
_PLACES = ("us-central1", "us-east5", "europe-west4", "us-west4", "us-central2-b", "us-east1", "asia-northeast1")
_RESERVED_CHIPS = 100_000  # more than all pools of a fleet in one zone
_SYSTEM = {"us-central2-b": "n2-standard-8"}  # it has no e2 machines
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

Fault = Callable[[Json], bool]  # spoils a pool, and says whether the pool could be spoiled so


class Offer(NamedTuple):
    """A machine that can be had in one way in one zone; a TPU machine with the topologies of its smaller slices."""

    machine: MachineType
    capacity: ChargedCapacity
    zone: str
    topologies: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FleetSize:
    """How large an organisation is: environments, pools in each, and teams in each."""

    environments: int
    pools: int
    teams: int = 1

    @property
    def stacks(self) -> int:
        """Stack files of all environments and teams."""
        return self.environments * (1 + self.teams)


def write_fleet(folder: Path, shape: FleetSize, fault: Fault | None = None) -> None:
    """Write an organisation into an empty folder; with a fault, spoil one pool of every environment that takes it.

    The program is this repository's own. Quotas are of what is asked before anything is spoiled, and a tenth more.
    """
    (folder / QUOTAS_FOLDER).mkdir(parents=True)
    for name in FILES_OF_THE_PROGRAM:
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    _write(folder / CLOCK_FILE, {"today": str(TODAY)})
    environments = {f"env{index:03}": _environment(index, shape) for index in range(shape.environments)}
    for name, section in environments.items():
        _write(stack_file(folder, name), {"config": {_ENVIRONMENT: section}})
        model = Environment.model_validate_json(json.dumps(section))
        for index in range(shape.teams):
            team = _team(name, f"team{index}", model, shape)
            _write(stack_file(folder, f"{name}-team{index}"), {"config": {_TEAM: team}})
    _write_quotas(folder)
    if fault:
        for name, section in environments.items():
            pools = (pool for cluster in section["clusters"].values() for pool in cluster["node_pools"].values())
            any(fault(pool) for pool in pools)
            _write(stack_file(folder, name), {"config": {_ENVIRONMENT: section}})


def stack_file(folder: Path, stack: str) -> Path:
    """Return where a stack's file is."""
    return folder / STACKS_FOLDER / f"Pulumi.{stack}.yaml"


def offers(place: str) -> tuple[Offer, ...]:
    """Return what the catalogue offers in a region or a zone, without what Google opens only on request."""
    rows: list[Offer] = []
    for machine in MACHINE_TYPES.values():
        if machine.kind == "cpu":
            continue
        shapes = legal_topologies(machine) if machine.kind == "tpu" else ()
        topologies = tuple(shape for shape in shapes if (hosts(machine, shape) or 0) <= MOST_HOSTS)
        zones = [zone for zone in sorted(machine.zones) if place in (zone, region_of(zone))]
        for zone in zones:
            capacities = [capacity for capacity in machine.capacities if capacity not in machine.allowlisted]
            rows.extend(Offer(machine, capacity, zone=zone, topologies=topologies) for capacity in capacities)
    return tuple(rows)


def _environment(index: int, shape: FleetSize) -> Json:
    rng = random.Random(index)  # noqa: S311 # sample data, the same every time
    clusters: Json = {}
    for number, first in enumerate(range(0, shape.pools, POOLS_PER_CLUSTER)):
        place = _PLACES[number % len(_PLACES)]
        clusters[f"c{number}-{region_of(place)}"] = {
            "location": place,
            "subnet": {
                "nodes": f"10.{number}.0.0/18",
                "services": f"10.{number}.64.0/20",
                "pods": f"10.{64 + 2 * number}.0.0/15",
            },
            "system_pool": {"machine_type": _SYSTEM.get(place, "e2-standard-8"), "min_nodes": 3, "max_nodes": 6},
            "accelerator_networks": "multi-network",  # its pools have machines with either default
            "node_pools": dict(_pools(rng, place, min(POOLS_PER_CLUSTER, shape.pools - first))),
        }
    return {
        "project": f"example-train-{index:03}",
        "production": False,
        "labels": {"cost-center": f"group-{index:03}"},
        "google_groups_domain": "example.com",
        "admins": ["group:ml-platform@example.com"],
        "alerts": {"emails": ["oncall@example.com"]},
        "clusters": clusters,
    }


def _pools(rng: random.Random, place: str, count: int) -> Iterator[tuple[str, Json]]:
    menu = offers(place)
    for index in range(count):
        offer = rng.choice(menu)
        yield f"p{index}-{offer.machine.name}"[:30].rstrip("-"), _pool(rng, place, offer)


def _pool(rng: random.Random, place: str, offer: Offer) -> Json:
    pool: Json = {"machine_type": offer.machine.name, "capacity": offer.capacity}
    if not is_zone(place):
        pool["zone"] = offer.zone
    if offer.capacity == "reservation":
        pool["reservation"] = {"name": f"{offer.machine.name}-{offer.zone}", "chips": _RESERVED_CHIPS}
    if offer.capacity == "flex-start":
        pool["max_run_hours"] = rng.randint(12, 168)
    if offer.topologies:
        pool |= {"topology": rng.choice(offer.topologies), "slices": rng.randint(1, 3)}
    else:
        pool["max_nodes"] = rng.randint(1, 8)
    return pool | {"boot_disk": {"size_gb": rng.choice((100, 200, 500))}}


def _team(environment: str, name: str, home: Environment, shape: FleetSize) -> Json:
    """Return a team with an equal share of every flavor, in whole slices; where there are too few, it only borrows."""
    shares: Json = {}
    for cluster, spec in home.clusters.items():
        for flavor in flavors(cluster, spec).values():
            slices = flavor.capacity_chips // flavor.chips_per_slice // shape.teams
            share = {"nominal_quota": slices * flavor.chips_per_slice}
            shares.setdefault(cluster, {})[flavor.name] = share
    return {
        "environment": environment,
        "name": name,
        "labels": {"cost-center": name},
        "members": [f"group:{name}@example.com"],
        "shares": shares,
        "buckets": {"checkpoints": {"location": "us-central1", "delete_after_days": 90}},
    }


def _write_quotas(folder: Path) -> None:
    ledgers = project_ledgers(workspace_demand(read_workspace(folder)), Snapshots())
    for project, ledger in ledgers.items():
        limits: dict[str, dict[str, list[Mapping[str, object]]]] = {}
        for line in ledger.lines:
            row: Json = {"limit": math.ceil(line.used * 1.1), **dict(line.key.dimensions)}
            if line.key.location:
                row["zone" if is_zone(line.key.location) else "region"] = line.key.location
            limits.setdefault(line.key.service, {}).setdefault(line.key.quota_id, []).append(row)
        _write(folder / QUOTAS_FOLDER / f"{project}.yaml", {"project": project, "taken": str(TODAY), "limits": limits})


def _write(path: Path, value: object) -> None:
    path.write_text(yaml.dump(value, Dumper=_DUMPER, sort_keys=False), encoding="utf-8")
