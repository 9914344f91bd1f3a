"""Composes an environment stack: project, network, clusters with what is in them, Filestore, images, alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from modules.controllers import (
    JOBSET,
    KUEUE,
    Controller,
    ControllerMonitoring,
    ControllerMonitoringArgs,
    JobSet,
    JobSetArgs,
    Kueue,
    KueueArgs,
    Operator,
    OperatorArgs,
)
from modules.gke import (
    ClusterAccess,
    ClusterAccessArgs,
    ClusterPools,
    ClusterPoolsArgs,
    ExistingCluster,
    ExistingClusterArgs,
    GkeCluster,
    GkeClusterArgs,
    NodeServiceAccount,
    NodeServiceAccountArgs,
    SystemPool,
    SystemPoolArgs,
)
from modules.gpu_direct import GpuDirect, GpuDirectArgs
from modules.jupyterhub import HubGateway, HubGatewayArgs, JupyterHub, JupyterHubArgs
from modules.kubernetes_objects import cluster_provider
from modules.monitoring import Alerts, AlertsArgs, Budget, BudgetArgs, Dashboards
from modules.network import ClusterSubnet, ClusterSubnetArgs, ExistingNetwork, Network, NetworkArgs
from modules.project import (
    AI_PLATFORM,
    BACKUP_API,
    BINARY_API,
    BUDGET_API,
    DNS_API,
    ENVIRONMENT_APIS,
    ENVIRONMENT_KEY_USERS,
    IAP_API,
    KMS_API,
    LUSTRE_API,
    QUOTA_API,
    SECRETS_API,
    SERVICES_API,
    ProjectServices,
    ProjectServicesArgs,
    QuotaRequests,
    QuotaRequestsArgs,
    ServiceAgents,
    ServiceAgentsArgs,
    depend_on_agents,
    depend_on_services,
)
from modules.queues import ComputeClasses, ComputeClassesArgs, Flavors, FlavorsArgs
from modules.serving import MetricsAccount, MetricsAdapter, MetricsAdapterArgs
from modules.storage import (
    FilestoreInstance,
    FilestoreInstanceArgs,
    ImageRepository,
    ImageRepositoryArgs,
    LustreInstance,
    LustreInstanceArgs,
)
from modules.tenancy import Admission, AdmissionArgs
from modules.vertex import MetadataStore, VertexAttachment, VertexAttachmentArgs
from modules.volumes import DataDisk, DataVolume, DataVolumeArgs, FilestoreClass, FilestoreVolume, FilestoreVolumeArgs
from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import READ
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import DataSetSpec
from training_platform.config.names import cpu_pool_name, declared_name, name_in_cluster
from training_platform.resources.data_sets import notebook_data_sets, reads_lustre, team_data_sets
from training_platform.resources.filestore import cluster_classes
from training_platform.resources.gke import cluster_name
from training_platform.resources.kueue import priorities
from training_platform.resources.monitoring import BUDGET_NAME, NAME, platform_dashboard
from training_platform.resources.network import entrance, existing_network, existing_network_name
from training_platform.resources.operators import charted, job_kinds
from training_platform.resources.scope import Scope, environment_scope

HOME_CLAIM = "homes"


def build_environment(name: str, environment: Environment) -> dict[str, Any]:
    """Create everything of an environment stack and return what it exports (``resources/environment_outputs.py``)."""
    scope = environment_scope(name, environment)
    host_project = environment.host_project if environment.network and environment.network.grant_roles else None
    enable_apis(scope, (*ENVIRONMENT_APIS, *_further_apis(environment)), _key_users(environment), host_project)
    network = _network(scope, environment)
    nodes = NodeServiceAccount("nodes", NodeServiceAccountArgs(scope=scope))
    ClusterAccess("access", ClusterAccessArgs(scope=scope, admins=environment.admins))
    instances = {
        key: FilestoreInstance(
            declared_name("filestore", key),
            FilestoreInstanceArgs(
                scope=scope,
                key=key,
                spec=spec,
                network=network.network_id,
                services=network.services,
                services_range=network.services_range,
            ),
        )
        for key, spec in environment.filestore.items()
    }
    for region, addresses in environment.network_attachments.items():
        VertexAttachment(
            declared_name("network_attachments", region),
            VertexAttachmentArgs(scope=scope, region=region, addresses=addresses, network=network.network_id),
        )
    for region in environment.metadata_stores:
        MetadataStore(declared_name("metadata_stores", region), region, scope)
    lustre = {
        key: LustreInstance(
            declared_name("lustre", key),
            LustreInstanceArgs(
                scope=scope, key=key, spec=spec, network=network.network_id,
                services=[network.services] if network.services else [],
            ),
        )
        for key, spec in environment.lustre.items()
    }  # fmt: skip
    serving = any(spec.serving for spec in environment.clusters.values())
    metrics = MetricsAccount("metrics", scope) if serving else None
    clusters = {
        key: EnvironmentCluster(
            key,
            EnvironmentClusterArgs(
                scope=scope,
                environment=environment,
                spec=spec,
                network=network,
                nodes=nodes,
                instances=instances,
                lustre=lustre,
                metrics=metrics if spec.serving else None,
            ),
        )
        for key, spec in environment.clusters.items()
    }
    if metrics:
        metrics.let_in([cluster.gke for cluster in clusters.values()])
    for key, data in environment.data_sets.items():
        if data.hyperdisk_ml:
            DataDisk(declared_name("data_sets", key), key, data.hyperdisk_ml, scope)
    if environment.images:
        ImageRepository("images", ImageRepositoryArgs(scope=scope, spec=environment.images))
    if environment.quota_requests:
        QuotaRequests("quotas", QuotaRequestsArgs(scope=scope, requests=environment.quota_requests))
    names = {cluster_name(scope, key, spec): spec.software for key, spec in environment.clusters.items()}
    Alerts("alerts", AlertsArgs(scope=scope, spec=environment.alerts, clusters=names))
    Dashboards(NAME, platform_dashboard(environment, scope))
    if environment.budget and environment.billing_account:
        Budget(BUDGET_NAME, BudgetArgs(scope=scope, spec=environment.budget, account=environment.billing_account))
    return {
        "clusters": {
            key: {"endpoint": cluster.endpoint, "flavors": cluster.flavors} for key, cluster in clusters.items()
        },
        "filestore": {key: {"instance": each.instance, "ip": each.ip} for key, each in instances.items()},
        "lustre": {key: {"instance": each.instance, "ip": each.ip} for key, each in lustre.items()},
        "subnets": {
            region_of(environment.clusters[key].location): {"network": network.network_id, "subnet": cluster.subnet}
            for key, cluster in clusters.items()
            if cluster.subnet is not None
        },
        "google_apis": network.google_apis,
    }


def _network(scope: Scope, environment: Environment) -> Network | ExistingNetwork:
    """Return the network that clusters and instances join: the environment's own, or one that exists already."""
    if existing := existing_network(environment):
        return ExistingNetwork(
            network_id=existing,
            network_name=existing_network_name(environment) or existing,
            google_apis=found.range if (found := entrance(environment)) else None,
        )
    return Network(
        "network",
        NetworkArgs(
            scope=scope,
            regions=tuple(region_of(cluster.location) for cluster in environment.own_clusters.values()),
            nat_addresses=environment.nat_addresses,
            services_range=environment.private_services_range,
            lustre=bool(environment.lustre),
            google_apis=entrance(environment),
        ),
    )


