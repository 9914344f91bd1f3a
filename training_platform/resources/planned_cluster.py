"""A cluster in the plan of an environment or a team. All components with its objects use the cluster's provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from training_platform.config.expansion import Flavor
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.resources.gke import cluster_name
from training_platform.resources.kubernetes_objects import cluster_provider
from training_platform.resources.plan import Component, Node, Resource
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class PlannedCluster:
    """A cluster of an environment in a stack's plan; ``key`` is its key in the environment's file.

    ``component`` contains everything that the stack has in the cluster. It may be the plan itself. ``provider`` is the
    provider of its objects.
    """

    key: str
    spec: ClusterSpec
    environment: Environment
    flavors: Mapping[str, Flavor]
    component: Component
    provider: Resource

    def add(self, component_type: str, name: str, after: Iterable[Node] = ()) -> Component:
        """Add a component for objects in the cluster, and return it."""
        return self.component.component(component_type, name, after=after, provider=self.provider)

    def add_object(self, resource: Resource, after: Iterable[Node] = ()) -> Resource:
        """Add an object in the cluster that belongs to no other component, and return it."""
        resource.own_provider = self.provider
        return self.component.add(resource, after)

    def objects(self) -> Iterator[Resource]:
        """Yield all objects in the cluster that were added so far."""
        return (resource for resource in self.component.resources() if resource.provider is self.provider)


def planned_cluster(
    component: Component,
    key: str,
    environment: Environment,
    home: Scope,
    *,
    flavors: Mapping[str, Flavor],
    endpoint: Any,
) -> PlannedCluster:
    """Add a cluster's provider to a component, and return the cluster; ``home`` is its environment's scope.

    ``endpoint`` is the host name of its control plane.
    """
    spec = environment.clusters[key]
    provider = cluster_provider(
        component,
        f"{component.name}-kubernetes",
        endpoint=endpoint,
        project=home.project,
        location=spec.location,
        cluster_name=cluster_name(home, key, spec),
    )
    return PlannedCluster(
        key=key, spec=spec, environment=environment, flavors=flavors, component=component, provider=provider
    )
