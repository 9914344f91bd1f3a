"""List price per hour of what a stack declares, at its fewest and at its most machines."""

from __future__ import annotations

from collections.abc import Iterable

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import Cost, machines_cost
from training_platform.config.expansion.pools import pools
from training_platform.config.spec.environment import Environment
from training_platform.config.spec.team import Team


def stack_cost(section: Environment | Team) -> Cost:
    """Return what the machines of a stack cost per hour."""
    parts = _environment(section) if isinstance(section, Environment) else _team(section)
    return sum(parts, Cost())


def _environment(environment: Environment) -> Iterable[Cost]:
    for pool in pools(environment):
        yield machines_cost(pool.machine, pool.spec.charged, pool.region, pool.min_nodes, pool.max_nodes)
    for cluster in environment.clusters.values():
        system = cluster.system_pool
        machine = MACHINE_TYPES[system.machine_type]
        yield machines_cost(machine, "on-demand", cluster.location, system.min_nodes, system.max_nodes)


def _team(team: Team) -> Iterable[Cost]:
    for resource in team.vertex.persistent_resources.values():
        machine = MACHINE_TYPES[resource.machine_type]
        most = resource.max_replicas or resource.replicas
        yield machines_cost(machine, "on-demand", resource.region, resource.replicas, most)
