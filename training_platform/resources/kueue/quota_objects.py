"""The objects by which Kueue counts: what a cluster's pools are to it, and a team's share of them."""

from __future__ import annotations

from collections.abc import Mapping

from training_platform.config.expansion.flavors import Flavor
from training_platform.config.spec.fallback import Fallback
from training_platform.config.spec.team import Share
from training_platform.resources.declared import Declared
from training_platform.resources.kueue.objects import cluster_queue, resource_flavor
from training_platform.resources.manifest import kubernetes_object
from training_platform.resources.register import CLUSTER_QUEUE, RESOURCE_FLAVOR
from training_platform.resources.scope import Scope


def flavor_object(name: str, flavor: Flavor, scope: Scope) -> Declared:
    """Return a ResourceFlavor; ``name`` is the component's."""
    spec = resource_flavor(flavor)
    return kubernetes_object(RESOURCE_FLAVOR, f"{name}-{flavor.name}", scope, flavor.name, spec)


def queue_object(
    name: str,
    team: str,
    shares: Mapping[str, Share],
    flavors: Mapping[str, Flavor],
    *,
    fallback: Fallback,
    scope: Scope,
) -> Declared:
    """Return a team's ClusterQueue; ``name`` is the component's, the rest as ``cluster_queue`` takes it."""
    spec = cluster_queue(team, shares, flavors, fallback)
    return kubernetes_object(CLUSTER_QUEUE, f"{name}-cluster-queue", scope, team, spec)
