"""Service accounts of pipelines, and who may act as each of them.

One account deploys an environment, one previews pull requests, and one runs at night. A CI service signs a token for
each job. Google Cloud accepts the tokens of one repository and derives from their claims the account that the job may
act as. Claims are compared individually. The token's subject is never used, because its text changes with the settings
of a repository.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from training_platform.config.workspace import Workspace, stacks_of
from training_platform.resources.custom_roles import CUSTOM_ROLES
from training_platform.resources.plan import Resource, referenced
from training_platform.resources.resource_types import (
    BUDGET,
    CLUSTER,
    IAM_MEMBER,
    NODE_POOL,
    RELEASE,
    RESOURCE_TYPES,
    SERVICE_ACCOUNT,
    WORKBENCH,
)
from training_platform.resources.scope import account_id
from training_platform.resources.stack_plan import plannable, stack_plan
from training_platform.resources.team_account import WORKLOAD_USER

PREVIEW = "preview"
NIGHTLY = "nightly"
JOBS_ENVIRONMENT = "vertex-jobs"  # of GitHub or GitLab: the job that submits to Vertex AI is in it
POOL = "pipelines"
ATTRIBUTE = "attribute.account"
IAM_ADMIN = "roles/resourcemanager.projectIamAdmin"
CHART_READER = "roles/artifactregistry.reader"
ROLES_OF_CONDITION = 10
# A preview reads what exists already: clusters and networks of others.
PREVIEW_PERMISSIONS = (
    "compute.networks.get",
    "compute.subnetworks.get",
    "resourcemanager.projects.get",
)
# `quota pull`, and any request by credentials with a quota project.
QUOTA_PERMISSIONS = ("cloudquotas.quotas.get", "serviceusage.services.use")
# Beside reading the plan's resources: `quota pull`, `job usage` and `persistent-resource list`.
NIGHTLY_PERMISSIONS = (
    *QUOTA_PERMISSIONS,
    "aiplatform.customJobs.list",
    "aiplatform.persistentResources.list",
    "monitoring.timeSeries.list",
    "resourcemanager.projects.get",
    "resourcemanager.projects.getIamPolicy",
)
_MIRROR = re.compile(r"oci://[a-z0-9-]+-docker\.pkg\.dev/([^/]+)/")
_READS = re.compile(r"\.(get|list)(IamPolicy|ForFilestoreInstance)?$")
PREAMBLE = ("set -eu", 'exists() { gcloud "$@" > /dev/null 2>&1; }')
# Of the project with the accounts: Google Cloud exchanges tokens by the last two.
APIS = ("iam.googleapis.com", "iamcredentials.googleapis.com", "sts.googleapis.com")


@dataclass(frozen=True, kw_only=True)
class Federation:
    """How Google Cloud evaluates the tokens of a CI service.

    - ``condition`` refuses tokens of other repositories.
    - ``account`` maps the claims to an account. Its value is ``PREVIEW``, ``NIGHTLY`` or ``deployer(environment)``.
    - ``subject`` maps the claims to the name shown in audit logs. Google Cloud limits it to 127 bytes.

    All of them are expressions in the Common Expression Language.
    """

    provider: str
    issuer: str
    subject: str
    condition: str
    account: str


def github(repository_id: str, branch: str = "main") -> Federation:
    """Return the federation for GitHub Actions. ``repository_id`` does not change when a repository is renamed.

    The claim ``environment`` is only in tokens of jobs that name a GitHub environment. Such a job waits for the
    environment's reviewers. A pull request's workflow can name any environment, so the claim is accepted only on the
    branch. Source: GitHub docs, OpenID Connect reference, read 2026-11-24.
    """
    account = (
        f"assertion.ref != 'refs/heads/{branch}' ? '{PREVIEW}' : "
        f"has(assertion.environment) ? '{deployer('')}' + assertion.environment : '{NIGHTLY}'"
    )
    return Federation(
        provider="github",
        subject="assertion.repository_id + '/' + assertion.run_id",
        issuer="https://token.actions.githubusercontent.com",
        condition=f"assertion.repository_id == '{repository_id}'",
        account=account,
    )


def gitlab(project_id: str, issuer: str = "https://gitlab.com", branch: str = "main") -> Federation:
    """Return the federation for GitLab CI.

    An environment without protection has no approvers, so a job that deploys to it is treated as a preview. The ref of
    a merge request's pipeline is the source branch, which in a fork may have the name of the main branch. Source:
    GitLab docs, ID token authentication, read 2026-11-24.
    """
    account = (
        f"assertion.ref != '{branch}' || assertion.ref_type != 'branch' || assertion.ref_protected != 'true' "
        f"|| assertion.pipeline_source == 'merge_request_event' ? '{PREVIEW}' : "
        f"!has(assertion.environment) ? '{NIGHTLY}' : "
        f"assertion.environment_protected == 'true' ? '{deployer('')}' + assertion.environment : '{PREVIEW}'"
    )
    return Federation(
        provider="gitlab",
        issuer=issuer,
        subject="assertion.project_id + '/' + assertion.job_id",
        condition=f"assertion.project_id == '{project_id}'",
        account=account,
    )


def deployer(environment: str) -> str:
    """Return the value of ``Federation.account`` for jobs that deploy an environment."""
    return f"deploy-{environment}"


def pipeline_account_id(account: str) -> str:
    """Return the id of the service account that belongs to a value of ``Federation.account``."""
    return account_id(account.lower().replace("_", "-").replace(".", "-"))


def setup_script(project: str, workspace: Workspace, federation: Federation | None, state: PulumiState) -> str:
    """Return a shell script that creates the accounts in ``project``, with the permissions that the stacks need.

    It may be run repeatedly. Without a federation, only people and Cloud Build triggers may act as the accounts.
    """
    environments = [environment_rights(stack.name, workspace) for stack, _ in workspace.environments()]
    accounts = [PREVIEW, NIGHTLY, *(deployer(rights.environment) for rights in environments)]
    ids = {pipeline_account_id(account): account for account in accounts}
    ids |= dict.fromkeys(_submitters(workspace, project), deployer(JOBS_ENVIRONMENT))
    lines = [*PREAMBLE, f"gcloud services enable {' '.join(APIS)} --project={project}"]
    lines += [account_command(account, project) for account in ids]
    if federation:
        lines += federation_commands(project, federation, ids)
    for rights in environments:
        lines += deployer_commands(rights, account_email(deployer(rights.environment), project))
        for account in (deployer(rights.environment), PREVIEW, NIGHTLY):
            email = account_email(account, project)
            lines += [project_grant(mirror, email, CHART_READER) for mirror in sorted(rights.mirrors)]
    lines += reader_commands(environments, project)
    lines += state_commands(state, project, accounts)
    return "\n".join(lines) + "\n"


def _submitters(workspace: Workspace, project: str) -> list[str]:
    """Return the ids of the accounts in ``project`` that stack files allow to submit jobs to Vertex AI."""
    members = {member for _, environment in workspace.environments() for member in environment.vertex_submitters}
    matches = (re.fullmatch(rf"serviceAccount:([^@]+)@{project}\.iam\.gserviceaccount\.com", name) for name in members)
    return sorted(match[1] for match in matches if match)


@dataclass(frozen=True, kw_only=True)
class PulumiState:
    """The bucket of Pulumi's state, the Cloud KMS key of its secrets, and the IAM members that may act as deployers."""

    bucket: str | None = None
    key: str | None = None
    operators: tuple[str, ...] = ()


