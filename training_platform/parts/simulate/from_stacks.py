"""Converts the queues and machines of stack files to plain data for a simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kueue_model import CapacityTimes, Cluster, Counting, FlavorMachines, Manifests
from training_platform.catalog.prices import LIST, PriceBook, machines_cost
from training_platform.config.expansion import Flavor
from training_platform.config.lent_quota import lending
from training_platform.config.workspace import Workspace
from training_platform.parts.simulate.provisioning_times import DEFAULTS
from training_platform.resources.kueue import (
    UNCOUNTED,
    cluster_queue,
    cohort,
    configuration,
    local_queue_names,
    priorities,
)

SETTINGS: Final[Mapping[str, str]] = {
    "queue": "preemption.within_queue of the team",
    "reclaim": "preemption.reclaim of the first team",
    "share": "weights and quota of both teams, preemption.reclaim of the first",
    "borrowing": "preemption.borrow_within_cohort of the first team",
    "hold": "hold of the team",
}
"""For each eviction reason, the setting of a stack file that allows such evictions."""


def clusters(workspace: Workspace, environment: str, book: PriceBook = LIST) -> Iterator[Cluster]:
    """Yield the clusters of an environment in which at least one team has a share."""
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
                settings=SETTINGS,
            )


def manifests_of(cluster: Cluster, labels: Mapping[str, Mapping[str, str]]) -> Manifests:
    """Return the queues of stack files as manifests, to simulate workloads, which request resources by name.

    ``labels`` contains the node labels of each flavor.
    """
    local_queues = {f"{team}/{name}": team for team in cluster.queues for name in local_queue_names(team)}
    counting = Counting(excluded=UNCOUNTED, local_queues=local_queues)
    at_once = dict.fromkeys(DEFAULTS, CapacityTimes())
    left_out = ("Topologies, admission checks and waits for machines are not simulated.",)
    return Manifests(cluster._replace(counting=counting), at_once, left_out=left_out, labels=labels)


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
        usd=cost.maximum / pool.machine.chips if cost.maximum else None,
        largest_request=flavor.request_chips,
    )
