"""The plan of a team stack: queues, namespaces and volumes in the clusters, buckets, and Vertex AI resources.

The team's file and its environment's file determine what the stack creates. Values that are known only after the
environment's deployment come from that stack's outputs. Each of these values has a function in this module that reads
it and reports in one sentence if it is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from training_platform.catalog import IMAGES
from training_platform.config.data_sets import reaches, with_own_data
from training_platform.config.expansion import Flavor
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import PROJECT
from training_platform.config.model.storage import DataSetSpec
from training_platform.config.model.team import Team
from training_platform.config.model.workloads import Notebooks
from training_platform.config.names import declared_name
from training_platform.resources.custom_roles import custom_role
from training_platform.resources.data_sets import team_mode
from training_platform.resources.environment_outputs import parse_outputs
from training_platform.resources.filestore import claim_limits, class_tiers, tier_class
from training_platform.resources.gpu_direct import kinds_of
from training_platform.resources.jupyterhub import team_notebooks
from training_platform.resources.launch_agent import CHART, launch_agent
from training_platform.resources.member_rights import TeamResources, member_rights, restart_rights, submitter_rights
from training_platform.resources.monitoring import budget_resources, stack_budget, team_dashboard
from training_platform.resources.network import attachment_project, entrance
from training_platform.resources.network_devices import claim_templates
from training_platform.resources.notebooks import notebooks_of, waiting_chips
from training_platform.resources.operators import job_kinds, network_policies, object_limits
from training_platform.resources.plan import STACK_REFERENCE, Plan, Reference, Resource, compute
from training_platform.resources.planned_cluster import PlannedCluster, planned_cluster
from training_platform.resources.project import AI_PLATFORM, SECRETS_API, STORAGE, TEAM_APIS, ProjectApis, kept_role
from training_platform.resources.queues import team_queues
from training_platform.resources.scope import (
    SERVICE_ACCOUNT,
    Scope,
    bucket_id,
    environment_scope,
    python_repository_id,
    repository_id,
    team_repository_id,
    team_scope,
)
from training_platform.resources.serving import gated_chips, model_server
from training_platform.resources.storage import ACCESSOR, image_repository, secret_grant, team_bucket, team_secret
from training_platform.resources.team_account import (
    BucketRole,
    KubernetesAccount,
    RepositoryRef,
    TeamAccount,
    bucket_grants,
    repository_grant,
    team_account,
)
from training_platform.resources.team_logs import team_logs, vertex_log_readers, vertex_logs
from training_platform.resources.tenancy import (
    NamespaceParts,
    cluster_callers,
    egress_spec,
    host_spec,
    namespace_labels,
    resource_quota,
    run_limit,
    team_namespace,
)
from training_platform.resources.vertex import persistent_resource, tensorboard
from training_platform.resources.volumes import (
    DATA_VOLUME,
    FILESTORE_VOLUME,
    data_volume,
    filestore_volume,
    team_folder,
)

ORGANIZATION = "organization"  # what a self-managed backend calls the one organisation it has


def add_team(
    plan: Plan,
    team: Team,
    environment: Environment,
    flavors: Mapping[str, Mapping[str, Flavor]],
    organization: str = ORGANIZATION,
) -> ProjectApis:
    """Add a team's resources to the plan of its stack, and return the APIs that resources must wait for.

    ``flavors`` are the flavors of its environment's clusters, keyed by cluster and then by name. ``organization`` is
    the Pulumi organization from which the environment's stack is read. The plan's outputs say where the team's jobs run
    and write.
    """
    environment = with_own_data(team, environment)
    scope = team_scope(team, environment)
    apis = ProjectApis(plan, scope, (*TEAM_APIS, *_further_apis(team)), key_users(team))
    name = f"{organization}/{PROJECT}/{team.environment}"
    reference = Resource(type=STACK_REFERENCE, name=name, inputs={"name": name}, read_id=name)
    outputs = plan.add(reference).output("outputs")
    buckets = {key: plan.add(team_bucket(key, spec, scope)) for key, spec in team.buckets.items()}
    repositories = _add_images(plan, team, environment, scope)
    account_component = plan.component("training-platform:tenancy:TeamAccount", "account")
    account = team_account(account_component, _account(team, environment, scope, buckets, repositories))
    _let_agents(apis, team, environment, repositories)
    _let_members_connect(plan, team, environment, scope)
    data_set_buckets = _data_set_buckets(team, environment, buckets.values())
    _add_data_set_grants(plan, team, environment, data_set_buckets, account)
    budget = stack_budget(team.budget, environment)
    if budget:
        budget_resources(*budget, scope, plan)
    for dashboard in team_dashboard(team, environment, scope):
        plan.add(dashboard)
    secrets = {}
    for key in team.secrets:
        component = plan.component("training-platform:storage:Secret", declared_name("secrets", key))
        secrets[key] = component.add(team_secret(key, scope))
        component.add(secret_grant(f"{component.name}-jobs", scope, secrets[key], ACCESSOR, account.output("member")))
    uses = TeamResources(
        projects=(scope.project, environment.project),
        buckets={key: (spec, buckets[key].output("name")) for key, spec in team.buckets.items()},
        data_sets=data_set_buckets,
        secrets=secrets,
        repositories=repositories,
        pushes_to=(TEAM_IMAGES,),
        submits=team.vertex.members_submit,
        sees_runs=bool(environment.vertex_submitters) and not team.vertex.members_submit,
        file_systems=environment.project if environment.filestore or environment.lustre else None,
    )
    member_rights(plan, scope, team.members, uses)
    if environment.vertex_submitters:
        submitters = plan.component("training-platform:tenancy:VertexSubmitters", "submitters")
        submitter_rights(submitters, scope, environment.vertex_submitters, account, uses)
    if team.vertex.persistent_resources and environment.admins:
        for right in restart_rights(scope, environment.admins):
            plan.add(right)
    if team.shares and environment.team_logs_days:
        logs = plan.component("training-platform:tenancy:TeamLogs", "logs")
        days = environment.team_logs_days
        team_logs(logs, environment.project, team.environment, team.name, members=team.members, days=days)
    log_readers = vertex_log_readers(team, environment)
    if log_readers:
        vertex_logs(plan.component("training-platform:tenancy:VertexLogs", "vertex-logs"), scope, members=log_readers)
    home = environment_scope(team.environment, environment)
    for key in team.shares:
        component = plan.component("training-platform:team:TeamShare", declared_name("shares", key))
        endpoint = _endpoint(team, environment, key, outputs)
        cluster = planned_cluster(component, key, environment, home, flavors=flavors[key], endpoint=endpoint)
        _ClusterShare(cluster=cluster, team=team, scope=scope, outputs=outputs, account=account).add()
    boards = _add_vertex(plan, team, scope)
    plan.outputs = {
        "service_account": account.output("email"),
        "buckets": {key: f"gs://{bucket_id(scope, key)}" for key in buckets},
        "tensorboards": {region: board.output("name") for region, board in boards.items()},
    }
    return apis


def _let_agents(
    apis: ProjectApis, team: Team, environment: Environment, repositories: Mapping[str, RepositoryRef]
) -> None:
    """Allow the Vertex AI agent of a team's own project to use the environment's attachments and images for jobs."""
    if team.project in (None, environment.project):
        return
    agent = apis.agents[AI_PLATFORM]
    for key, repository in repositories.items():
        grant = repository_grant(f"agents-vertex-{key}", repository, "roles/artifactregistry.reader", agent)
        apis.grant_agent(AI_PLATFORM, grant)
    attachments = attachment_project(environment)
    if attachments:
        role = custom_role("vertex_network", attachments)
        apis.grant_agent(AI_PLATFORM, kept_role("agents-vertex-network", attachments, role, agent))


def _further_apis(team: Team) -> Iterator[str]:
    """Yield the APIs that are needed only by some teams."""
    if team.secrets:
        yield SECRETS_API


def key_users(team: Team) -> tuple[str, ...]:
    """Return the APIs whose resources of the team are encrypted with the environment's key."""
    encrypted = {
        AI_PLATFORM: team.vertex.persistent_resources or team.vertex.tensorboards,
        STORAGE: team.buckets,
    }
    return tuple(api for api, resources in encrypted.items() if resources)


