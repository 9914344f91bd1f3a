"""The accounts under which Google's own services act in a project, and the roles that they need there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pulumi
from pulumi_gcp import kms, projects

from modules.project.services import ProjectServices, Transformation, short_api, wait_for
from training_platform.resources.register import api_of
from training_platform.resources.scope import Scope

GKE_API = "container.googleapis.com"
AGENT_ROLES: Mapping[str, tuple[str, ...]] = {
    "aiplatform.googleapis.com": ("roles/aiplatform.serviceAgent",),
    "artifactregistry.googleapis.com": ("roles/artifactregistry.serviceAgent",),
    "container.googleapis.com": ("roles/container.serviceAgent",),
    "file.googleapis.com": ("roles/file.serviceAgent",),
    "lustre.googleapis.com": (),
    "notebooks.googleapis.com": ("roles/notebooks.serviceAgent",),
}
"""Roles in the project, by API. A network of another project needs HOST_ROLES too."""

HOST_ROLES: Mapping[str, tuple[str, ...]] = {
    "service-{number}@container-engine-robot.iam.gserviceaccount.com": (
        "roles/compute.networkUser",
        "roles/container.hostServiceAgentUser",
    ),
    "{number}@cloudservices.gserviceaccount.com": ("roles/compute.networkUser",),
}
"""Roles in the host project of a Shared VPC, by the accounts of a service project with clusters.

Source: GoogleCloudPlatform/cloud-foundation-fabric, modules/project/sharedvpc-agent-iam.yaml, read 2026-11-22.
"""

KEY_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
KEY_AGENTS: Mapping[str, tuple[str, ...]] = {
    "aiplatform.googleapis.com": ("gcp-sa-aiplatform",),
    "artifactregistry.googleapis.com": ("gcp-sa-artifactregistry",),
    "container.googleapis.com": ("compute-system", "container-engine-robot"),  # disks of nodes, and Secrets
    "file.googleapis.com": ("cloud-filer",),
    "lustre.googleapis.com": ("gcp-sa-lustre",),
    "notebooks.googleapis.com": ("compute-system", "gcp-sa-notebooks"),  # disks, and (unverified) the instance
    "storage.googleapis.com": ("gs-project-accounts",),
}
"""Whose accounts use a key for an API's resources: ``service-{project number}@{name}.iam.gserviceaccount.com``.

Source: IAM docs, service agents, with the CMEK pages of Filestore and Artifact Registry, read 2026-11-22; that those of
Compute Engine and Cloud Storage are there without being asked for is (unverified), see docs/security.md.
"""


@dataclass(frozen=True, kw_only=True)
class ServiceAgentsArgs:
    """Whose agents are given their roles."""

    scope: Scope
    services: ProjectServices  # those of its APIs that have an agent here get it
    key_users: tuple[str, ...] = ()  # APIs that encrypt with the scope's keys
    host_project: str | None = None  # of a Shared VPC, where GKE's agents are to get their roles


class ServiceAgents(pulumi.ComponentResource):
    """The service agents of a stack's APIs with their roles.

    Google grants these roles when an API is enabled; they are written down for projects where somebody took them away.
    That generateServiceIdentity answers with an account for each of these APIs is (unverified).
    """

    members: dict[str, pulumi.Output[str]]  # serviceAccount:<email>, by API
    bindings: dict[str, list[pulumi.Resource]]  # by API

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
        for api in args.key_users if args.scope.keys else ():
            self.bindings.setdefault(api, []).extend(self._keys(name, api, args.scope))
        if args.host_project:
            self.bindings[GKE_API].extend(self._host_roles(name, args.host_project))
        self.register_outputs({})

    def _host_roles(self, name: str, project: str) -> Iterator[projects.IAMMember]:
        """Let GKE's agent and the one that makes its VMs use the subnets of a Shared VPC."""
        number = self.members[GKE_API].apply(project_number)
        for account, roles in HOST_ROLES.items():
            for role in roles:
                agent = account.partition("@")[2].partition(".")[0]
                yield projects.IAMMember(
                    f"{name}-host-{agent}-{role.removeprefix('roles/')}",
                    project=project,
                    role=role,
                    member=pulumi.Output.format(f"serviceAccount:{account}", number=number),
                    # Kept on destroy: other stacks' clusters of the project stand on the same role.
                    opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
                )

    def _keys(self, name: str, api: str, scope: Scope) -> Iterator[kms.CryptoKeyIAMMember]:
        """Let the accounts of an API use the keys; any agent's address tells the project's number, which is in all."""
        number = next(iter(self.members.values())).apply(project_number)
        for region, key in scope.keys.items():
            for agent in KEY_AGENTS[api]:
                yield kms.CryptoKeyIAMMember(
                    f"{name}-{agent}-key-{region}",
                    crypto_key_id=key,
                    role=KEY_ROLE,
                    member=pulumi.Output.concat("serviceAccount:service-", number, f"@{agent}.iam.gserviceaccount.com"),
                    # Kept on destroy: without it, all that was encrypted by anybody in the project is out of reach.
                    opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
                )

    def _binding(self, name: str, role: str, member: pulumi.Output[str], scope: Scope) -> projects.IAMMember:
        return projects.IAMMember(
            f"{name}-{role.removeprefix('roles/')}",
            project=scope.project,
            role=role,
            member=member,
            # Kept on destroy: other stacks' clusters and disks in the project stand on the same role.
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )


def project_number(member: str) -> str:
    """Return the number of the project that a service agent is of: ``serviceAccount:service-{number}@...``."""
    return member.partition("@")[0].rpartition("-")[2]


def depend_on_agents(agents: ServiceAgents) -> Transformation:
    """Return a stack transformation that lets every resource wait for the roles of its API's agent."""

    def after_its_agent(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        bindings = agents.bindings.get(api_of(args.type_) or "")
        return wait_for(args, bindings) if bindings else None

    return after_its_agent