@dataclass
class ProjectRights:
    """The permissions that a deployment requires in one project.

    - ``permissions`` are the permissions to manage the resources of the plans.
    - ``granted`` are the roles that the plans grant in the project.
    - ``accounts`` contains the accounts that resources run as: it maps their ids to their display names.
    - ``unknown`` are types of an organisation's own resources for which ``resource_types.yaml`` has no
      permissions.
    """

    permissions: set[str] = field(default_factory=set)
    granted: set[str] = field(default_factory=set)
    accounts: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    has_clusters: bool = False


@dataclass(frozen=True)
class EnvironmentRights:
    """The permissions to deploy an environment and its teams, keyed by project; ``budgets`` are the billing accounts.

    ``mirrors`` are the projects that have a mirror of charts in Artifact Registry. Every preview pulls from them.
    """

    environment: str
    projects: Mapping[str, ProjectRights]
    budgets: frozenset[str]
    mirrors: frozenset[str]

    @property
    def needs(self) -> Mapping[str, set[str]]:
        """All permissions and accounts, keyed by project or billing account."""
        needs = {account: {"budgets"} for account in self.budgets}
        for project, needed in self.projects.items():
            needs[project] = {*needed.permissions, *needed.granted, *needed.accounts, *needed.unknown}
        for project in self.mirrors:
            needs.setdefault(project, set()).add(CHART_READER)
        return needs


def environment_rights(environment: str, workspace: Workspace) -> EnvironmentRights:
    """Return the permissions that the plans of an environment and its teams require. A rejected stack requires none."""
    projects: dict[str, ProjectRights] = {}
    budgets: set[str] = set()
    mirrors: set[str] = set()
    for stack in plannable(workspace, stacks_of(workspace, environment)):
        plan = stack_plan(stack, workspace)
        home = workspace.project_of(stack)
        assert plan is not None
        assert home is not None
        for resource in plan.resources():
            if resource.type == BUDGET:
                budgets.add(resource.inputs["billing_account"])
            elif resource.type == RELEASE:
                mirrors.update(_MIRROR.findall(resource.inputs["chart"]))
            elif resource.type.startswith("gcp:"):
                _add(resource, projects.setdefault(_project(resource, home), ProjectRights()))
    return EnvironmentRights(environment, projects, budgets=frozenset(budgets), mirrors=frozenset(mirrors))