def _account(
    team: Team,
    environment: Environment,
    scope: Scope,
    buckets: Mapping[str, Resource],
    repositories: Mapping[str, RepositoryRef],
) -> TeamAccount:
    """Return the team's service account with the resources that it may use."""
    kubernetes = None
    if environment.clusters:  # a project without clusters has no pool of identities
        kubernetes = KubernetesAccount(project=environment.project, namespace=team.name, name=SERVICE_ACCOUNT)
    readable = dict(repositories)
    if environment.python_repository:
        readable[PYTHON_PACKAGES] = RepositoryRef(
            project=environment.project,
            location=environment.python_repository,
            repository_id=python_repository_id(team.environment),
        )
    return TeamAccount(
        scope=scope,
        buckets={key: bucket.output("name") for key, bucket in buckets.items()},
        members=team.members,
        tensorboard=bool(team.vertex.tensorboards),
        registry=team.vertex.registry,
        metrics=team.writes_metrics,
        repositories=readable,
        kubernetes=kubernetes,
    )


ENVIRONMENT_IMAGES = "images"
TEAM_IMAGES = "team-images"
PYTHON_PACKAGES = "python-packages"


def _repositories(team: Team, environment: Environment) -> dict[str, RepositoryRef]:
    """Return the repositories from which the team's jobs pull: the environment's and the team's own."""
    if environment.images is None:
        return {}
    ids = {
        ENVIRONMENT_IMAGES: repository_id(team.environment),
        TEAM_IMAGES: team_repository_id(team.environment, team.name),
    }
    location = environment.images.location
    return {
        key: RepositoryRef(project=environment.project, location=location, repository_id=image_repository_id)
        for key, image_repository_id in ids.items()
    }


