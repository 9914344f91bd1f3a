"""What all queues of a cluster share: its ResourceFlavors, and the priorities of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from modules.config.cluster import Cluster
from modules.config.fleet import flavors
from modules.kueue.objects import API_VERSION, resource_flavor
from modules.kueue.priority import WorkloadPriorityClass
from modules.manifest import metadata
from modules.scope import Scope


@dataclass(frozen=True, kw_only=True)
class FlavorsArgs:
    """``priorities`` are the environment's: name and value, where a higher value goes first."""

    scope: Scope
    cluster_name: str
    cluster: Cluster
    priorities: Mapping[str, int]


class Flavors(pulumi.ComponentResource):
    """The ResourceFlavors of a cluster's pools and its WorkloadPriorityClasses; depends on Kueue.

    The cohort has no object: Kueue makes one up from the name in the ClusterQueues. What no team's share holds is thus
    nobody's to borrow.
    """

    def __init__(self, name: str, args: FlavorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:kueue:Flavors", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        for flavor in flavors(args.cluster_name, args.cluster).values():
            CustomResource(
                f"{name}-{flavor.name}",
                api_version=API_VERSION,
                kind="ResourceFlavor",
                metadata=metadata(args.scope, flavor.name),
                spec=resource_flavor(flavor),
                opts=child,
            )
        for priority, value in args.priorities.items():
            WorkloadPriorityClass(
                f"{name}-priority-{priority}", metadata=metadata(args.scope, priority), value=value, opts=child
            )
        self.register_outputs({})
