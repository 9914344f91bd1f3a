"""The right of a team's members to connect to the clusters at all; what they may do there is Kubernetes' to say."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects

from training_platform.resources.cloud_names import slug
from training_platform.resources.scope import Scope

# To find a cluster and to connect to its DNS-based endpoint (container.clusters.get and .connect), and no right inside
# it. That the role holds the second permission is (unverified): a listing of its permissions, without a date, lacks it.
CONNECT_ROLE = "roles/container.clusterViewer"
ALWAYS = 'request.time >= timestamp("2020-01-01T00:00:00Z")'


@dataclass(frozen=True, kw_only=True)
class ClusterConnectArgs:
    """``project`` is the clusters', which may be another than the team's."""

    scope: Scope
    project: str
    members: tuple[str, ...]


class ClusterConnect(pulumi.ComponentResource):
    """Members of a team as callers of the environment's clusters."""

    def __init__(self, name: str, args: ClusterConnectArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:tenancy:ClusterConnect", name, {}, opts)
        for member in args.members:
            projects.IAMMember(
                f"{name}-{slug(member)}",
                project=args.project,
                role=CONNECT_ROLE,
                member=member,
                # The member may be another team's too. A condition that is always true makes the grant this team's own,
                # so that it goes with the member and takes no other team's away.
                condition=projects.IAMMemberConditionArgs(title=f"team {args.scope.prefix}", expression=ALWAYS),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})
