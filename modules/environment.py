"""Composes an environment stack: project, network, clusters with their contents, Filestore, images, alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from modules.controllers import (
    JOBSET,
    KUEUE,
    ControllerMonitoring,
    ControllerMonitoringArgs,
    JobSet,
    JobSetArgs,
    Kueue,
    KueueArgs,
    Operator,
    OperatorArgs,
    system_priority,
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
from training_platform.config.model.workloads import Notebooks
from training_platform.config.names import cpu_pool_name, declared_name, name_in_cluster
from training_platform.config.pools import cpu_pools
from training_platform.resources.admission import Bounds
from training_platform.resources.data_sets import notebook_data_sets, team_data_sets
from training_platform.resources.environment import EnvironmentParts
from training_platform.resources.filestore import cluster_classes
from training_platform.resources.gke import cluster_name
from training_platform.resources.kueue import priorities
from training_platform.resources.monitoring import BUDGET_NAME, NAME, platform_dashboard
from training_platform.resources.network import entrance, existing_network
from training_platform.resources.operators import charted, job_kinds
from training_platform.resources.scope import Scope

HOME_CLAIM = "homes"


def build_environment(name: str, environment: Environment) -> dict[str, Any]:
    """Create everything of an environment stack and return its exports (``resources/environment_outputs.py``)."""
    parts = EnvironmentParts(name, environment)
    scope = parts.scope
    host_project = environment.host_project if environment.network and environment.network.grant_roles else None
    enable_apis(scope, (*ENVIRONMENT_APIS, *_further_apis(environment)), _key_users(environment), host_project)
    network = _network(parts)
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
    services = [network.services] if network.services else []
    lustre = {
        key: LustreInstance(
            declared_name("lustre", key),
            LustreInstanceArgs(scope=scope, key=key, spec=spec, network=network.network_id, services=services),
        )
        for key, spec in environment.lustre.items()
    }
    metrics = MetricsAccount("metrics", scope) if parts.serving else None
    shared = SharedParts(parts=parts, network=network, nodes=nodes, instances=instances, lustre=lustre, metrics=metrics)
    clusters = {key: EnvironmentCluster(key, spec, shared) for key, spec in environment.clusters.items()}
    if metrics:
        metrics.let_in([cluster.gke for cluster in clusters.values()])
    for key, disk in parts.data_disks.items():
        DataDisk(declared_name("data_sets", key), key, disk, scope)
    if environment.images:
        ImageRepository("images", ImageRepositoryArgs(scope=scope, spec=environment.images))
    if environment.quota_requests:
        QuotaRequests("quotas", QuotaRequestsArgs(scope=scope, requests=environment.quota_requests))
    Alerts("alerts", AlertsArgs(scope=scope, spec=environment.alerts, clusters=parts.watched_clusters))
    Dashboards(NAME, platform_dashboard(environment, scope))
    if parts.budget:
        spec, account = parts.budget
        Budget(BUDGET_NAME, BudgetArgs(scope=scope, spec=spec, account=account))
    return {
        "clusters": {
            key: {"endpoint": cluster.endpoint, "flavors": cluster.flavors} for key, cluster in clusters.items()
        },
        "filestore": {key: {"instance": share.instance, "ip": share.ip} for key, share in instances.items()},
        "lustre": {key: {"instance": share.instance, "ip": share.ip} for key, share in lustre.items()},
        "subnets": {
            region_of(environment.clusters[key].location): {"network": network.network_id, "subnet": cluster.subnet}
            for key, cluster in clusters.items()
            if cluster.subnet is not None
        },
        "google_apis": network.google_apis,
    }


def _network(parts: EnvironmentParts) -> Network | ExistingNetwork:
    """Return the network that clusters and instances join: the environment's own, or one that exists already."""
    if parts.network:
        return Network("network", NetworkArgs(scope=parts.scope, **vars(parts.network)))
    apis = entrance(parts.environment)
    return ExistingNetwork(
        network_id=str(existing_network(parts.environment)),
        network_name=parts.driver_network,
        google_apis=apis.range if apis else None,
    )


