"""Objects of Kueue that rules read: flavors with their topologies, cohorts, and the ClusterQueues of teams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from training_platform.config.model.queues import CohortSpec
from training_platform.config.model.team import Team
from training_platform.config.names import declared_name
from training_platform.config.pools import Flavor
from training_platform.resources.declared import Declared, Register, kubernetes_object
from training_platform.resources.kueue import cluster_queue, cohort, resource_flavor
from training_platform.resources.resource_types import CLUSTER_QUEUE, COHORT, RESOURCE_FLAVOR, TOPOLOGY
from training_platform.resources.scope import Scope


def flavor_resources(
    name: str, cluster: str, flavors: Mapping[str, Flavor], cohorts: Mapping[str, CohortSpec], *, scope: Scope,
    register: Register,
) -> list[Any]:  # fmt: skip
    """Register Kueue's objects for a cluster's flavors, and its cohorts; return the flavors.

    ``name`` is the component's, ``cluster`` the cluster's key.
    """
    # The finalizer of a topology waits for flavors that name it, so the flavors have to be deleted first.
    topologies = [register(topology) for topology in topology_objects(name, flavors, scope)]
    registered = [register(flavor_object(name, flavor, scope), topologies) for flavor in flavors.values()]
    for cohort_object in cohort_objects(cluster, cohorts, flavors, scope):
        register(cohort_object)
    return registered


def flavor_object(name: str, flavor: Flavor, scope: Scope) -> Declared:
    """Return a ResourceFlavor; ``name`` is the component's."""
    spec = resource_flavor(flavor)
    return kubernetes_object(RESOURCE_FLAVOR, f"{name}-{flavor.name}", scope, flavor.name, spec)


def topology_objects(name: str, flavors: Mapping[str, Flavor], scope: Scope) -> Iterator[Declared]:
    """Yield the Topologies of a cluster's flavors; ``name`` is the component's. Their levels can never be changed."""
    used = {flavor.topology_name: flavor.topology_levels for flavor in flavors.values() if flavor.topology_name}
    for topology, levels in used.items():
        spec = {"levels": [{"nodeLabel": level} for level in levels]}
        yield kubernetes_object(TOPOLOGY, f"{name}-topology-{topology}", scope, topology, spec)


def queue_object(name: str, team: Team, cluster: str, flavors: Mapping[str, Flavor], scope: Scope) -> Declared:
    """Return a team's ClusterQueue; ``name`` is the component's, ``flavors`` as ``cluster_queue`` takes them."""
    spec = cluster_queue(team, cluster, flavors)
    return kubernetes_object(CLUSTER_QUEUE, f"{name}-cluster-queue", scope, team.name, spec)


def cohort_objects(
    cluster: str, cohorts: Mapping[str, CohortSpec], flavors: Mapping[str, Flavor], scope: Scope
) -> Iterator[Declared]:
    """Yield an environment's Cohorts in one of its clusters."""
    for name, spec in cohorts.items():
        yield kubernetes_object(
            COHORT, declared_name("cohorts", name, cluster), scope, name, cohort(name, spec, cluster, flavors)
        )
