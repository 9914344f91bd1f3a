"""Settings of a project: the APIs that a stack calls, the roles of Google's service agents, and quota requests.

APIs are enabled before any resource that needs them, and stay enabled when the stack is destroyed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from training_platform.config.model.environment import QuotaRequest
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.plan import Component, Options, Plan, PlanError, Resource, compute, text
from training_platform.resources.resource_types import api_of
from training_platform.resources.scope import Scope, short_name

# Beside the APIs of what a stack creates: the one that turns a Kubernetes service account into a Google one, and the
# two that take what nodes and controllers write; the one that nodes stream images from.
IAM_API = "iam.googleapis.com"
ENVIRONMENT_APIS = (
    "artifactregistry.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "container.googleapis.com",
    "containerfilesystem.googleapis.com",
    "file.googleapis.com",
    IAM_API,
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
KMS_API = "cloudkms.googleapis.com"  # of a stack whose environment has keys of its own
# The APIs that encrypt what an environment creates.
ENVIRONMENT_KEY_USERS = ("artifactregistry.googleapis.com", "container.googleapis.com", "file.googleapis.com")
AI_PLATFORM = "aiplatform.googleapis.com"
STORAGE = "storage.googleapis.com"
# A team's resources may be in a project of its own; access to the environment's images and clusters is granted from
# the team's stack, and each such grant waits for the API of its kind.
TEAM_APIS = (
    AI_PLATFORM,
    "artifactregistry.googleapis.com",
    BUDGET_API,
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    IAM_API,
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    STORAGE,
)
GKE_API = "container.googleapis.com"
SERVICE_AGENTS = "training-platform:project:ServiceAgents"
"""The type of the component that contains the service agents' roles."""
AGENT_ROLES: Mapping[str, tuple[str, ...]] = {
    "aiplatform.googleapis.com": ("roles/aiplatform.serviceAgent",),
    "artifactregistry.googleapis.com": ("roles/artifactregistry.serviceAgent",),
    "container.googleapis.com": ("roles/container.serviceAgent",),
    "file.googleapis.com": ("roles/file.serviceAgent",),
    "lustre.googleapis.com": (),
    "notebooks.googleapis.com": ("roles/notebooks.serviceAgent",),
}
"""The roles of service agents in the project, keyed by API. A network of another project also needs HOST_ROLES."""

HOST_ROLES: Mapping[str, tuple[str, ...]] = {
    "service-{}@container-engine-robot.iam.gserviceaccount.com": (
        "roles/compute.networkUser",
        "roles/container.hostServiceAgentUser",
    ),
    "{}@cloudservices.gserviceaccount.com": ("roles/compute.networkUser",),
}
"""Roles in the host project of a Shared VPC, keyed by the accounts that need them.

The accounts belong to a service project with clusters; their addresses contain this project's number. Source:
GoogleCloudPlatform/cloud-foundation-fabric, modules/project/sharedvpc-agent-iam.yaml, read 2026-11-22.
"""

SERVICE_AGENT_NAMES: Mapping[str, str] = {
    "aiplatform.googleapis.com": "gcp-sa-aiplatform",
    "artifactregistry.googleapis.com": "gcp-sa-artifactregistry",
    "container.googleapis.com": "container-engine-robot",
    "file.googleapis.com": "cloud-filer",
    "lustre.googleapis.com": "gcp-sa-lustre",
    "notebooks.googleapis.com": "gcp-sa-notebooks",
}
"""The names of APIs' service agents: ``service-{project number}@{name}.iam.gserviceaccount.com``.

Source: IAM docs, service agents, read 2026-11-22.
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
"""The accounts that use a key for an API's resources: ``service-{project number}@{name}.iam.gserviceaccount.com``.

Source: IAM docs, service agents, with the CMEK pages of Filestore and Artifact Registry, read 2026-11-22. It is assumed
that the accounts of Compute Engine and Cloud Storage exist without being requested (unverified), see docs/security.md.
"""


class ProjectApis:
    """The APIs of a stack's project and their service agents. Every other resource of the plan waits for both.

    Two stacks that share a project may both enable an API, because it is never disabled. Google grants the agents'
    roles when an API is enabled. The plan also contains them, for projects where somebody removed them. It is assumed
    that generateServiceIdentity returns an account for each of these APIs (unverified).
    """

    def __init__(
        self,
        plan: Plan,
        scope: Scope,
        apis: Sequence[str],
        key_users: Sequence[str],
        host_project: str | None = None,
    ) -> None:
        """Add the APIs to a plan.

        ``key_users`` are the APIs whose resources the stack encrypts, if the environment has keys. ``host_project`` is
        the host project of a Shared VPC in which GKE's agents get their roles.
        """
        self._plan = plan
        self._scope = scope
        self._apis_component = plan.component("training-platform:project:ProjectServices", "apis")
        self._agents_component = plan.component(SERVICE_AGENTS, "agents")
        names = sorted({*apis, KMS_API}) if scope.keys else sorted(set(apis))
        self.services = {api: self._apis_component.add(_service(api, scope)) for api in names}
        self.agents = _agents(self._agents_component, scope, self.services)
        self.bindings = _agent_roles(self._agents_component, scope, self.agents, key_users, host_project)

    def enable(self, api: str) -> Resource:
        """Enable an API, such as ``pubsub.googleapis.com``, with its service agent, and return its service resource."""
        if api not in self.services:
            self.services[api] = self._apis_component.add(_service(api, self._scope))
            agents = _agents(self._agents_component, self._scope, {api: self.services[api]})
            self.agents |= agents
            self.bindings |= _agent_roles(self._agents_component, self._scope, agents, (), None)
        return self.services[api]

    def grant_agent(self, api: str, grant: Resource) -> None:
        """Add a role for the agent of an API that the stack enables. The API's resources also wait for this role."""
        self.bindings[api].append(self._agents_component.add(grant))

    def make_resources_wait(self) -> None:
        """Make every resource of the plan wait for its API and for the roles of the API's agent. Raises PlanError.

        The agents themselves wait only for their APIs. If the API of a resource's type is not known, the resource must
        already wait for some API.
        """
        missing = []
        enabled = set(self.services.values())
        for resource in self._plan.resources():
            try:
                api = api_of(resource.type)
            except LookupError:
                if enabled.isdisjoint(resource.after):
                    missing.append(
                        f"{resource.name} ({resource.type}) has to depend on its API: after=[own.enable_api(...)]"
                    )
                continue
            if api is None:
                continue
            if api not in self.services:
                missing.append(f"{resource.name} ({resource.type}) needs {api}")
                continue
            resource.after.append(self.services[api])
            if resource.parent is not self._agents_component:
                resource.after.extend(self.bindings.get(api, ()))
        if missing:
            raise PlanError(
                f"stack {self._plan.name} does not enable the APIs of some resources: {'; '.join(missing)}."
            )