def _further_apis(environment: Environment) -> Iterator[str]:
    """Yield the APIs that only some environments call."""
    clusters = environment.clusters.values()
    notebooks = [cluster.notebooks for cluster in clusters if cluster.notebooks]
    wanted = {
        QUOTA_API: environment.quota_requests,
        BUDGET_API: environment.budget,
        SERVICES_API: environment.private_services_range,
        LUSTRE_API: environment.lustre,
        DNS_API: entrance(environment) and environment.network is None,
        AI_PLATFORM: environment.metadata_stores,
        BACKUP_API: any(share.backups for share in environment.filestore.values()),
        SECRETS_API: any(hub.oauth_secret.secret_manager for hub in notebooks),
        IAP_API: any(hub.gateway for hub in notebooks),
        BINARY_API: any(cluster.binary_authorization for cluster in clusters),
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
    """Return the APIs that encrypt resources of the environment."""
    further = {LUSTRE_API: environment.lustre, AI_PLATFORM: environment.metadata_stores}
    return (*ENVIRONMENT_KEY_USERS, *(api for api, resources in further.items() if resources))


@dataclass(frozen=True, kw_only=True)
class SharedParts:
    """The common resources of an environment's clusters."""

    parts: EnvironmentParts
    network: Network | ExistingNetwork
    nodes: NodeServiceAccount
    instances: Mapping[str, FilestoreInstance]
    lustre: Mapping[str, LustreInstance]
    metrics: MetricsAccount | None  # where a cluster has model servers

    def address(self, data: DataSetSpec) -> pulumi.Output[str] | None:
        """Return the address of the environment's instance that a data set is on, if it is on one."""
        if data.filestore:
            return self.instances[data.filestore.instance].ip
        return self.lustre[data.lustre.instance].ip if data.lustre and not data.lustre.elsewhere else None


class EnvironmentCluster(pulumi.ComponentResource):
    """A cluster with its subnet, its pools and all software in it; called by its key in the stack file."""

    endpoint: pulumi.Output[str]  # host name of the DNS-based control-plane endpoint
    gke: GkeCluster | ExistingCluster  # without the objects in the cluster
    subnet: pulumi.Output[str] | None = None  # its id; None of a cluster that is somebody else's
    flavors: pulumi.Output[list[str]]  # names of the ResourceFlavors that are there

    def __init__(
        self, name: str, spec: ClusterSpec, shared: SharedParts, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("training-platform:environment:Cluster", name, {}, opts)
        self.name, self.spec, self.shared = name, spec, shared
        self.environment, self.scope = shared.parts.environment, shared.parts.scope
        self.child = pulumi.ResourceOptions(parent=self)
        self.gke = self._cluster()
        self.endpoint = self.gke.endpoint
        system: list[SystemPool] = []
        for pool in cpu_pools(spec):
            args = SystemPoolArgs(
                scope=self.scope,
                pool=pool,
                cluster=self.gke.cluster_name,
                location=spec.location,
                service_account=shared.nodes,
            )
            # The system pool, the last, takes no other pods any more once they have a place.
            after = list(system) if pool.path == ("system_pool",) else []
            opts = pulumi.ResourceOptions(parent=self, depends_on=after)
            system.append(SystemPool(cpu_pool_name(name, pool.path), args, opts))
        pools = ClusterPools(
            ClusterPoolsArgs(scope=self.scope, key=name, spec=spec, cluster=self.gke.cluster_name, nodes=shared.nodes),
            self.child,
        )
        self.provider = cluster_provider(
            f"{name}-kubernetes",
            endpoint=self.endpoint,
            project=self.scope.project,
            location=spec.location,
            cluster_name=cluster_name(self.scope, name, spec),
            opts=self.child,
        )
        self._software(system)
        for fabric in pools.fabrics.values():
            networks = pools.networks[fabric.name]
            GpuDirect(
                f"{fabric.component}-pods",
                GpuDirectArgs(
                    scope=self.scope,
                    fabric=fabric,
                    networks=networks.networks,
                    subnetworks=networks.subnetworks,
                    images=self.environment.node_images,
                ),
                self._after(),
            )
        self.register_outputs({"endpoint": self.endpoint})

    def _cluster(self) -> GkeCluster | ExistingCluster:
        """Create the cluster with its subnet, or read the one that is somebody else's."""
        name, spec, scope, shared = self.name, self.spec, self.scope, self.shared
        if spec.existing:
            existing = ExistingClusterArgs(scope=scope, location=spec.location, cluster=spec.existing)
            return ExistingCluster(name, existing, self.child)
        subnet = ClusterSubnet(
            name,
            ClusterSubnetArgs(
                scope=scope,
                spec=spec,
                network=shared.network.network_id,
                node_service_account=shared.nodes.email,
                host_project=self.environment.host_project,
            ),
            self.child,
        )
        self.subnet = subnet.subnetwork_id
        return GkeCluster(
            name,
            GkeClusterArgs(
                scope=scope,
                spec=spec,
                network=shared.network.network_id,
                subnetwork=subnet.subnetwork_id,
                service_account=shared.nodes,
                **shared.parts.joined(name),
            ),
            self.child,
        )

    def _after(self, *resources: pulumi.Resource) -> pulumi.ResourceOptions:
        """Return the options of objects in the cluster that wait for resources."""
        return pulumi.ResourceOptions(parent=self, providers=[self.provider], depends_on=list(resources))

    def _controllers(self, system: list[pulumi.Resource]) -> dict[str, pulumi.Resource]:
        """Install the controllers once there are nodes for them; return the releases of JobSet and Kueue by name."""
        name, spec, environment, scope = self.name, self.spec, self.environment, self.scope
        charts, software = environment.charts, spec.software
        admission = AdmissionArgs(
            scope=scope,
            images=environment.node_images,
            bounds=Bounds(environment.max_grace_seconds, priorities(environment)),
            sources=environment.image_sources,
            kinds=job_kinds(spec),
        )
        Admission(f"{name}-admission", admission, self._after())
        releases: dict[str, pulumi.Resource] = {}
        if software.jobset == "installed":
            args = JobSetArgs(chart=charts.get("jobset"))
            releases[JOBSET.name] = JobSet(f"{name}-jobset", args, self._after(*system))
        before = self._after(*(releases.values() or system))
        for operator in charted(spec):
            Operator(f"{name}-{operator}", OperatorArgs(operator=operator, chart=charts.get(operator)), before)
        if software.kueue == "installed":
            releases[KUEUE.name] = Kueue(
                f"{name}-kueue",
                KueueArgs(
                    scope=scope.within(spec),
                    cluster_name=name,
                    cluster=spec,
                    chart=charts.get("kueue"),
                    fair_sharing=environment.fair_sharing,
                ),
                before,
            )
        return releases

    def _software(self, pools: list[SystemPool]) -> None:
        """Install the controllers, and their objects once they answer."""
        name, spec, environment, scope = self.name, self.spec, self.environment, self.scope
        system = [*pools, system_priority(f"{name}-system-priority", scope, self._after())]
        software, releases = spec.software, self._controllers(system)
        self.flavors = pulumi.Output.from_input([])
        if software.kueue != "none":
            self.flavors = Flavors(
                f"{name}-flavors",
                FlavorsArgs(
                    scope=scope,
                    cluster_name=name,
                    cluster=spec,
                    priorities=priorities(environment),
                    cohorts=environment.cohorts,
                ),
                self._after(*([kueue] if (kueue := releases.get(KUEUE.name)) else [])),
            ).names
        if spec.compute_classes:
            ComputeClasses(
                f"{name}-compute-classes",
                ComputeClassesArgs(
                    scope=scope, cluster_name=name, cluster=spec, service_account=self.shared.nodes.email
                ),
                self._after(),
            )
        for controller in (JOBSET, KUEUE) if software.metrics else ():
            if release := releases.get(controller.name):
                scrape = ControllerMonitoringArgs(scope=scope, controller=controller)
                ControllerMonitoring(f"{name}-{controller.name}-metrics", scrape, self._after(release))
        for component, declared in cluster_classes(name, spec, scope, environment, self.shared.network.network_name):
            FilestoreClass(component, declared, self._after())
        if spec.serving and self.shared.metrics:
            adapter = MetricsAdapterArgs(scope=scope, account=self.shared.metrics.email)
            MetricsAdapter(f"{name}-metrics-adapter", adapter, self._after(*system))
        if spec.notebooks:
            self._notebooks(spec.notebooks, self._after(*system))

    def _notebooks(self, notebooks: Notebooks, opts: pulumi.ResourceOptions) -> None:
        """Install JupyterHub, with the volumes of homes and data sets."""
        name, environment, scope = self.name, self.environment, self.scope
        data_sets, component = notebook_data_sets(environment, name), name_in_cluster(name, "notebooks")
        hub = JupyterHub(
            component,
            JupyterHubArgs(
                scope=scope.within(self.spec),
                cluster_name=name,
                cluster=self.spec,
                notebooks=notebooks,
                home_claim=HOME_CLAIM,
                chart=environment.charts.get("jupyterhub"),
                data_sets=data_sets,
                team_data={team: team_data_sets(environment, name, team) for team in notebooks.teams},
                environment_data=tuple(environment.data_sets),
            ),
            opts,
        )
        if notebooks.gateway:
            gateway = HubGatewayArgs(
                scope=scope, notebooks=notebooks, gateway=notebooks.gateway, namespace=hub.namespace
            )
            HubGateway(f"{component}-gateway", gateway, opts)
        for key in data_sets:
            DataVolume(
                f"{declared_name('data_sets', key, name)}-notebooks",
                DataVolumeArgs(
                    scope=scope,
                    home=scope,
                    environment=environment,
                    key=key,
                    mode=READ,
                    namespace=hub.namespace,
                    address=self.shared.address(environment.data_sets[key]),
                ),
                opts,
            )
        FilestoreVolume(
            f"{component}-homes",
            FilestoreVolumeArgs(
                scope=scope,
                key=notebooks.filestore,
                spec=environment.filestore[notebooks.filestore],
                ip=self.shared.instances[notebooks.filestore].ip,
                namespace=hub.namespace,
                claim=HOME_CLAIM,
                size_gib=notebooks.home_gib,
            ),
            opts,
        )