def _further_apis(environment: Environment) -> Iterator[str]:
    """Yield the APIs that only some environments call."""
    clusters = environment.clusters.values()
    notebooks = [each.notebooks for each in clusters if each.notebooks]
    wanted = {
        QUOTA_API: environment.quota_requests,
        BUDGET_API: environment.budget,
        SERVICES_API: environment.private_services_range,
        LUSTRE_API: environment.lustre,
        DNS_API: entrance(environment) and environment.network is None,
        AI_PLATFORM: environment.metadata_stores,
        BACKUP_API: any(each.backups for each in environment.filestore.values()),
        SECRETS_API: any(each.oauth_secret.secret_manager for each in notebooks),
        IAP_API: any(each.gateway for each in notebooks),
        BINARY_API: any(each.binary_authorization for each in clusters),
    }
    yield from (api for api, reason in wanted.items() if reason)


def enable_apis(
    scope: Scope, apis: tuple[str, ...], key_users: tuple[str, ...], host_project: str | None = None
) -> None:
    """Enable a stack's APIs, and let every later resource of the stack wait for its own API and that API's agent.

    ``key_users`` are the APIs whose resources the stack encrypts, where the environment has keys; ``host_project`` is
    the one of a Shared VPC where GKE's agents are to get their roles.
    """
    apis = (*apis, KMS_API) if scope.keys else apis
    services = ProjectServices("apis", ProjectServicesArgs(scope=scope, apis=apis))
    pulumi.runtime.register_stack_transformation(depend_on_services(services))
    agents = ServiceAgents(
        "agents", ServiceAgentsArgs(scope=scope, services=services, key_users=key_users, host_project=host_project)
    )
    pulumi.runtime.register_stack_transformation(depend_on_agents(agents))