def _add_images(plan: Plan, team: Team, environment: Environment, scope: Scope) -> dict[str, RepositoryRef]:
    """Add the team's image repository to the environment's project, which also has the nodes and other repositories."""
    repositories = _repositories(team, environment)
    if environment.images:
        images = repositories[TEAM_IMAGES]
        declared = image_repository(
            f"{TEAM_IMAGES}-repository",
            environment.images,
            replace(scope, project=images.project),
            images.repository_id,
            location=images.location,
        )
        created = plan.add(declared)
        # By the reference, grants wait for it.
        repositories[TEAM_IMAGES] = replace(images, repository_id=created.output("repository_id"))
    return repositories


def _let_members_connect(plan: Plan, team: Team, environment: Environment, scope: Scope) -> None:
    if team.shares:
        for caller in cluster_callers(scope, environment.project, team.members):
            plan.add(caller)


def _add_data_set_grants(
    plan: Plan, team: Team, environment: Environment, buckets: Mapping[str, Any], account: Resource
) -> None:
    """Add the service account's roles on the buckets of data sets, keyed by data set."""
    for key, bucket in buckets.items():
        writes = environment.data_sets[key].writer == team.name
        role: BucketRole = "roles/storage.objectUser" if writes else "roles/storage.objectViewer"
        for grant in bucket_grants(f"{declared_name('data_sets', key)}-access", bucket, role, account.output("member")):
            plan.add(grant)


def _data_set_buckets(team: Team, environment: Environment, created: Iterable[Resource]) -> dict[str, Any]:
    """Return the names of the buckets with data sets that a team reads, keyed by data set.

    If the team's stack creates the bucket, the name is an output of the bucket. Grants are then created after the
    bucket and deleted before it.
    """
    outputs = {bucket.inputs["name"]: bucket.output("name") for bucket in created}
    names: dict[str, Any] = {}
    for key, data in environment.data_sets.items():
        if data.bucket and data.readable_by(team.name):
            names[key] = outputs.get(data.bucket.name, data.bucket.name)
    return names


