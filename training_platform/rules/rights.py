"""Rules about actions that a stack file promises but no grant allows. Findings are at the line of the promise.

A promise is an action that a section of a file allows: members read a bucket, jobs pull images, Vertex AI uses a
network attachment. Without a grant, Google Cloud refuses the first attempt with a 403. Grants outside the stacks, such
as those on a folder, are unknown here. Promises that rely on them need an exemption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from training_platform.config.data_sets import with_own_data
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.reading.declaration import Draft, Rule, Subject, declare, finding, located
from training_platform.config.reading.finding import Finding, Path
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.resources.grants import Grant, plan_grants
from training_platform.resources.network import attachment
from training_platform.resources.plan import Plan, PlanError
from training_platform.resources.project import AI_PLATFORM, SERVICE_AGENT_NAMES
from training_platform.resources.rights import Rights
from training_platform.resources.scope import (
    SERVICE_ACCOUNT,
    account_id,
    bucket_id,
    environment_scope,
    jobs_account_email,
    repository_id,
    secret_id,
    team_repository_id,
    team_scope,
)
from training_platform.resources.stack_plan import stack_plan
from training_platform.resources.team_logs import log_view_name, vertex_log_view

RIGHTS = declare(
    "rights",
    "Find access that the stack files promise to members, jobs, nodes or Google's agents, but that no role in the "
    "stacks grants.",
    ruleset="rights",
    refused_by="Google Cloud, with 403 at the first call, unless the role is granted outside the stacks",
    excuse="exemption",
)
VERTEX_SUBMISSION = declare(
    "vertex-submission",
    "Find people who may start jobs on Vertex AI in a project with accounts of other teams.",
    ruleset="rights",
    refused_by="`check` only. Google Cloud lets a person who starts a job act as other accounts of the project",
    excuse="exemption",
)
READ_OBJECTS = ("storage.objects.get", "storage.objects.list")
ADD_OBJECTS = ("storage.objects.create",)
WRITE_OBJECTS = (*READ_OBJECTS, *ADD_OBJECTS, "storage.objects.delete")
CHANGE_ATTACHMENT = (
    "compute.networkAttachments.get",
    "compute.networkAttachments.update",
    "compute.regionOperations.get",
)
PULL_IMAGES = ("artifactregistry.repositories.downloadArtifacts",)
PUSH_IMAGES = ("artifactregistry.repositories.uploadArtifacts",)
WRITE_LOGS = ("logging.logEntries.create",)
RESTART_MACHINES = ("aiplatform.persistentResources.create", "aiplatform.persistentResources.get")
WRITE_METRICS = ("monitoring.timeSeries.create",)
READ_VIEW = "logging.views.access"
CONNECT_TO_CLUSTERS = "container.clusters.connect"
READ_AND_CONNECT_TO_CLUSTERS = ("container.clusters.get", CONNECT_TO_CLUSTERS)
GET_BUCKET = "storage.buckets.get"
ACT_AS_ACCOUNT = "iam.serviceAccounts.actAs"
USE_SERVICES = "serviceusage.services.use"
READ_SECRET = "secretmanager.versions.access"  # noqa: S105 # a permission
ADD_SECRET = "secretmanager.versions.add"  # noqa: S105 # a permission
SUBMIT_JOBS = ("aiplatform.customJobs.create",)
SEE_JOBS = ("aiplatform.customJobs.get", "aiplatform.customJobs.list")
FIND_FILE_SYSTEMS = ("file.instances.get", "lustre.instances.get")


class NeededRight(NamedTuple):
    """An action that a line of a file promises: ``members of vision`` can ``read`` a ``resource``."""

    path: Path
    who: str
    does: str
    principal: str
    permissions: tuple[str, ...]
    resource: str


def rights_findings(workspace: Workspace, names: Iterable[str] | None = None) -> list[Finding]:
    """Return findings about promises without a grant, and about people who submit jobs in projects shared by teams.

    ``names`` are the stacks to check; None means all stacks.
    """
    drafts = list(_submissions(workspace))
    if names is None:
        names = workspace.stacks
    for name in names:
        stack = workspace.stacks.get(name)
        rights = stack_rights(stack, workspace) if stack else None
        if stack is None or rights is None:
            continue
        drafts += lacking(stack, RIGHTS, needed_rights(stack, workspace), rights)
    return located(drafts)


def needed_rights(stack: Stack, workspace: Workspace) -> Iterator[NeededRight]:
    """Yield the actions that a stack's file promises; none if its environment is unknown."""
    home = workspace.environment_of(stack)
    if home is not None:
        yield from RightsOfTeam(stack.team, home).all() if stack.team else _of_environment(stack.name, home)


