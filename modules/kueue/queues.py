"""A team's queues in one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from modules.manifest import metadata, register_object
from training_platform.config.model.team import Team
from training_platform.config.pools import Flavor
from training_platform.resources.kueue.objects import API_VERSION, local_queue, local_queue_names
from training_platform.resources.kueue.quota_objects import queue_object
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class TeamQueuesArgs:
    """``flavors`` are all of the cluster's, in their order; ``namespace`` is the team's, and bears its name."""

    scope: Scope
    team: Team
    cluster: str
    flavors: Mapping[str, Flavor]
    namespace: pulumi.Input[str]


class TeamQueues(pulumi.ComponentResource):
    """A ClusterQueue with the team's share, and the LocalQueues through which its namespace reaches it."""

    def __init__(self, name: str, args: TeamQueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:kueue:TeamQueues", name, {}, opts)
        queue = register_object(queue_object(name, args.team, args.cluster, args.flavors, args.scope), self)
        for local in local_queue_names(args.team.name):
            CustomResource(
                f"{name}-local-queue-{local}",
                api_version=API_VERSION,
                kind="LocalQueue",
                metadata=metadata(args.scope, local, args.namespace),
                spec=local_queue(args.team.name),
                # Kueue's finalizer keeps a ClusterQueue for as long as jobs reach it, so this one has to go first.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[queue]),
            )
        self.register_outputs({})