def _add_vertex(plan: Plan, team: Team, scope: Scope) -> dict[str, Resource]:
    """Add the team's Vertex AI resources, and return its TensorBoards keyed by region."""
    for key, resource in team.vertex.persistent_resources.items():
        name = declared_name("vertex.persistent_resources", key)
        component = plan.component("training-platform:index:PersistentResource", name)
        declared = component.add(persistent_resource(key, resource, scope))
        component.outputs = {"resource_id": declared.output("id")}
    return {region: plan.add(tensorboard(region, scope)) for region in team.vertex.tensorboards}


def _endpoint(team: Team, environment: Environment, cluster: str, outputs: Reference) -> Any:
    """Return a cluster's endpoint, which is known once the environment has deployed what the team needs there."""
    apis = entrance(environment)
    google_apis = apis.range if apis and not environment.open_egress else None
    flavors = tuple(team.shares[cluster])
    return compute(cluster_endpoint, outputs, team.environment, cluster, flavors, google_apis)


@dataclass(frozen=True, kw_only=True)
class _ClusterShare:
    """What a team has in one cluster: a namespace, queues with its share, and volumes on the instances in reach.

    ``outputs`` are the outputs of the environment's stack. The team's pods act as ``account``.
    """

    cluster: PlannedCluster
    team: Team
    scope: Scope
    outputs: Reference
    account: Resource

    def add(self) -> None:
        """Add everything that the team has in the cluster."""
        cluster = self.cluster
        team = self.team
        name = cluster.component.name
        notebooks = notebooks_of(cluster.spec, team.name)
        egress = egress_spec(team, cluster.environment)
        tenancy = cluster.add("training-platform:index:TeamNamespace", f"{name}-tenancy")
        namespace = team_namespace(tenancy, self._namespace(egress))
        flavors = (cluster.flavors[flavor] for flavor in team.shares[cluster.key])
        for template in claim_templates(tenancy.name, flavors, self.scope, namespace):
            tenancy.add(template)
        folders = self._folders(notebooks)
        queues = cluster.add("training-platform:index:TeamQueues", f"{name}-queues")
        team_queues(queues, team, cluster.key, cluster.flavors, scope=self.scope, namespace=namespace)
        if notebooks:
            team_notebooks(
                cluster.add("training-platform:jupyterhub:TeamNotebooks", f"{name}-notebooks", folders),
                self.scope,
                notebooks,
                cluster.environment.filestore[notebooks.filestore],
                address=self._address(notebooks.filestore),
                team=team.name,
                namespace=namespace,
                closed=egress is not None,
            )
        launch = team.wandb_launch.get(cluster.key)
        if launch:
            agent = cluster.add("training-platform:operators:LaunchAgent", declared_name("wandb_launch", cluster.key))
            chart = cluster.environment.charts.get(CHART)
            launch_agent(agent, self.scope, team.name, launch, namespace=namespace, chart=chart)
        for key, server in team.serving.get(cluster.key, {}).items():
            component_name = declared_name("serving", cluster.key, key)
            servers = cluster.add("training-platform:serving:ModelServer", component_name, [queues])
            flavor = cluster.flavors[server.flavor]
            model_server(
                servers,
                self.scope,
                key,
                server,
                team=team.name,
                flavor=flavor,
                namespace=namespace,
                confined=team.confined,
            )
        self._add_directories(namespace, folders)
        self._add_data_sets(namespace)

    def _folders(self, notebooks: Notebooks | None) -> list[Resource]:
        """Add the Jobs that create the team's folder on each shared instance, and return the Jobs."""
        cluster = self.cluster
        environment = cluster.environment
        instances: dict[str, list[str]] = {}
        for name, directory in sorted(self.team.directories.items()):
            instance_spec = environment.filestore[directory.filestore]
            if directory.of_folder(instance_spec) and reaches(instance_spec, cluster.spec):
                instances.setdefault(directory.filestore, []).append(name)
        if notebooks:
            instances.setdefault(notebooks.filestore, [])
        folders: list[Resource] = []
        for instance, directories in sorted(instances.items()):
            folder = team_folder(
                f"{cluster.component.name}-{instance}-folder-job",
                self.scope,
                environment.filestore[instance],
                address=self._address(instance),
                team=self.team.name,
                directories=directories,
                instance=instance,
                image={**IMAGES, **environment.node_images}["node-shell"],
            )
            folders.append(cluster.add_object(folder))
        return folders

    def _add_directories(self, namespace: Any, folders: Sequence[Resource]) -> None:
        """Add the volumes of directories on instances that are near enough to mount."""
        cluster = self.cluster
        for key, directory in self.team.directories.items():
            instance = cluster.environment.filestore[directory.filestore]
            if reaches(instance, cluster.spec):
                filestore_volume(
                    cluster.add(FILESTORE_VOLUME, declared_name("directories", key, cluster.key), folders),
                    self.scope,
                    instance,
                    address=self._address(directory.filestore),
                    namespace=namespace,
                    claim=key,
                    size_gib=directory.size_gib,
                    folder=self.team.name if directory.of_folder(instance) else "",
                )

    def _add_data_sets(self, namespace: Any) -> None:
        """Add the volumes of the data sets that the team reads in the cluster."""
        cluster = self.cluster
        environment = cluster.environment
        for key, data in environment.data_sets.items():
            mode = team_mode(data, environment, cluster.key, self.team.name)
            if mode:
                data_volume(
                    cluster.add(DATA_VOLUME, declared_name("data_sets", key, cluster.key)),
                    self.scope,
                    environment_scope(self.team.environment, environment),
                    environment,
                    key,
                    mode=mode,
                    namespace=namespace,
                    address=self._data_address(data),
                )

    def _namespace(self, egress: Mapping[str, Any] | None) -> NamespaceParts:
        """Return what the team's namespace in the cluster contains; ``egress`` limits the destinations of its pods."""
        team = self.team
        environment = self.cluster.environment
        flavors = self.cluster.flavors
        spec = self.cluster.spec
        key = self.cluster.key
        shares = team.shares[key]
        waiting = gated_chips(team, key, flavors) + waiting_chips(key, spec, team.name, flavors)
        return NamespaceParts(
            scope=self.scope.within(spec),
            team=team.name,
            members=team.members,
            google_service_account=self.account.output("email"),
            labels=namespace_labels(
                team.name,
                kinds_of(flavors[flavor] for flavor in shares),
                host_network=team.host_network,
                confined=team.confined,
            ),
            annotations=run_limit(team, environment),
            quota={
                **resource_quota(shares, flavors, waiting),
                **claim_limits(spec.storage_classes, team.name, map(tier_class, class_tiers(environment, spec))),
                **object_limits(spec),
            },
            egress=egress,
            hosts=host_spec(team, environment),
            kinds=job_kinds(spec),
            operators=network_policies(spec),
        )

    def _address(self, instance: str) -> Any:
        """Return the address of a Filestore instance of the environment."""
        return compute(filestore_ip, self.outputs, self.team.environment, instance)

    def _data_address(self, data: DataSetSpec) -> Any:
        """Return the address of the environment's instance that contains a data set; None if no instance does."""
        if data.filestore:
            return self._address(data.filestore.instance)
        if data.lustre is None or data.lustre.elsewhere:
            return None
        return compute(lustre_ip, self.outputs, self.team.environment, data.lustre.instance)


def cluster_endpoint(
    outputs: Mapping[str, Any], environment: str, cluster: str, flavors: Iterable[str], google_apis: str | None
) -> str:
    """Return a cluster's endpoint if the deployed environment has everything that the team needs in the cluster.

    ``google_apis`` is the address range to which Google API names resolve, if policies depend on it. Raises
    OutputsError.
    """
    deployed = parse_outputs(environment, outputs)
    if google_apis:
        deployed.check_google_apis(google_apis)
    return deployed.cluster_with(cluster, flavors).endpoint


def filestore_ip(outputs: Mapping[str, Any], environment: str, instance: str) -> str:
    """Return the address of a Filestore instance of the environment. Raises OutputsError."""
    return parse_outputs(environment, outputs).instance(instance).ip


def lustre_ip(outputs: Mapping[str, Any], environment: str, instance: str) -> str:
    """Return the address of a Managed Lustre instance of the environment. Raises OutputsError."""
    return parse_outputs(environment, outputs).lustre_instance(instance).ip
