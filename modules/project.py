"""What a project is given: the APIs that a stack calls, the roles of Google's own agents, and requests for quota.

APIs are enabled before anything that needs them, and kept when the stack is destroyed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import cloudquota, kms, projects

from training_platform.config.model.environment import QuotaRequest
from training_platform.config.names import declared_name
from training_platform.resources.resource_types import api_of
from training_platform.resources.scope import Scope, short_name

Transformation = Callable[[pulumi.ResourceTransformationArgs], pulumi.ResourceTransformationResult | None]

# Beside the APIs of what a stack creates: the one that turns a Kubernetes service account into a Google one, and the
# two that take what nodes and controllers write; the one that nodes stream images from.
ENVIRONMENT_APIS = (
    "artifactregistry.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "container.googleapis.com",
    "containerfilesystem.googleapis.com",
    "file.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "storage.googleapis.com",
)
BUDGET_API = "billingbudgets.googleapis.com"  # of an environment with a budget
QUOTA_API = "cloudquotas.googleapis.com"  # of an environment that asks for limits
BACKUP_API = "backupdr.googleapis.com"  # of an environment with backups on a schedule
SERVICES_API = "servicenetworking.googleapis.com"  # of an environment with private service access
DNS_API = "dns.googleapis.com"  # of an environment whose VPC has addresses of its own for Google's APIs
BINARY_API = "binaryauthorization.googleapis.com"  # of an environment with a cluster that asks for it
IAP_API = "iap.googleapis.com"  # of an environment with a gateway for notebooks
LUSTRE_API = "lustre.googleapis.com"  # of an environment with instances of it
SECRETS_API = "secretmanager.googleapis.com"  # of a team with secrets
WORKBENCH_API = "notebooks.googleapis.com"  # of a team with Workbench instances
KMS_API = "cloudkms.googleapis.com"  # of a stack whose environment has keys of its own
# The APIs that encrypt what an environment creates.
ENVIRONMENT_KEY_USERS = ("artifactregistry.googleapis.com", "container.googleapis.com", "file.googleapis.com")
AI_PLATFORM, STORAGE = "aiplatform.googleapis.com", "storage.googleapis.com"
# A team's resources may be in a project of its own; access to the environment's images and clusters is granted from
# the team's stack, and each such grant waits for the API of its kind.
TEAM_APIS = (
    AI_PLATFORM,
    "artifactregistry.googleapis.com",
    BUDGET_API,
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "monitoring.googleapis.com",
    STORAGE,
)


@dataclass(frozen=True, kw_only=True)
class ProjectServicesArgs:
    """What a stack enables."""

    scope: Scope
    apis: tuple[str, ...]  # host names, such as container.googleapis.com


class ProjectServices(pulumi.ComponentResource):
    """The APIs of a stack's project. Two stacks that share a project may both enable an API: it stays enabled."""

    by_api: dict[str, projects.Service]

    def __init__(self, name: str, args: ProjectServicesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:project:ProjectServices", name, {}, opts)
        self.by_api = {
            api: projects.Service(
                f"{name}-{short_api(api)}",
                project=args.scope.project,
                service=api,
                # Others in the project may use the API, and switching one off deletes what it holds.
                disable_on_destroy=False,
                disable_dependent_services=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for api in sorted(set(args.apis))
        }
        self.register_outputs({})


def short_api(api: str) -> str:
    """Return an API's name without its domain: ``container`` for ``container.googleapis.com``."""
    return api.removesuffix(".googleapis.com")


def depend_on_services(services: ProjectServices) -> Transformation:
    """Return a stack transformation that lets every Google Cloud resource wait for its API.

    Raises LookupError, when such a resource is created, if its API is not among the stack's.
    """

    def after_its_service(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        api = api_of(args.type_)
        if api is None:
            return None
        if api not in services.by_api:
            raise LookupError(f"{args.type_} needs {api}, which is not among the APIs that this stack enables")
        return wait_for(args, [services.by_api[api]])

    return after_its_service


def wait_for(
    args: pulumi.ResourceTransformationArgs, resources: Sequence[pulumi.Resource]
) -> pulumi.ResourceTransformationResult:
    """Return a resource as it is, but created after ``resources``, beside what it waits for already."""
    after = pulumi.ResourceOptions(depends_on=resources)
    return pulumi.ResourceTransformationResult(args.props, pulumi.ResourceOptions.merge(args.opts, after))


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


@dataclass(frozen=True, kw_only=True)
class QuotaRequestsArgs:
    """``requests`` are the stack file's, by key."""

    scope: Scope
    requests: Mapping[str, QuotaRequest]


class QuotaRequests(pulumi.ComponentResource):
    """Quota preferences of the environment's project, one per request.

    Google decides on them in its own time, so nothing waits for them. A preference cannot be deleted, and the API has
    one for each quota and its dimensions: where somebody made it by hand, it has to be imported.
    """

    def __init__(self, name: str, args: QuotaRequestsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:cloudquota:QuotaRequests", name, {}, opts)
        for key, request in args.requests.items():
            cloudquota.SQuotaPreference(
                declared_name("quota_requests", key),
                parent=f"projects/{args.scope.project}",
                name=short_name(f"{args.scope.prefix}-{key}", 63),
                service=request.service,
                quota_id=request.quota_id,
                dimensions=request.dimensions or None,
                quota_config=cloudquota.SQuotaPreferenceQuotaConfigArgs(preferred_value=str(request.value)),
                justification=request.justification,
                contact_email=request.contact,
                ignore_safety_checks=request.ignore_safety_check,
                opts=pulumi.ResourceOptions(
                    parent=self,
                    # Says what a deletion comes to: the provider would only forget it.
                    retain_on_delete=True,
                    # An environment under another name keeps its preferences: Google takes no second one for a quota.
                    ignore_changes=["name"],
                ),
            )
        self.register_outputs({})
