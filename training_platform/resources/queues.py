"""Kueue objects that rules read: flavors with their topologies, cohorts, and the ClusterQueues of teams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from training_platform.config.expansion import Flavor
from training_platform.config.model.queues import CohortSpec
from training_platform.config.model.team import Team
from training_platform.config.names import declared_name
from training_platform.resources.kubernetes_objects import kubernetes_object, object_type
from training_platform.resources.kueue import (
    API_VERSION,
    CONFIG,
    admission_check,
    cluster_queue,
    cohort,
    local_queue,
    local_queue_names,
    provisioning_request_config,
    resource_flavor,
)
from training_platform.resources.plan import Component, Resource, once
from training_platform.resources.resource_types import CLUSTER_QUEUE, COHORT, RESOURCE_FLAVOR, TOPOLOGY
from training_platform.resources.scope import Scope

PRIORITY = object_type(API_VERSION, "WorkloadPriorityClass")
LOCAL_QUEUE = object_type(API_VERSION, "LocalQueue")


def flavor_resources(
    into: Component,
    cluster: str,
    flavors: Mapping[str, Flavor],
    *,
    priorities: Mapping[str, int],
    cohorts: Mapping[str, CohortSpec],
    scope: Scope,
) -> Any:
    """Add a cluster's Topologies, ResourceFlavors with their checks, WorkloadPriorityClasses and Cohorts.

    ``cluster`` is the cluster's key. The returned names of the flavors are known only once the flavors exist, so a team
    stack never sees a flavor whose deployment failed. A cohort that the file does not list has no object: Kueue derives
    it from its name in the ClusterQueues. In such a cohort, only capacity that belongs to a share of a team or a cohort
    can be borrowed.
    """
    name = into.name
    # The finalizer of a topology waits for flavors that name it, so the flavors have to be deleted first.
    topologies = [into.add(topology) for topology in topology_objects(name, flavors, scope)]
    deployed = [into.add(flavor_object(name, flavor, scope), topologies) for flavor in flavors.values()]
    for cohort_object in cohort_objects(cluster, cohorts, flavors, scope):
        into.add(cohort_object)
    for flavor in flavors.values():
        if flavor.by_request:
            for check in check_objects(name, flavor, scope):
                into.add(check)
    for priority, value in priorities.items():
        fields = {"value": value}
        into.add(kubernetes_object(PRIORITY, f"{name}-priority-{priority}", scope, priority, fields))
    names = once(sorted(flavors), *(flavor.output("id") for flavor in deployed))
    into.outputs = {"flavors": names}
    return names


def check_objects(name: str, flavor: Flavor, scope: Scope) -> Iterator[Resource]:
    """Yield the two objects that make a queued flavor's jobs wait: the AdmissionCheck and its configuration.

    Teams' queues refer to the check, which is active only if both objects exist.
    """
    for kind, spec in ((CONFIG, provisioning_request_config(flavor)), ("AdmissionCheck", admission_check(flavor))):
        logical = f"{name}-{flavor.name}-{kind.lower()}"
        yield kubernetes_object(object_type(API_VERSION, kind), logical, scope, flavor.name, {"spec": spec})


def team_queues(
    into: Component, team: Team, cluster: str, flavors: Mapping[str, Flavor], *, scope: Scope, namespace: Any
) -> None:
    """Add a ClusterQueue with the team's share, and the LocalQueues through which jobs in its namespace use it."""
    queue = into.add(queue_object(into.name, team, cluster, flavors, scope))
    names = local_queue_names(team.name)
    into.outputs = {"cluster_queue": team.name, "queues": list(names)}
    for local in names:
        fields = {"spec": local_queue(team.name)}
        logical = f"{into.name}-local-queue-{local}"
        # Kueue's finalizer keeps a ClusterQueue for as long as jobs reach it, so the LocalQueue is deleted first.
        into.add(kubernetes_object(LOCAL_QUEUE, logical, scope, local, fields, namespace=namespace), [queue])


def flavor_object(name: str, flavor: Flavor, scope: Scope) -> Resource:
    """Return a ResourceFlavor; ``name`` is the component's name."""
    fields = {"spec": resource_flavor(flavor)}
    return kubernetes_object(RESOURCE_FLAVOR, f"{name}-{flavor.name}", scope, flavor.name, fields)


def topology_objects(name: str, flavors: Mapping[str, Flavor], scope: Scope) -> Iterator[Resource]:
    """Yield the Topologies of a cluster's flavors; ``name`` is the component's name. Their levels are immutable."""
    used = {flavor.topology_name: flavor.topology_levels for flavor in flavors.values() if flavor.topology_name}
    for topology, levels in used.items():
        spec = {"levels": [{"nodeLabel": level} for level in levels]}
        yield kubernetes_object(TOPOLOGY, f"{name}-topology-{topology}", scope, topology, {"spec": spec})


def queue_object(name: str, team: Team, cluster: str, flavors: Mapping[str, Flavor], scope: Scope) -> Resource:
    """Return a team's ClusterQueue; ``name`` is the component's name. See ``cluster_queue`` about ``flavors``."""
    fields = {"spec": cluster_queue(team, cluster, flavors)}
    return kubernetes_object(CLUSTER_QUEUE, f"{name}-cluster-queue", scope, team.name, fields)


def cohort_objects(
    cluster: str, cohorts: Mapping[str, CohortSpec], flavors: Mapping[str, Flavor], scope: Scope
) -> Iterator[Resource]:
    """Yield an environment's Cohorts in one of its clusters."""
    for name, spec in cohorts.items():
        fields = {"spec": cohort(name, spec, cluster, flavors)}
        yield kubernetes_object(COHORT, declared_name("cohorts", name, cluster), scope, name, fields)
