"""An agent of W&B Launch for one team in one cluster, from its Helm chart."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import core, rbac

from modules.kubernetes_objects import install, metadata
from training_platform.catalog import CHARTS
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.workloads import LaunchSpec
from training_platform.resources.operators import (
    AGENT_LABELS,
    AGENT_QUOTA,
    CHART,
    agent_account,
    agent_namespace,
    agent_rules,
    chart_values,
)
from training_platform.resources.scope import Scope

_ROLE = "wandb-launch-agent"
_GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class LaunchAgentArgs:
    """``namespace`` is the team's, known once it is there; ``chart`` the environment's override of the chart."""

    scope: Scope
    team: str
    spec: LaunchSpec
    namespace: pulumi.Input[str]
    chart: ChartOverride | None = None


class LaunchAgent(pulumi.ComponentResource):
    """The agent in a namespace of its own, and its rights in the team's. Its pod waits for the Secret with its key."""

    def __init__(self, name: str, args: LaunchAgentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:operators:LaunchAgent", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        own = core.v1.Namespace(
            f"{name}-namespace",
            metadata=metadata(args.scope, agent_namespace(args.team), more=AGENT_LABELS),
            opts=child,
        )
        quota = core.v1.ResourceQuota(
            f"{name}-quota",
            metadata=metadata(args.scope, "agent", own.metadata.apply(lambda meta: str(meta.name))),
            spec=core.v1.ResourceQuotaSpecArgs(hard=AGENT_QUOTA),
            opts=child,
        )
        self._grant(name, args)
        install(
            f"{name}-release",
            CHARTS[CHART],
            args.chart,
            chart_values(args.team, args.spec),
            pulumi.ResourceOptions(parent=self, depends_on=[own, quota]),
            called=args.team,
            prepared=agent_namespace(args.team),  # people add the key, and cannot before the namespace is there
        )
        self.register_outputs({})

    def _grant(self, name: str, args: LaunchAgentArgs) -> None:
        """Give the agent its rights in the team's namespace."""
        child = pulumi.ResourceOptions(parent=self)
        role = rbac.v1.Role(
            f"{name}-role",
            metadata=metadata(args.scope, _ROLE, args.namespace),
            rules=[
                rbac.v1.PolicyRuleArgs(
                    api_groups=rule["apiGroups"],
                    resources=rule["resources"],
                    verbs=rule["verbs"],
                    resource_names=rule.get("resourceNames"),
                )
                for rule in agent_rules(args.team)
            ],
            opts=child,
        )
        rbac.v1.RoleBinding(
            f"{name}-role-binding",
            metadata=metadata(args.scope, _ROLE, args.namespace),
            role_ref=rbac.v1.RoleRefArgs(api_group=_GROUP, kind="Role", name=_ROLE),
            subjects=[
                rbac.v1.SubjectArgs(
                    kind="ServiceAccount", name=agent_account(args.team), namespace=agent_namespace(args.team)
                )
            ],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
