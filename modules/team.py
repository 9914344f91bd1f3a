"""Composes a team stack: the team's queues, namespaces and volumes in the clusters, its buckets, its Vertex AI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pulumi

from modules.environment import enable_apis
from modules.jupyterhub import TeamNotebooks, TeamNotebooksArgs
from modules.kubernetes_objects import cluster_provider
from modules.launch_agent import LaunchAgent, LaunchAgentArgs
from modules.monitoring import Budget, BudgetArgs, Dashboards
from modules.project import AI_PLATFORM, SECRETS_API, STORAGE, TEAM_APIS, WORKBENCH_API
from modules.queues import TeamQueues, TeamQueuesArgs
from modules.serving import ModelServer, ModelServerArgs
from modules.storage import Bucket, BucketArgs, Secret, SecretArgs
from modules.team_account import (
    KubernetesAccount,
    RepositoryRef,
    TeamServiceAccount,
    TeamServiceAccountArgs,
    grant_bucket,
)
from modules.tenancy import ClusterConnect, ClusterConnectArgs, TeamNamespace, TeamNamespaceArgs
from modules.vertex import (
    PersistentResource,
    PersistentResourceArgs,
    Tensorboard,
    TensorboardArgs,
    Workbench,
    WorkbenchArgs,
)
from modules.volumes import DataVolume, DataVolumeArgs, FilestoreVolume, FilestoreVolumeArgs
from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import reaches, with_own_data
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import PROJECT
from training_platform.config.model.storage import DataSetSpec
from training_platform.config.model.team import Team
from training_platform.config.names import declared_name
from training_platform.config.pools import Flavor
from training_platform.config.workspace import Workspace
from training_platform.resources.data_sets import team_mode
from training_platform.resources.environment_outputs import (
    EnvironmentOutputs,
    OutputsError,
    SubnetOutputs,
    parse_outputs,
)
from training_platform.resources.filestore import claim_limits, class_tiers, tier_class
from training_platform.resources.gke import cluster_name
from training_platform.resources.gpu_direct import kinds_of
from training_platform.resources.monitoring import BUDGET_NAME, NAME, stack_budget, team_dashboard
from training_platform.resources.network import entrance
from training_platform.resources.notebooks import TEAM_HOMES, notebooks_of, waiting_chips
from training_platform.resources.operators import CHART, job_kinds, network_policies, object_limits
from training_platform.resources.scope import SERVICE_ACCOUNT, Scope, environment_scope, repository_id, team_scope
from training_platform.resources.serving import gated_chips
from training_platform.resources.tenancy import (
    egress_spec,
    host_spec,
    namespace_labels,
    resource_quota,
    run_limit,
    shared_claims,
)

Whole = TypeVar("Whole")
Value = TypeVar("Value")


def build_team(team: Team, environment: Environment, workspace: Workspace) -> dict[str, Any]:
    """Create everything of a team stack and return its exports: where its jobs run and write to."""
    environment = with_own_data(team, environment)
    scope = team_scope(team, environment)
    enable_apis(scope, (*TEAM_APIS, *_further_apis(team)), key_users(team))
    outputs = environment_outputs(team.environment)
    buckets = {
        key: Bucket(declared_name("buckets", key), BucketArgs(scope=scope, key=key, spec=spec))
        for key, spec in team.buckets.items()
    }
    account = TeamServiceAccount(
        "account",
        TeamServiceAccountArgs(
            scope=scope,
            buckets={key: bucket.bucket_name for key, bucket in buckets.items()},
            members=team.members,
            tensorboard=bool(team.vertex.tensorboards),
            registry=team.vertex.registry,
            repository=RepositoryRef(
                project=environment.project,
                location=environment.images.location,
                repository_id=repository_id(team.environment),
            )
            if environment.images
            else None,
            # A project without clusters has no pool of identities.
            kubernetes=KubernetesAccount(project=environment.project, namespace=team.name, name=SERVICE_ACCOUNT)
            if environment.clusters
            else None,
        ),
    )
    if team.shares:
        ClusterConnect("connect", ClusterConnectArgs(scope=scope, project=environment.project, members=team.members))
    for key, data in environment.data_sets.items():
        if data.bucket and data.readable_by(team.name):
            grant_bucket(
                f"{declared_name('data_sets', key)}-access",
                data.bucket.name,
                "roles/storage.objectUser" if data.writer == team.name else "roles/storage.objectViewer",
                account.member,
                pulumi.ResourceOptions(),
            )
    if budget := stack_budget(team.budget, environment):
        spec, account_id = budget
        Budget(BUDGET_NAME, BudgetArgs(scope=scope, spec=spec, account=account_id))
    Dashboards(NAME, team_dashboard(team, environment, scope))
    for key in team.secrets:
        Secret(declared_name("secrets", key), SecretArgs(scope=scope, key=key, reader=account.member))
    for cluster in team.shares:
        TeamCluster(
            declared_name("shares", cluster),
            TeamClusterArgs(
                scope=scope,
                cluster=cluster,
                team=team,
                environment=environment,
                flavors=workspace.flavors(team.environment, cluster),
                outputs=outputs,
                service_account=account.email,
            ),
        )
    for key, resource in team.vertex.persistent_resources.items():
        PersistentResource(
            declared_name("vertex.persistent_resources", key),
            PersistentResourceArgs(scope=scope, key=key, spec=resource),
        )
    for key, instance in team.vertex.workbench.items():
        near = None if instance.subnet else _subnet(region_of(instance.zone), outputs)
        Workbench(
            declared_name("vertex.workbench", key),
            WorkbenchArgs(scope=scope, key=key, spec=instance, near=near, account=[account]),
        )
    boards = {
        region: Tensorboard(f"tensorboard-{region}", TensorboardArgs(scope=scope, region=region))
        for region in team.vertex.tensorboards
    }
    return {
        "service_account": account.email,
        "buckets": {key: bucket.url for key, bucket in buckets.items()},
        "tensorboards": {region: board.resource_name for region, board in boards.items()},
    }


def _further_apis(team: Team) -> Iterator[str]:
    """Yield the APIs that only some teams call."""
    wanted = {SECRETS_API: team.secrets, WORKBENCH_API: team.vertex.workbench}
    yield from (api for api, reason in wanted.items() if reason)


def key_users(team: Team) -> tuple[str, ...]:
    """Return the APIs that encrypt resources of the team."""
    used = {
        AI_PLATFORM: team.vertex.persistent_resources or team.vertex.tensorboards,
        STORAGE: team.buckets,
        WORKBENCH_API: team.vertex.workbench,
    }
    return tuple(api for api, resources in used.items() if resources)


def environment_outputs(environment: str) -> pulumi.Output[EnvironmentOutputs]:
    """Return the exports of a deployed environment, read as a whole, so that one sentence names all that is missing."""
    reference = pulumi.StackReference(f"{pulumi.get_organization()}/{PROJECT}/{environment}")
    return _read(reference.outputs, lambda outputs: parse_outputs(environment, outputs))


def _read(outputs: pulumi.Output[Whole], read: Callable[[Whole], Value]) -> pulumi.Output[Value]:
    """Read outputs; a missing one ends the program with one sentence, without the traceback of other errors."""

    def read_or_refuse(whole: Whole) -> Value:
        try:
            return read(whole)
        except OutputsError as error:
            raise pulumi.RunError(str(error)) from error

    return outputs.apply(read_or_refuse)


@dataclass(frozen=True, kw_only=True)
class TeamClusterArgs:
    """A cluster that the team has a share of; ``flavors`` are all of that cluster's."""

    scope: Scope
    cluster: str
    team: Team
    environment: Environment
    flavors: dict[str, Flavor]
    outputs: pulumi.Output[EnvironmentOutputs]
    service_account: pulumi.Output[str]