def lacking(subject: Subject, rule: Rule, needed: Iterable[NeededRight], rights: Rights) -> Iterator[Draft]:
    """Yield a finding for each needed permission that no grant gives."""
    for right in needed:
        permissions = [
            permission
            for permission in right.permissions
            if rights.grant_of(right.principal, permission, right.resource) is None
        ]
        if permissions:
            message = f"{right.who} cannot {right.does}: {right.principal} lacks {', '.join(permissions)}"
            allowed = f"a role with these permissions on {right.resource} or above"
            yield finding(subject, right.path, message, rule=rule, allowed=allowed)


def stack_rights(stack: Stack, workspace: Workspace) -> Rights | None:
    """Return the permissions that the grants of a stack and its environment give; None if either has no plan."""
    grants: list[Grant] = []
    projects: dict[str, str] = {}
    for name in dict.fromkeys((stack.environment_name, stack.name)):
        planned = planned_grants(name, workspace)
        if planned is None:
            return None
        grants += planned
    home = workspace.environment_of(stack)
    if stack.team and home:
        scope = team_scope(stack.team, home)
        projects = {bucket_id(scope, key): scope.project for key in stack.team.buckets}
    return Rights(grants=grants, groups={}, project_of=lambda bucket: projects.get(bucket, ""))


def planned_grants(name: str, workspace: Workspace) -> list[Grant] | None:
    """Return the recorded grants of a stack, or else those of a new plan, which are cached; None without a plan."""
    return workspace.once(_grants_key(name), lambda: _grants(name, workspace))


def keep_grants(plan: Plan, workspace: Workspace) -> None:
    """Record the grants of an existing plan, so that ``planned_grants`` does not have to plan the stack again."""
    workspace.once(_grants_key(plan.name), lambda: plan_grants(plan))


def _grants_key(name: str) -> tuple[str, str]:
    return "grants", name


def _grants(name: str, workspace: Workspace) -> list[Grant] | None:
    stack = workspace.stacks.get(name)
    if stack is None or stack.findings:
        return None
    try:
        plan = stack_plan(stack, workspace)
    except PlanError:
        return None  # another finding says why
    return plan_grants(plan) if plan else None


def agent(project: str) -> str:
    """Return the name of Vertex AI's service agent in grants, with the project's id instead of its number."""
    return f"serviceAccount:service-{{{project}}}@{SERVICE_AGENT_NAMES[AI_PLATFORM]}.iam.gserviceaccount.com"


