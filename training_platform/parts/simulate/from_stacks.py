"""The queues and machines of stack files, as plain data for a simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from training_platform.catalog.prices import LIST, PriceBook, machines_cost
from training_platform.config.expansion import Flavor
from training_platform.config.lent_quota import lending
from training_platform.config.workspace import Workspace
from training_platform.parts.simulate.quotas import Json
from training_platform.resources.kueue import cluster_queue, cohort, configuration, priorities


class FlavorMachines(NamedTuple):
    """A flavor: its machines, and their price in USD per chip and hour, or None if the catalogue has no price.

    ``chips`` are those of all machines. A job gets multiples of ``per_slice`` chips (1 for GPUs, since pods can share a
    VM). Reports show ``unit`` chips as one. ``capacity`` is the key of the times when machines come and go: the
    provisioning model, or the flavor of manifests.
    """

    name: str
    resource: str
    accelerator: str
    capacity: str
    chips: int
    per_slice: int
    usd: float | None
    unit: int = 1


class Counting(NamedTuple):
    """How Kueue counts a request, and the ClusterQueue of each LocalQueue, ``namespace/name``.

    A transformation says whether a resource is kept, and which others one unit of it counts as.
    """

    excluded: tuple[str, ...] = ()
    transformations: Mapping[str, tuple[bool, Mapping[str, object]]] = {}
    ignores_undeclared: bool = False
    local_queues: Mapping[str, str] = {}


class Cluster(NamedTuple):
    """One cluster's Kueue: the specs of its ClusterQueues by team, and of its Cohorts and flavors by name.

    ``counting`` is set for manifests, whose traces name resources instead of accelerators.
    """

    name: str
    queues: Mapping[str, Json]
    cohorts: Mapping[str, Json]
    flavors: Mapping[str, FlavorMachines]
    priorities: Mapping[str, int]
    fair_sharing: tuple[str, ...] | None
    counting: Counting | None = None


def clusters(workspace: Workspace, environment: str, book: PriceBook = LIST) -> Iterator[Cluster]:
    """Yield the clusters of an environment in which a team has a share."""
    spec = lending(workspace, environment)
    teams = [team for _, team, _ in workspace.teams() if team.environment == environment]
    settings = configuration((), fair_sharing=spec.fair_sharing)
    sharing = settings.get("fairSharing")
    for name in spec.clusters:
        flavors = workspace.flavors(environment, name)
        queues = {team.name: cluster_queue(team, name, flavors) for team in teams if name in team.shares}
        if queues:
            yield Cluster(
                name=name,
                queues=queues,
                cohorts={key: cohort(key, cohort_spec, name, flavors) for key, cohort_spec in spec.cohorts.items()},
                flavors={flavor.name: _machines(flavor, book) for flavor in flavors.values()},
                priorities=priorities(spec),
                fair_sharing=tuple(sharing["preemptionStrategies"]) if sharing else None,
            )


def _machines(flavor: Flavor, book: PriceBook) -> FlavorMachines:
    pool = flavor.pools[0]
    cost = machines_cost(pool.machine, pool.spec.charged, pool.region, 1, 1, book=book)
    return FlavorMachines(
        name=flavor.name,
        resource=flavor.accelerator.resource,
        accelerator=flavor.accelerator.name,
        capacity=flavor.capacity,
        chips=flavor.capacity_chips,
        per_slice=flavor.chips_per_slice if flavor.accelerator.kind == "tpu" else 1,
        usd=cost.most / pool.machine.chips if cost.most else None,
    )