class TeamCluster(pulumi.ComponentResource):
    """A team's part of one cluster: a namespace, queues with its share, and volumes where Filestore is near."""

    def __init__(self, name: str, args: TeamClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:team:Cluster", name, {}, opts)
        cluster, team = args.cluster, args.team
        spec, home = args.environment.clusters[cluster], environment_scope(team.environment, args.environment)
        provider = cluster_provider(
            f"{name}-kubernetes",
            endpoint=_read(args.outputs, lambda outputs: _endpoint(outputs, args)),
            project=home.project,
            location=spec.location,
            cluster_name=cluster_name(home, cluster, spec),
            opts=pulumi.ResourceOptions(parent=self),
        )
        inside = pulumi.ResourceOptions(parent=self, providers=[provider])
        notebooks, egress = notebooks_of(spec, team.name), egress_spec(team, args.environment)
        waiting = gated_chips(team, cluster, args.flavors) + waiting_chips(cluster, spec, team.name, args.flavors)
        namespace = TeamNamespace(
            f"{name}-tenancy",
            TeamNamespaceArgs(
                scope=args.scope.within(spec),
                team=team.name,
                members=team.members,
                google_service_account=args.service_account,
                labels=namespace_labels(
                    team.name,
                    kinds_of(args.flavors[flavor] for flavor in team.shares[cluster]),
                    host_network=team.host_network,
                ),
                annotations={
                    **shared_claims(team.directories, args.environment.filestore, [TEAM_HOMES] if notebooks else []),
                    **run_limit(team, args.environment),
                },
                quota={
                    **resource_quota(team.shares[cluster], args.flavors, waiting),
                    **claim_limits(
                        spec.storage_classes, team.name, map(tier_class, class_tiers(args.environment, spec))
                    ),
                    **object_limits(spec),
                },
                egress=egress,
                hosts=host_spec(team, args.environment),
                kinds=job_kinds(spec),
                operators=network_policies(spec),
            ),
            inside,
        )
        queues = TeamQueues(
            f"{name}-queues",
            TeamQueuesArgs(
                scope=args.scope,
                team=team,
                cluster=cluster,
                flavors=args.flavors,
                namespace=namespace.namespace,
            ),
            inside,
        )
        if notebooks:
            TeamNotebooks(
                f"{name}-notebooks",
                TeamNotebooksArgs(
                    scope=args.scope,
                    notebooks=notebooks,
                    filestore=args.environment.filestore[notebooks.filestore],
                    ip=_address(notebooks.filestore, args.outputs),
                    namespace=namespace.namespace,
                    closed=egress is not None,
                ),
                inside,
            )
        if launch := team.wandb_launch.get(cluster):
            LaunchAgent(
                declared_name("wandb_launch", cluster),
                LaunchAgentArgs(
                    scope=args.scope,
                    team=team.name,
                    spec=launch,
                    namespace=namespace.namespace,
                    chart=args.environment.charts.get(CHART),
                ),
                inside,
            )
        for key, server in team.serving.get(cluster, {}).items():
            ModelServer(
                declared_name("serving", cluster, key),
                ModelServerArgs(
                    scope=args.scope,
                    key=key,
                    team=team.name,
                    spec=server,
                    flavor=args.flavors[server.flavor],
                    namespace=namespace.namespace,
                ),
                pulumi.ResourceOptions(parent=self, providers=[provider], depends_on=[queues]),
            )
        for key, directory in team.directories.items():
            instance = args.environment.filestore[directory.filestore]
            if reaches(instance, spec):  # others are too far to mount
                FilestoreVolume(
                    declared_name("directories", key, cluster),
                    FilestoreVolumeArgs(
                        scope=args.scope,
                        key=directory.filestore,
                        spec=instance,
                        ip=_address(directory.filestore, args.outputs),
                        namespace=namespace.namespace,
                        claim=key,
                        size_gib=directory.size_gib,
                    ),
                    inside,
                )
        for key, data in args.environment.data_sets.items():
            if mode := team_mode(data, args.environment, cluster, team.name):
                DataVolume(
                    declared_name("data_sets", key, cluster),
                    DataVolumeArgs(
                        scope=args.scope,
                        home=home,
                        environment=args.environment,
                        key=key,
                        mode=mode,
                        namespace=namespace.namespace,
                        address=_data_address(data, args.outputs),
                    ),
                    inside,
                )
        self.register_outputs({})


def _endpoint(outputs: EnvironmentOutputs, args: TeamClusterArgs) -> str:
    """Return a cluster's endpoint, where all is there that the team's part of the cluster rests on."""
    wanted = entrance(args.environment)
    if wanted and not args.environment.open_egress:
        outputs.check_google_apis(wanted.range)
    return outputs.cluster_with(args.cluster, args.team.shares[args.cluster]).endpoint


def _address(instance: str, outputs: pulumi.Output[EnvironmentOutputs]) -> pulumi.Output[str]:
    """Return the address of a Filestore instance of the environment."""
    return _read(outputs, lambda whole: whole.instance(instance).ip)


def _subnet(region: str, outputs: pulumi.Output[EnvironmentOutputs]) -> pulumi.Output[SubnetOutputs]:
    """Return the environment's subnet in a region."""
    return _read(outputs, lambda whole: whole.subnet(region))


def _data_address(data: DataSetSpec, outputs: pulumi.Output[EnvironmentOutputs]) -> pulumi.Output[str] | None:
    """Return the address of the environment's instance that a data set is on, if it is on one."""
    if data.filestore:
        return _address(data.filestore.instance, outputs)
    if data.lustre is None or data.lustre.elsewhere:
        return None
    name = data.lustre.instance
    return _read(outputs, lambda whole: whole.lustre_instance(name).ip)