class RightsOfTeam:
    """The actions that a team's file promises to its jobs and members."""

    def __init__(self, team: Team, environment: Environment) -> None:
        self.team = team
        self.environment = with_own_data(team, environment)
        self.scope = team_scope(team, environment)
        self.email = jobs_account_email(self.scope)
        self.project = f"projects/{self.scope.project}"

    def all(self) -> Iterator[NeededRight]:
        """Yield all promises of the file."""
        yield from self._of_jobs()
        yield from self._of_members()
        for key, spec in self.team.buckets.items():
            yield from self.bucket(("buckets", key), key, members_write=spec.members_write)
        yield from self._of_data_sets()
        for index, key in enumerate(self.team.secrets):
            yield self.of_jobs(("secrets", index), f"read secret {key}", (READ_SECRET,), self.secret(key))
            yield from self.of_members(("secrets", index), f"add to secret {key}", (ADD_SECRET,), self.secret(key))
        if self.team.shares and self.environment.team_logs_days:
            view = log_view_name(self.environment.project, self.team.environment, self.team.name)
            yield from self.of_members(("shares",), "read logs of ended runs", (READ_VIEW,), view)
        for cluster in self.team.shares:
            above = f"projects/{self.environment.project}"
            yield from self.of_members(
                ("shares", cluster), f"connect to {cluster}", READ_AND_CONNECT_TO_CLUSTERS, above
            )
        yield from self._of_images()
        yield from self._of_vertex()

    def of_jobs(self, path: Path, does: str, permissions: tuple[str, ...], resource: str) -> NeededRight:
        """Return a promise to the team's jobs."""
        principal = f"serviceAccount:{self.email}"
        return NeededRight(
            path,
            f"jobs of {self.team.name}",
            does=does,
            principal=principal,
            permissions=permissions,
            resource=resource,
        )

    def of_members(self, path: Path, does: str, permissions: tuple[str, ...], resource: str) -> Iterator[NeededRight]:
        """Yield a promise to each of the team's members."""
        for member in self.team.members:
            yield NeededRight(
                path,
                f"members of {self.team.name}",
                does=does,
                principal=member,
                permissions=permissions,
                resource=resource,
            )

    def bucket(self, path: Path, key: str, *, members_write: bool) -> Iterator[NeededRight]:
        """Yield what the file promises to the team's jobs and members about one of its buckets."""
        bucket = f"buckets/{bucket_id(self.scope, key)}"
        yield self.of_jobs(path, f"write to gs://{bucket_id(self.scope, key)}", (*WRITE_OBJECTS, GET_BUCKET), bucket)
        does = f"write to gs://{bucket_id(self.scope, key)}" if members_write else f"read and add to bucket {key}"
        yield from self.of_members(
            path, does, WRITE_OBJECTS if members_write else (*READ_OBJECTS, *ADD_OBJECTS), bucket
        )

    def secret(self, key: str) -> str:
        """Return the resource name of a team's secret."""
        return f"{self.project}/secrets/{secret_id(self.scope, key)}"

    def repositories(self) -> tuple[str, ...]:
        """Return the image repositories of the environment and the team, if the environment has images."""
        images = self.environment.images
        if images is None:
            return ()
        above = f"projects/{self.environment.project}/locations/{images.location}/repositories"
        of_team = team_repository_id(self.team.environment, self.team.name)
        return f"{above}/{repository_id(self.team.environment)}", f"{above}/{of_team}"

    def agent_pulls(self, path: Path, repository: str) -> Iterator[NeededRight]:
        """Yield the promise that Vertex AI can pull images, if its project is not the project of the images."""
        if self.scope.project != self.environment.project:
            yield NeededRight(
                path,
                "Vertex AI",
                does="pull images",
                principal=agent(self.scope.project),
                permissions=PULL_IMAGES,
                resource=repository,
            )

    def _of_jobs(self) -> Iterator[NeededRight]:
        yield self.of_jobs(("name",), "write logs", WRITE_LOGS, self.project)
        if self.team.writes_metrics:
            yield self.of_jobs(("writes_metrics",), "write metrics", WRITE_METRICS, self.project)
        if self.team.shares:
            pods = f"serviceAccount:{self.environment.project}.svc.id.goog[{self.team.name}/{SERVICE_ACCOUNT}]"
            does = "write logs as the team's account"  # which workload identity lets them act as
            yield NeededRight(
                ("shares",),
                f"pods of {self.team.name}",
                does=does,
                principal=pods,
                permissions=WRITE_LOGS,
                resource=self.project,
            )

    def _of_members(self) -> Iterator[NeededRight]:
        account = f"{self.project}/serviceAccounts/{self.email}"
        yield from self.of_members(("members",), "run jobs as the team's account", (ACT_AS_ACCOUNT,), account)
        for project in dict.fromkeys((self.scope.project, self.environment.project)):
            yield from self.of_members(
                ("members",), f"use {project} as quota project", (USE_SERVICES,), f"projects/{project}"
            )

    def _of_data_sets(self) -> Iterator[NeededRight]:
        for key, data in self.environment.data_sets.items():
            if data.bucket and data.readable_by(self.team.name):
                path: Path = ("data_sets", key) if key in self.team.data_sets else ("environment",)
                access = WRITE_OBJECTS if data.writer == self.team.name else READ_OBJECTS
                yield self.of_jobs(path, f"mount data set {key}", (*access, GET_BUCKET), f"buckets/{data.bucket.name}")
                yield from self.of_members(path, f"read data set {key}", READ_OBJECTS, f"buckets/{data.bucket.name}")

    def _of_images(self) -> Iterator[NeededRight]:
        for repository in self.repositories():
            yield self.of_jobs(("environment",), "pull images", PULL_IMAGES, repository)
            yield from self.agent_pulls(("project",), repository)
            yield from self.of_members(("members",), "look up images", PULL_IMAGES, repository)
        for repository in self.repositories()[1:]:
            yield from self.of_members(("members",), "push images", PUSH_IMAGES, repository)

    def _of_vertex(self) -> Iterator[NeededRight]:
        vertex = self.team.vertex
        if vertex.tensorboards:
            permissions = ("aiplatform.tensorboardRuns.write",)
            yield self.of_jobs(("vertex", "tensorboards"), "write to TensorBoard", permissions, self.project)
        for key, resource in vertex.persistent_resources.items():
            restarted: Path = ("vertex", "persistent_resources", key)
            for admin in self.environment.admins:
                yield NeededRight(
                    restarted,
                    "administrators",
                    does=f"restart {key}",
                    principal=admin,
                    permissions=RESTART_MACHINES,
                    resource=self.project,
                )
            name = attachment(resource.network_attachment, resource.region, self.scope)
            if name:
                path: Path = ("vertex", "persistent_resources", key, "network_attachment")
                yield attaching(path, self.scope.project, name)
        log_view = vertex_log_view(self.team, self.environment) or ""
        if vertex.members_submit:
            path = ("vertex", "members_submit")
            yield from self.of_members(path, "start jobs on Vertex AI", SUBMIT_JOBS, self.project)
            yield from self.of_members(path, "read logs of jobs on Vertex AI", (READ_VIEW,), log_view)
            for member in self.team.members:
                yield from self._finds_addresses(path, f"members of {self.team.name}", member)
        elif self.environment.vertex_submitters:
            yield from self.of_members(("environment",), "see runs on Vertex AI", SEE_JOBS, self.project)
        for member in self.environment.vertex_submitters:
            who = f"{member}, which submits jobs of {self.team.name},"
            yield NeededRight(
                ("environment",),
                who,
                does="start jobs on Vertex AI",
                principal=member,
                permissions=SUBMIT_JOBS,
                resource=self.project,
            )
            yield NeededRight(
                ("environment",),
                who,
                does="read their logs",
                principal=member,
                permissions=(READ_VIEW,),
                resource=log_view,
            )
            yield from self._finds_addresses(("environment",), who, member)

    def _finds_addresses(self, path: Path, who: str, member: str) -> Iterator[NeededRight]:
        """Yield the promise that a member who submits to Vertex AI can look up the addresses that the jobs mount."""
        if self.environment.filestore or self.environment.lustre:
            project = f"projects/{self.environment.project}"
            yield NeededRight(
                path,
                who,
                does="look up addresses of file systems",
                principal=member,
                permissions=FIND_FILE_SYSTEMS,
                resource=project,
            )


