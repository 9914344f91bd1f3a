"""The way to a hub from the internet."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects
from pulumi_kubernetes.apiextensions import CustomResource

from modules.manifest import metadata
from training_platform.config.model.workloads import GatewaySpec, Notebooks
from training_platform.resources.cloud_names import slug
from training_platform.resources.jupyterhub.gateway import ACCESS_ROLE, NAME, gateway_objects
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class HubGatewayArgs:
    """``gateway`` is that of ``notebooks``, whose host it is for; ``namespace`` is the hub's."""

    scope: Scope
    notebooks: Notebooks
    gateway: GatewaySpec
    namespace: pulumi.Input[str]


class HubGateway(pulumi.ComponentResource):
    """A load balancer before the hub, and who passes Identity-Aware Proxy: the role is on all that it guards there."""

    def __init__(self, name: str, args: HubGatewayArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:jupyterhub:HubGateway", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        for member in args.gateway.members:
            projects.IAMMember(
                f"{name}-{slug(member)}", project=args.scope.project, role=ACCESS_ROLE, member=member, opts=child
            )
        for each in gateway_objects(args.gateway, args.notebooks.host or ""):
            CustomResource(
                f"{name}-{each.kind.lower()}",
                api_version=each.api_version,
                kind=each.kind,
                metadata=metadata(args.scope, NAME, args.namespace, each.annotations),
                spec=each.spec,
                opts=child,
            )
        self.register_outputs({})