def short_api(api: str) -> str:
    """Return an API's name without its domain: ``container`` for ``container.googleapis.com``."""
    return api.removesuffix(".googleapis.com")


def _service(api: str, scope: Scope) -> Resource:
    return gcp.service(
        f"apis-{short_api(api)}",
        project=scope.project,
        service=api,
        # Others in the project may use the API, and switching one off deletes what it holds.
        disable_on_destroy=False,
        disable_dependent_services=False,
    )


def _agents(into: Component, scope: Scope, services: Mapping[str, Resource]) -> dict[str, Any]:
    """Add the service agents of APIs, and return them as IAM members keyed by API."""
    members: dict[str, Any] = {}
    for api, service in services.items():
        if api in AGENT_ROLES:
            agent = gcp.service_identity(f"agents-{short_api(api)}", project=scope.project, service=api)
            # An API has an account in a project once it is enabled there.
            members[api] = into.add(agent, [service]).output("member")
    return members


def _agent_roles(
    into: Component, scope: Scope, members: Mapping[str, Any], key_users: Sequence[str], host_project: str | None
) -> dict[str, list[Resource]]:
    """Add the roles of the service agents, and return them keyed by API."""
    bindings = {
        api: [
            into.add(kept_role(f"agents-{role.removeprefix('roles/')}", scope.project, role, member))
            for role in AGENT_ROLES[api]
        ]
        for api, member in members.items()
    }
    if scope.keys:
        for api in key_users:
            bindings.setdefault(api, []).extend(_key_users(into, scope, api, members))
    if host_project:
        bindings[GKE_API].extend(_host_roles(into, host_project, members[GKE_API]))
    return bindings


def kept_role(name: str, project: str, role: str, member: Any) -> Resource:
    """Return a grant that is kept on destroy, because other stacks' resources in the project depend on it."""
    return gcp.iam_member(name, Options(retain_on_delete=True), project=project, role=role, member=member)


def _host_roles(into: Component, project: str, member: Any) -> list[Resource]:
    """Allow GKE's service agent and the agent that creates its VMs to use the subnets of a Shared VPC."""
    number = compute(project_number, member)
    added = []
    for account, roles in HOST_ROLES.items():
        agent = account.partition("@")[2].partition(".")[0]
        for role in roles:
            name = f"agents-host-{agent}-{role.removeprefix('roles/')}"
            added.append(into.add(kept_role(name, project, role, text(f"serviceAccount:{account}", number))))
    return added


def _key_users(into: Component, scope: Scope, api: str, members: Mapping[str, Any]) -> list[Resource]:
    """Allow the accounts of an API to use the environment's keys.

    All these accounts contain the project's number, which is taken from the address of any agent.
    """
    number = compute(project_number, next(iter(members.values())))
    added = []
    for region, key in scope.keys.items():
        for agent in KEY_AGENTS[api]:
            # Kept on destroy: without it, all that was encrypted by anybody in the project is out of reach.
            kept = Options(retain_on_delete=True)
            name = f"agents-{agent}-key-{region}"
            member = text(f"serviceAccount:service-{{}}@{agent}.iam.gserviceaccount.com", number)
            grant = gcp.crypto_key_member(name, kept, crypto_key_id=key, role=KEY_ROLE, member=member)
            added.append(into.add(grant))
    return added


def project_number(member: str) -> str:
    """Return the project number in the name of a service agent: ``serviceAccount:service-{number}@...``."""
    return member.partition("@")[0].removeprefix("serviceAccount:service-")


def quota_requests(into: Component, scope: Scope, requests: Mapping[str, QuotaRequest]) -> None:
    """Add quota preferences of the environment's project, one for each request in the stack file.

    Google decides on them later, so nothing waits for them. A preference cannot be deleted, and the API allows only one
    for each quota and its dimensions. A preference that somebody created by hand must be imported.
    """
    options = Options(
        # Says what a deletion comes to: the provider would only forget it.
        retain_on_delete=True,
        # An environment under another name keeps its preferences: Google takes no second one for a quota.
        ignore_changes=("name",),
    )
    for key, request in requests.items():
        name = declared_name("quota_requests", key)
        into.add(
            gcp.quota_preference(
                name,
                options,
                parent=f"projects/{scope.project}",
                name=short_name(f"{scope.prefix}-{key}", 63),
                service=request.service,
                quota_id=request.quota_id,
                dimensions=request.dimensions or None,
                quota_config={"preferred_value": str(request.value)},
                justification=request.justification,
                contact_email=request.contact,
                ignore_safety_checks=request.ignore_safety_check,
            )
        )