def attaching(path: Path, project: str, name: str) -> NeededRight:
    """Return the promise that VMs of a project can use a network attachment, ``projects/{project}/regions/...``."""
    above = "/".join(name.split("/")[:2])
    return NeededRight(
        path,
        "Vertex AI",
        does=f"use {name.rpartition('/')[2]}",
        principal=agent(project),
        permissions=CHANGE_ATTACHMENT,
        resource=above,
    )


def _of_environment(name: str, environment: Environment) -> Iterator[NeededRight]:
    """Yield the promises of an environment's file."""
    scope = environment_scope(name, environment)
    project = f"projects/{scope.project}"
    nodes = f"serviceAccount:{account_id(scope.environment, 'gke-nodes')}@{scope.project}.iam.gserviceaccount.com"
    for cluster in environment.clusters:
        path: Path = ("clusters", cluster)
        yield NeededRight(
            path,
            "nodes",
            does="write logs and metrics",
            principal=nodes,
            permissions=(*WRITE_LOGS, *WRITE_METRICS),
            resource=project,
        )
        if environment.images:
            yield NeededRight(
                path, "nodes", does="pull images", principal=nodes, permissions=PULL_IMAGES, resource=project
            )
    for region in environment.network_attachments:
        yield attaching(("network_attachments", region), scope.project, project)
    for index, admin in enumerate(environment.admins):
        path = ("admins", index)
        permissions = (CONNECT_TO_CLUSTERS, "monitoring.timeSeries.list", USE_SERVICES)
        yield NeededRight(
            path,
            "administrators",
            does="look after the clusters",
            principal=admin,
            permissions=permissions,
            resource=project,
        )


_PEOPLE = ("user:", "group:", "domain:")


def _submissions(workspace: Workspace) -> Iterator[Draft]:
    """Find people who may start Vertex AI jobs in a project that several teams use.

    A job can run as any team's account.
    """
    users: dict[str, list[str]] = {}
    for stack in workspace.stacks.values():
        project = workspace.project_of(stack)
        if project:
            users.setdefault(project, []).append(stack.name)
    for stack, team, home in workspace.teams():
        project = team.project or home.project
        other_teams = [name for name in users[project] if name != stack.name]
        if team.vertex.members_submit and other_teams:
            use = "uses" if len(other_teams) == 1 else "use"
            message = (
                f"members could start jobs in {project}, which {enumeration(other_teams)} also {use}: a job can run "
                f"as any account of the project"
            )
            allowed = "a project that only this team uses, or vertex_submitters in the environment"
            yield finding(
                stack, ("vertex", "members_submit"), message, rule=VERTEX_SUBMISSION, allowed=allowed, nearest="false"
            )
    for stack, environment in workspace.environments():
        for index, member in enumerate(environment.vertex_submitters):
            if member.startswith(_PEOPLE):
                message = f"{member} contains people, who could start jobs as any account of the project"
                allowed = "the account of a pipeline, such as serviceAccount:submit@example-ci.iam.gserviceaccount.com"
                yield finding(stack, ("vertex_submitters", index), message, rule=VERTEX_SUBMISSION, allowed=allowed)