def _add(resource: Resource, rights: ProjectRights) -> None:
    row = RESOURCE_TYPES.get(resource.type)
    permissions = row.permissions if row else {}
    rights.permissions |= {f"{collection}.{verb}" for collection, verbs in permissions.items() for verb in verbs}
    if resource.type == IAM_MEMBER:
        rights.granted.add(resource.inputs["role"])
    elif not permissions:
        rights.unknown.add(resource.type)
    elif resource.type == CLUSTER:
        rights.has_clusters = True
    if resource.type in (CLUSTER, NODE_POOL, WORKBENCH):
        accounts = (other for other in referenced(resource.inputs) if other.type == SERVICE_ACCOUNT)
        rights.accounts |= {account.inputs["account_id"]: account.inputs["display_name"] for account in accounts}


def _project(resource: Resource, home: str) -> str:
    """Return the project in a resource's inputs or in its KMS key's name, otherwise ``home``, the stack's project."""
    inputs = resource.inputs
    if isinstance(inputs.get("project"), str):
        return str(inputs["project"])
    path = inputs.get("crypto_key_id")
    match = re.match("projects/([^/]+)/", path) if isinstance(path, str) else None
    return match[1] if match else home


def deployer_commands(rights: EnvironmentRights, email: str) -> Iterator[str]:
    """Yield commands that grant an environment's deployer account its permissions."""
    role_id = f"deploy_{rights.environment}".replace("-", "_").replace(".", "_")
    for project, needed in rights.projects.items():
        permissions = needed.permissions | set(QUOTA_PERMISSIONS)
        yield from role_commands(project, role_id, f"Deploys {rights.environment}", permissions)
        yield project_grant(project, email, f"projects/{project}/roles/{role_id}")
        if needed.has_clusters:
            yield project_grant(project, email, "roles/container.admin")
        for custom_id, custom in CUSTOM_ROLES.items():
            yield from role_commands(project, custom_id, custom.title, custom.permissions)
        yield from limited_admin(project, email, needed.granted)
        for kind in sorted(needed.unknown):
            yield (
                f"# Grant {email} the right to create {kind} in {project} yourself: the necessary permissions are "
                f"not known."
            )
        for account, title in sorted(needed.accounts.items()):
            # The stack takes the account as it is, so that another name would be a drift.
            yield f"{account_command(account, project)} --display-name='{title}'"
            yield (
                f"gcloud iam service-accounts add-iam-policy-binding {account}@{project}.iam.gserviceaccount.com "
                f"--project={project} --role=roles/iam.serviceAccountUser --member=serviceAccount:{email}"
            )
    for billing in sorted(rights.budgets):
        yield (
            f"gcloud billing accounts add-iam-policy-binding {billing} --role=roles/billing.costsManager "
            f"--member=serviceAccount:{email}"
        )


def limited_admin(project: str, email: str, granted: Collection[str]) -> Iterator[str]:
    """Yield commands that allow an account to grant and revoke the roles in ``granted`` in a project, and no others.

    A condition may list ten roles (unverified), so a longer list is split into several conditions. Source: IAM docs,
    set limits on granting roles, read 2026-11-24.
    """
    member = f"--member=serviceAccount:{email} --role={IAM_ADMIN}"
    yield f"gcloud projects remove-iam-policy-binding {project} {member} --all > /dev/null 2>&1 || true"
    roles = sorted(granted)
    for start in range(0, len(roles), ROLES_OF_CONDITION):
        listed = ", ".join(f"'{role}'" for role in roles[start : start + ROLES_OF_CONDITION])
        yield (
            f"gcloud projects add-iam-policy-binding {project} {member} --condition-from-file=/dev/stdin <<'END'\n"
            f"title: Roles of the platform {start // ROLES_OF_CONDITION + 1}\n"
            f"expression: \"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{listed}])\"\n"
            "END"
        )