def _key_users(environment: Environment) -> tuple[str, ...]:
    """Return the APIs that encrypt what the environment has of them."""
    further = {LUSTRE_API: environment.lustre, AI_PLATFORM: environment.metadata_stores}
    return (*ENVIRONMENT_KEY_USERS, *(api for api, resources in further.items() if resources))


@dataclass(frozen=True, kw_only=True)
class EnvironmentClusterArgs:
    """A cluster's spec, and what it shares with the environment's other clusters."""

    scope: Scope
    environment: Environment
    spec: ClusterSpec
    network: Network | ExistingNetwork
    nodes: NodeServiceAccount
    instances: Mapping[str, FilestoreInstance]
    lustre: Mapping[str, LustreInstance]
    metrics: MetricsAccount | None = None  # where the cluster has model servers


def _operators(name: str, args: EnvironmentClusterArgs, opts: pulumi.ResourceOptions) -> None:
    """Install what runs other kinds of jobs than JobSets."""
    for operator in charted(args.spec):
        chart = args.environment.charts.get(operator)
        Operator(f"{name}-{operator}", OperatorArgs(operator=operator, chart=chart), opts)


class EnvironmentCluster(pulumi.ComponentResource):
    """A cluster with its subnet, its pools and all software in it; called by its key in the stack file."""

    endpoint: pulumi.Output[str]  # host name of the DNS-based control-plane endpoint
    gke: pulumi.Resource  # the cluster itself, without what is in it
    subnet: pulumi.Output[str] | None = None  # its id; None of a cluster that is somebody else's
    flavors: pulumi.Output[list[str]]  # names of the ResourceFlavors that are there

    def __init__(self, name: str, args: EnvironmentClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:environment:Cluster", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        cluster = self._cluster(name, args, child)
        self.endpoint, self.gke = cluster.endpoint, cluster
        system = self._cpu_pools(name, args, cluster)
        pools = ClusterPools(
            ClusterPoolsArgs(
                scope=args.scope, key=name, spec=args.spec, cluster=cluster.cluster_name, nodes=args.nodes
            ),
            child,
        )
        provider = cluster_provider(
            f"{name}-kubernetes",
            endpoint=cluster.endpoint,
            project=args.scope.project,
            location=args.spec.location,
            cluster_name=cluster_name(args.scope, name, args.spec),
            opts=child,
        )
        self._software(name, args, provider, system)
        self._gpu_direct(args, pools, pulumi.ResourceOptions(parent=self, providers=[provider]))
        self.register_outputs({"endpoint": self.endpoint})

    def _cluster(
        self, name: str, args: EnvironmentClusterArgs, child: pulumi.ResourceOptions
    ) -> GkeCluster | ExistingCluster:
        """Make the cluster with its subnet, or read the one that is somebody else's."""
        if args.spec.existing:
            found = ExistingClusterArgs(scope=args.scope, location=args.spec.location, cluster=args.spec.existing)
            return ExistingCluster(name, found, child)
        subnet = ClusterSubnet(
            name,
            ClusterSubnetArgs(
                scope=args.scope,
                spec=args.spec,
                network=args.network.network_id,
                node_service_account=args.nodes.email,
                host_project=args.environment.host_project,
            ),
            child,
        )
        self.subnet = subnet.subnetwork_id
        return GkeCluster(
            name,
            GkeClusterArgs(
                scope=args.scope,
                spec=args.spec,
                network=args.network.network_id,
                subnetwork=subnet.subnetwork_id,
                service_account=args.nodes,
                google_groups_domain=args.environment.google_groups_domain,
                lustre=reads_lustre(args.environment, name),
            ),
            child,
        )

    def _cpu_pools(
        self, name: str, args: EnvironmentClusterArgs, cluster: GkeCluster | ExistingCluster
    ) -> list[SystemPool]:
        return [
            SystemPool(
                cpu_pool_name(name, field),
                SystemPoolArgs(
                    scope=args.scope,
                    spec=pool,
                    cluster=cluster.cluster_name,
                    location=args.spec.location,
                    service_account=args.nodes,
                ),
                pulumi.ResourceOptions(parent=self),
            )
            for field, pool in args.spec.cpu_pools.items()
        ]

    def _gpu_direct(self, args: EnvironmentClusterArgs, pools: ClusterPools, opts: pulumi.ResourceOptions) -> None:
        for fabric in pools.fabrics.values():
            made = pools.networks[fabric.name]
            GpuDirect(
                f"{fabric.component}-pods",
                GpuDirectArgs(
                    scope=args.scope,
                    fabric=fabric,
                    networks=made.networks,
                    subnetworks=made.subnetworks,
                    images=args.environment.node_images,
                ),
                opts,
            )

    def _software(
        self, name: str, args: EnvironmentClusterArgs, provider: kubernetes.Provider, system: list[SystemPool]
    ) -> None:
        """Install the controllers once there are nodes for them, and their objects once they answer."""
        charts, software = args.environment.charts, args.spec.software

        def after(*resources: pulumi.Resource) -> pulumi.ResourceOptions:
            return pulumi.ResourceOptions(parent=self, providers=[provider], depends_on=list(resources))

        admission = AdmissionArgs(
            scope=args.scope,
            images=args.environment.node_images,
            sources=args.environment.image_sources,
            kinds=job_kinds(args.spec),
        )
        Admission(f"{name}-admission", admission, after())
        releases: list[tuple[Controller, pulumi.Resource]] = []
        if software.jobset == "installed":
            jobset = JobSet(f"{name}-jobset", JobSetArgs(chart=charts.get("jobset")), after(*system))
            releases.append((JOBSET, jobset))
        before = after(*[release for _, release in releases] or system)
        _operators(name, args, before)
        if software.kueue == "installed":
            kueue = Kueue(
                f"{name}-kueue",
                KueueArgs(
                    scope=args.scope.within(args.spec),
                    cluster_name=name,
                    cluster=args.spec,
                    chart=charts.get("kueue"),
                    fair_sharing=args.environment.fair_sharing,
                ),
                before,
            )
            releases.append((KUEUE, kueue))
        self.flavors = pulumi.Output.from_input([])
        if software.kueue != "none":
            last = [release for controller, release in releases if controller is KUEUE]
            self.flavors = self._flavors(name, args, after(*last))
        if args.spec.compute_classes:
            ComputeClasses(
                f"{name}-compute-classes",
                ComputeClassesArgs(
                    scope=args.scope, cluster_name=name, cluster=args.spec, service_account=args.nodes.email
                ),
                after(),
            )
        for controller, release in releases if software.metrics else ():
            ControllerMonitoring(
                f"{name}-{controller.name}-metrics",
                ControllerMonitoringArgs(scope=args.scope, controller=controller),
                after(release),
            )
        self._file_classes(name, args, after())
        if args.metrics:
            MetricsAdapter(
                f"{name}-metrics-adapter",
                MetricsAdapterArgs(scope=args.scope, account=args.metrics.email),
                after(*system),
            )
        self._notebooks(name, args, after(*system))

    def _file_classes(self, name: str, args: EnvironmentClusterArgs, opts: pulumi.ResourceOptions) -> None:
        """Make a StorageClass for each tier that the environment has instances of, and those of the stack file."""
        network = args.network.network_name
        for component, declared in cluster_classes(name, args.spec, args.scope, args.environment, network):
            FilestoreClass(component, declared, opts)

    def _flavors(
        self, name: str, args: EnvironmentClusterArgs, opts: pulumi.ResourceOptions
    ) -> pulumi.Output[list[str]]:
        flavors = Flavors(
            f"{name}-flavors",
            FlavorsArgs(
                scope=args.scope,
                cluster_name=name,
                cluster=args.spec,
                priorities=priorities(args.environment),
                cohorts=args.environment.cohorts,
            ),
            opts,
        )
        return flavors.names

    def _notebooks(self, name: str, args: EnvironmentClusterArgs, opts: pulumi.ResourceOptions) -> None:
        notebooks = args.spec.notebooks
        if notebooks is None:
            return
        data_sets = notebook_data_sets(args.environment, name)
        hub = JupyterHub(
            name_in_cluster(name, "notebooks"),
            JupyterHubArgs(
                scope=args.scope.within(args.spec),
                cluster_name=name,
                cluster=args.spec,
                notebooks=notebooks,
                home_claim=HOME_CLAIM,
                chart=args.environment.charts.get("jupyterhub"),
                data_sets=data_sets,
                team_data={team: team_data_sets(args.environment, name, team) for team in notebooks.teams},
                environment_data=tuple(args.environment.data_sets),
            ),
            opts,
        )
        if notebooks.gateway:
            HubGateway(
                f"{name_in_cluster(name, 'notebooks')}-gateway",
                HubGatewayArgs(
                    scope=args.scope, notebooks=notebooks, gateway=notebooks.gateway, namespace=hub.namespace
                ),
                opts,
            )
        for key in data_sets:
            spec = args.environment.data_sets[key]
            DataVolume(
                f"{declared_name('data_sets', key, name)}-notebooks",
                DataVolumeArgs(
                    scope=args.scope,
                    home=args.scope,
                    environment=args.environment,
                    key=key,
                    mode=READ,
                    namespace=hub.namespace,
                    address=self._address(spec, args),
                ),
                opts,
            )
        FilestoreVolume(
            f"{name_in_cluster(name, 'notebooks')}-homes",
            FilestoreVolumeArgs(
                scope=args.scope,
                key=notebooks.filestore,
                spec=args.environment.filestore[notebooks.filestore],
                ip=args.instances[notebooks.filestore].ip,
                namespace=hub.namespace,
                claim=HOME_CLAIM,
                size_gib=notebooks.home_gib,
            ),
            opts,
        )

    def _address(self, spec: DataSetSpec, args: EnvironmentClusterArgs) -> pulumi.Output[str] | None:
        """Return the address of the instance of this environment that a data set is on, if it is on one."""
        if spec.filestore:
            return args.instances[spec.filestore.instance].ip
        return args.lustre[spec.lustre.instance].ip if spec.lustre and not spec.lustre.elsewhere else None
