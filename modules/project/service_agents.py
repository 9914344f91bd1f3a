"""The accounts under which Google's own services act in a project, and the roles that they need there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects

from modules.project.services import ProjectServices, Transformation, short_api, wait_for
from training_platform.resources.register import api_of
from training_platform.resources.scope import Scope

AGENT_ROLES: Mapping[str, tuple[str, ...]] = {
    "aiplatform.googleapis.com": ("roles/aiplatform.serviceAgent",),
    "artifactregistry.googleapis.com": ("roles/artifactregistry.serviceAgent",),
    "container.googleapis.com": ("roles/container.serviceAgent",),
    "file.googleapis.com": ("roles/file.serviceAgent",),
}
"""Roles in the project, by API. Left out: roles/compute.networkUser, which only a network of another project needs."""


@dataclass(frozen=True, kw_only=True)
class ServiceAgentsArgs:
    """Whose agents are given their roles."""

    scope: Scope
    services: ProjectServices  # those of its APIs that have an agent here get it


class ServiceAgents(pulumi.ComponentResource):
    """The service agents of a stack's APIs with their roles.

    Google grants these roles when an API is enabled; they are written down for projects where somebody took them away.
    That generateServiceIdentity answers with an account for each of these APIs is (unverified).
    """

    members: dict[str, pulumi.Output[str]]  # serviceAccount:<email>, by API
    bindings: dict[str, list[projects.IAMMember]]  # by API

    def __init__(self, name: str, args: ServiceAgentsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:project:ServiceAgents", name, {}, opts)
        self.members, self.bindings = {}, {}
        for api, service in args.services.by_api.items():
            if api not in AGENT_ROLES:
                continue
            agent = projects.ServiceIdentity(
                f"{name}-{short_api(api)}",
                project=args.scope.project,
                service=api,
                # An API has an account in a project once it is enabled there.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[service]),
            )
            self.members[api] = agent.member
            self.bindings[api] = [self._binding(name, role, agent.member, args.scope) for role in AGENT_ROLES[api]]
        self.register_outputs({})

    def _binding(self, name: str, role: str, member: pulumi.Output[str], scope: Scope) -> projects.IAMMember:
        return projects.IAMMember(
            f"{name}-{role.removeprefix('roles/')}",
            project=scope.project,
            role=role,
            member=member,
            # Kept on destroy: other stacks' clusters and disks in the project stand on the same role.
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )


def depend_on_agents(agents: ServiceAgents) -> Transformation:
    """Return a stack transformation that lets every resource wait for the roles of its API's agent."""

    def after_its_agent(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        bindings = agents.bindings.get(api_of(args.type_) or "")
        return wait_for(args, bindings) if bindings else None

    return after_its_agent