def reader_commands(environments: Iterable[EnvironmentRights], project: str) -> Iterator[str]:
    """Yield commands that give permissions to the accounts that only read.

    The nightly account reads all resources of the plans, and the data from which quota, idle machines and chip-hours
    are calculated. From Google Cloud, a preview reads only existing resources that the stacks refer to. From clusters,
    it reads only objects that are changed.
    """
    readable: dict[str, set[str]] = {}
    clusters: dict[str, bool] = {}
    for rights in environments:
        for name, needed in rights.projects.items():
            reads = {permission for permission in needed.permissions if _READS.search(permission)}
            readable.setdefault(name, set(NIGHTLY_PERMISSIONS)).update(reads)
            clusters[name] = clusters.get(name, False) or needed.has_clusters
    nightly = account_email(NIGHTLY, project)
    preview = account_email(PREVIEW, project)
    for name, permissions in readable.items():
        yield from role_commands(name, "nightly", "Looks for drift", permissions)
        yield from role_commands(name, "preview", "Previews", PREVIEW_PERMISSIONS)
        yield project_grant(name, nightly, f"projects/{name}/roles/nightly")
        yield project_grant(name, preview, f"projects/{name}/roles/preview")
        if clusters[name]:
            for email in (nightly, preview):
                yield project_grant(name, email, "roles/container.viewer")
                yield project_grant(name, email, "roles/container.clusterViewer")


def state_commands(state: PulumiState, project: str, accounts: Iterable[str]) -> Iterator[str]:
    """Yield commands that give deployers full access to Pulumi's state, and all other accounts read access."""
    for account in accounts:
        email = account_email(account, project)
        reads = account in (PREVIEW, NIGHTLY)
        if state.bucket:
            role = "roles/storage.objectViewer" if reads else "roles/storage.objectUser"
            yield (
                f"gcloud storage buckets add-iam-policy-binding {state.bucket} --member=serviceAccount:{email} "
                f"--role={role}"
            )
        if state.key:
            role = f"roles/cloudkms.cryptoKey{'Decrypter' if reads else 'EncrypterDecrypter'}"
            yield f"gcloud kms keys add-iam-policy-binding {state.key} --member=serviceAccount:{email} --role={role}"
        if not reads:
            for operator in state.operators:
                yield (
                    f"gcloud iam service-accounts add-iam-policy-binding {email} --project={project} "
                    f"--role=roles/iam.serviceAccountTokenCreator --member={operator}"
                )


def role_commands(project: str, role_id: str, title: str, permissions: Iterable[str]) -> Iterator[str]:
    """Yield commands that create a custom role with these permissions in a project, or update an existing one."""
    yield f"verb=create; ! exists iam roles describe {role_id} --project={project} || verb=update"
    yield (
        f'gcloud iam roles $verb {role_id} --project={project} --title="{title}" --stage=GA '
        f"--permissions={','.join(sorted(permissions))}"
    )


def project_grant(project: str, email: str, role: str) -> str:
    """Return a command that grants an account a role in a project."""
    return (
        f"gcloud projects add-iam-policy-binding {project} --member=serviceAccount:{email} --role={role} "
        "--condition=None"
    )


def account_command(account: str, project: str) -> str:
    """Return a command that creates the service account with this id unless it exists."""
    return (
        f"exists iam service-accounts describe {account}@{project}.iam.gserviceaccount.com --project={project} "
        f"|| gcloud iam service-accounts create {account} --project={project}"
    )


def federation_commands(project: str, federation: Federation, ids: Mapping[str, str]) -> Iterator[str]:
    """Yield commands that allow the jobs of a CI service to act as accounts of ``project``.

    ``ids`` maps the id of each account to its value of ``Federation.account``.
    """
    place = f"--location=global --project={project}"
    yield (
        f"exists iam workload-identity-pools describe {POOL} {place} "
        f"|| gcloud iam workload-identity-pools create {POOL} {place}"
    )
    provider = f"{federation.provider} --workload-identity-pool={POOL} {place}"
    mapping = f"google.subject={federation.subject},{ATTRIBUTE}={federation.account}"
    yield f"verb=create; ! exists iam workload-identity-pools providers describe {provider} || verb=update"
    yield (
        f"gcloud iam workload-identity-pools providers $verb-oidc {provider} --issuer-uri={federation.issuer} "
        f'--attribute-mapping="{mapping}" --attribute-condition="{federation.condition}"'
    )
    yield f"number=$(gcloud projects describe {project} --format='value(projectNumber)')"
    pool = f"projects/$number/locations/global/workloadIdentityPools/{POOL}"
    for id_of_account, account in ids.items():
        yield (
            f"gcloud iam service-accounts add-iam-policy-binding {id_of_account}@{project}.iam.gserviceaccount.com "
            f"--project={project} --role={WORKLOAD_USER} "
            f'--member="principalSet://iam.googleapis.com/{pool}/{ATTRIBUTE}/{account}"'
        )
    yield f'echo "WORKLOAD_IDENTITY_PROVIDER={pool}/providers/{federation.provider}"'


def account_email(account: str, project: str) -> str:
    """Return the e-mail address of the account that belongs to a value of ``Federation.account``."""
    return f"{pipeline_account_id(account)}@{project}.iam.gserviceaccount.com"
