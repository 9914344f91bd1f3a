"""The plan of an environment stack: project, network, clusters with their contents, Filestore, images, alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from training_platform.catalog.locations import region_of
from training_platform.config.data_sets import READ
from training_platform.config.expansion import HEADS_NAME, Flavor
from training_platform.config.gpu_fabric import claims_devices, gpu_fabrics
from training_platform.config.model.environment import Environment, ImageRepositorySpec
from training_platform.config.model.node_pool import POOL_LABEL
from training_platform.config.model.storage import DataSetSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.config.names import declared_name, name_in_cluster, vpc_name
from training_platform.resources.admission_policy import Bounds, ExclusiveNodes
from training_platform.resources.cluster import ClusterResources, cluster_resources
from training_platform.resources.compute_classes import compute_classes
from training_platform.resources.controllers import (
    JOBSET,
    KUEUE,
    controller_monitoring,
    jobset,
    kueue,
    operator,
    system_priority,
)
from training_platform.resources.custom_roles import custom_role
from training_platform.resources.data_sets import data_disk, notebook_data_sets, reads_lustre, team_data_sets
from training_platform.resources.filestore import PlannedInstance, cluster_classes, filestore_resources
from training_platform.resources.gke import (
    NodeAccount,
    cluster_admins,
    cluster_name,
    kubeconfig,
    member_key,
    node_account_resources,
)
from training_platform.resources.gpu_software import add_installers, gpu_network_objects
from training_platform.resources.jupyterhub import hub_gateway, jupyterhub
from training_platform.resources.kubernetes_objects import (
    RBAC,
    ROLE,
    ROLE_BINDING,
    SECRET_OBJECT,
    binding,
    kubernetes_object,
    rules_of_role,
)
from training_platform.resources.kueue import priorities
from training_platform.resources.metrics_adapter import let_pods_act, metrics_account, metrics_adapter
from training_platform.resources.monitoring import (
    alert_resources,
    budget_resources,
    platform_dashboard,
    stack_budget,
)
from training_platform.resources.network import (
    NetworkParts,
    NetworkResources,
    attachment_project,
    attachment_resources,
    entrance,
    existing_network,
    existing_network_name,
    network_resources,
)
from training_platform.resources.operators import charted, job_kinds
from training_platform.resources.plan import Component, Node, Plan, Resource, compute
from training_platform.resources.planned_cluster import PlannedCluster
from training_platform.resources.project import (
    AI_PLATFORM,
    BACKUP_API,
    BINARY_API,
    BUDGET_API,
    DNS_API,
    ENVIRONMENT_APIS,
    ENVIRONMENT_KEY_USERS,
    GKE_API,
    IAP_API,
    LUSTRE_API,
    QUOTA_API,
    SECRETS_API,
    SERVICES_API,
    ProjectApis,
    kept_role,
    quota_requests,
)
from training_platform.resources.queues import flavor_resources
from training_platform.resources.resource_types import RELEASE
from training_platform.resources.scope import Scope, environment_scope
from training_platform.resources.storage import (
    image_repositories,
    instance_id,
    lustre_address,
    lustre_instance,
    python_repository,
)
from training_platform.resources.team_account import RepositoryRef, repository_grant
from training_platform.resources.team_logs import vertex_logs
from training_platform.resources.tenancy import admission
from training_platform.resources.volumes import DATA_VOLUME, FILESTORE_VOLUME, data_volume, filestore_volume

HOME_CLAIM = "homes"
NIGHTLY = "nightly"  # the name of the drift account's Role in a namespace, and of its binding


def add_environment(plan: Plan, environment: Environment, flavors: Mapping[str, Mapping[str, Flavor]]) -> ProjectApis:
    """Add an environment's resources to the plan of its stack, and return the APIs that resources must wait for.

    ``flavors`` are the flavors of its clusters, keyed by cluster and then by name. ``resources/environment_outputs.py``
    reads the outputs.
    """
    scope = environment_scope(plan.name, environment)
    apis = ProjectApis(
        plan,
        scope,
        (*ENVIRONMENT_APIS, *_further_apis(environment)),
        _key_users(environment),
        environment.granted_host_project,
    )
    _let_vertex_attach(environment, apis)
    shared = _shared_resources(plan, environment, scope)
    clusters = {key: _add_cluster(plan, key, shared, flavors[key]) for key in environment.clusters}
    if shared.metrics is not None:
        gke_clusters = [cluster.resources.cluster for cluster in clusters.values()]
        let_pods_act(shared.metrics.component, shared.metrics.account, scope, gke_clusters)
    _further_resources(plan, environment, scope, apis)
    plan.outputs = {
        "project": scope.project,
        "network": shared.network.network_id,
        "clusters": {
            key: {
                "name": cluster.resources.name,
                "endpoint": cluster.resources.endpoint,
                "kubeconfig": compute(kubeconfig, cluster.resources.endpoint),
                "flavors": cluster.flavors,
            }
            for key, cluster in clusters.items()
        },
        "filestore": {key: instance._asdict() for key, instance in shared.instances.items()},
        "lustre": {key: instance._asdict() for key, instance in shared.lustre.items()},
        "google_apis": shared.network.google_apis,
    }
    return apis


def _further_apis(environment: Environment) -> Iterator[str]:
    """Yield the APIs that are needed only by some environments."""
    clusters = environment.clusters.values()
    notebooks = [cluster.notebooks for cluster in clusters if cluster.notebooks]
    reasons = {
        QUOTA_API: environment.quota_requests,
        BUDGET_API: environment.budget,
        SERVICES_API: environment.private_services_range,
        LUSTRE_API: environment.lustre,
        DNS_API: entrance(environment) and environment.network is None,
        AI_PLATFORM: attachment_project(environment),
        BACKUP_API: any(share.backups for share in environment.filestore.values()),
        SECRETS_API: any(hub.oauth_secret.secret_manager for hub in notebooks),
        IAP_API: any(hub.gateway for hub in notebooks),
        BINARY_API: any(cluster.binary_authorization for cluster in clusters),
    }
    return (api for api, reason in reasons.items() if reason)


def _let_vertex_attach(environment: Environment, apis: ProjectApis) -> None:
    """Allow Vertex AI's service agent in the environment's project to use network attachments.

    Teams' stacks do the same for their projects.
    """
    project = attachment_project(environment)
    if project is None:
        return
    role = custom_role("vertex_network", project)
    apis.grant_agent(AI_PLATFORM, kept_role("agents-vertex-network", project, role, apis.agents[AI_PLATFORM]))


def _key_users(environment: Environment) -> tuple[str, ...]:
    """Return the APIs whose resources in the environment are encrypted with the environment's key."""
    return (*ENVIRONMENT_KEY_USERS, LUSTRE_API) if environment.lustre else ENVIRONMENT_KEY_USERS


@dataclass(frozen=True)
class _Metrics:
    """The component for metrics and its service account."""

    component: Component
    account: Resource


@dataclass(frozen=True, kw_only=True)
class _SharedResources:
    """The resources that an environment's clusters share."""

    environment: Environment
    scope: Scope
    network: NetworkResources
    nodes: NodeAccount
    instances: Mapping[str, PlannedInstance]
    lustre: Mapping[str, PlannedInstance]
    metrics: _Metrics | None  # None without model servers

    def address(self, data: DataSetSpec) -> Any:
        """Return the address of the environment's instance that contains a data set; None if no instance does."""
        if data.filestore:
            return self.instances[data.filestore.instance].ip
        if data.lustre and not data.lustre.elsewhere:
            return self.lustre[data.lustre.instance].ip
        return None


def _shared_resources(plan: Plan, environment: Environment, scope: Scope) -> _SharedResources:
    """Add the resources that an environment's clusters share."""
    network = _network(plan, environment, scope)
    nodes = node_account_resources("nodes", scope, plan.component("training-platform:gke:NodeServiceAccount", "nodes"))
    if environment.admins:
        cluster_admins(plan.component("training-platform:gke:ClusterAccess", "access"), scope, environment.admins)
    instances = {
        key: filestore_resources(
            plan.component("training-platform:index:FilestoreInstance", declared_name("filestore", key)),
            key,
            spec,
            scope,
            network=network.network_id,
            services=network.services,
            services_range=network.services_range,
        )
        for key, spec in environment.filestore.items()
    }
    for region, addresses in environment.network_attachments.items():
        name = declared_name("network_attachments", region)
        attachment = plan.component("training-platform:network:VertexAttachment", name)
        attachment_resources(region, addresses, scope, network.network_id, attachment)
    lustre = {}
    for key, lustre_spec in environment.lustre.items():
        declared = lustre_instance(key, lustre_spec, scope, network.network_id)
        instance = plan.add(declared, [network.services] if network.services else [])
        address = compute(lustre_address, instance.output("mount_point"))
        lustre[key] = PlannedInstance(instance_id(key, scope), address)
    metrics = None
    if any(spec.serving for spec in environment.clusters.values()):  # autoscalers of servers read metrics
        component = plan.component("training-platform:serving:MetricsAccount", "metrics")
        metrics = _Metrics(component, metrics_account(component, scope))
    return _SharedResources(
        environment=environment,
        scope=scope,
        network=network,
        nodes=nodes,
        instances=instances,
        lustre=lustre,
        metrics=metrics,
    )


def _network(plan: Plan, environment: Environment, scope: Scope) -> NetworkResources:
    """Add the network that clusters and instances join, or return an existing network."""
    apis = entrance(environment)
    if environment.network is not None:
        return NetworkResources(
            network_id=str(existing_network(environment)),
            # As storage drivers take it: its name, or its id if it is another project's.
            network_name=existing_network_name(environment) or vpc_name(scope.prefix),
            services=None,
            services_range=None,
            google_apis=apis.range if apis else None,  # the range to which its owner resolves names of Google's APIs
        )
    network = NetworkParts(
        regions=tuple(region_of(cluster.location) for cluster in environment.own_clusters.values()),
        nat_addresses=environment.nat_addresses,
        services_range=environment.private_services_range,
        lustre=bool(environment.lustre),
        google_apis=apis,
    )
    return network_resources("network", scope, network, plan.component("training-platform:index:Network", "network"))


def _further_resources(plan: Plan, environment: Environment, scope: Scope, apis: ProjectApis) -> None:
    """Add the resources that do not depend on a cluster and that no cluster needs."""
    for key, data in environment.data_sets.items():
        if data.hyperdisk_ml:
            # The account that encrypts disks of nodes encrypts this one.
            plan.add(data_disk(key, data.hyperdisk_ml, scope), apis.bindings[GKE_API] if scope.keys else [])
    if environment.images:
        _add_images(plan, environment, environment.images, scope)
    if environment.vertex_submitters:
        component = plan.component("training-platform:tenancy:VertexLogs", "vertex-logs")
        vertex_logs(component, scope, members=environment.vertex_submitters)
    if environment.python_repository:
        plan.add(python_repository("python-repository", environment.python_repository, scope))
    if environment.quota_requests:
        quota_requests(plan, scope, environment.quota_requests)
    _monitoring(plan, environment, scope)
    budget = stack_budget(environment.budget, environment)
    if budget:
        budget_resources(*budget, scope, plan)


def _monitoring(plan: Plan, environment: Environment, scope: Scope) -> None:
    """Add the alerts and the dashboard of the clusters."""
    software = {cluster_name(scope, key, spec): spec.software for key, spec in environment.clusters.items()}
    alert_resources("alerts", environment.alerts, software, scope, plan)
    for dashboard in platform_dashboard(environment, scope):
        plan.add(dashboard)


def _add_images(plan: Plan, environment: Environment, images: ImageRepositorySpec, scope: Scope) -> None:
    """Add the image repositories and grant access to the accounts that push and look up images."""
    planned = image_repositories("images", images, scope, plan)
    repository = RepositoryRef(
        project=scope.project,
        location=images.location,
        repository_id=planned.output("repository_id"),  # so that grants wait for it
    )
    for admin in sorted(set(environment.admins)):
        name = f"images-writer-{member_key(admin)}"
        plan.add(repository_grant(name, repository, "roles/artifactregistry.writer", admin))
    for submitter in sorted(set(environment.vertex_submitters)):
        name = f"images-reader-{member_key(submitter)}"
        plan.add(repository_grant(name, repository, "roles/artifactregistry.reader", submitter))


class _DeployedCluster(NamedTuple):
    """A cluster in the plan, and the names of the ResourceFlavors that exist in it."""

    resources: ClusterResources
    flavors: Any


def _add_cluster(plan: Plan, name: str, shared: _SharedResources, flavors: Mapping[str, Flavor]) -> _DeployedCluster:
    """Add a cluster with its subnet and pools, and its software; ``name`` is its key in the stack file."""
    environment = shared.environment
    scope = shared.scope
    spec = environment.clusters[name]
    resources = cluster_resources(
        plan.component("training-platform:index:GkeCluster", name),
        name,
        spec,
        scope,
        network=shared.network.network_id,
        service_account=shared.nodes.email,
        bindings=shared.nodes.bindings,
        host_project=environment.host_project,
        google_groups_domain=environment.google_groups_domain,
        lustre=reads_lustre(environment, name),
    )
    cluster = PlannedCluster(
        key=name, spec=spec, environment=environment, flavors=flavors, component=plan, provider=resources.provider
    )
    deployed_flavors = _software(cluster, shared, resources.cpu_pools)
    if environment.nightly_account:
        _let_nightly_read(cluster, scope, environment.nightly_account)
    levels = {}
    for fabric in gpu_fabrics(name, spec).values():
        levels[fabric] = cluster.add("training-platform:gke:GpuDirect", f"{fabric.component}-pods")
        gpu_network_objects(levels[fabric], scope, fabric, resources.gpu_networks[fabric.name])
    add_installers(levels, scope, environment.node_images)
    return _DeployedCluster(resources, deployed_flavors)


def _software(cluster: PlannedCluster, shared: _SharedResources, pools: Sequence[Node]) -> Any:
    """Add the controllers and then their objects; return the names of the deployed flavors."""
    name = cluster.key
    spec = cluster.spec
    environment = cluster.environment
    scope = shared.scope
    priority = cluster.add_object(system_priority(f"{name}-system-priority", scope))
    system: list[Node] = [*pools, priority]
    controllers = _controllers(cluster, scope, system)
    deployed_flavors: Any = []
    if spec.software.kueue != "none":
        queueing = [controllers[KUEUE.name]] if KUEUE.name in controllers else []
        deployed_flavors = flavor_resources(
            cluster.add("training-platform:index:ResourceFlavors", f"{name}-flavors", queueing),
            name,
            cluster.flavors,
            priorities=priorities(environment),
            cohorts=environment.cohorts,
            scope=scope,
        )
    if spec.compute_classes:
        for compute_class in compute_classes(name, spec, scope, shared.nodes.email):
            cluster.add_object(compute_class)
    if spec.software.metrics:
        for controller in (JOBSET, KUEUE):
            if controller.name in controllers:
                component = cluster.add(
                    "training-platform:index:Prometheus",
                    f"{name}-{controller.name}-metrics",
                    [controllers[controller.name]],
                )
                controller_monitoring(component, scope, controller)
    network = shared.network.network_name
    for storage_class in cluster_classes(name, spec, scope, environment, network):
        cluster.add_object(storage_class)
    if spec.serving and shared.metrics:
        adapter = cluster.add("training-platform:serving:MetricsAdapter", f"{name}-metrics-adapter", system)
        metrics_adapter(adapter, scope, shared.metrics.account.output("email"))
    if spec.notebooks:
        _add_notebooks(cluster, shared, spec.notebooks, system)
    return deployed_flavors


def _controllers(cluster: PlannedCluster, scope: Scope, system: Sequence[Node]) -> dict[str, Component]:
    """Add the controllers after the nodes of ``system``; return the components of JobSet and Kueue by name."""
    name = cluster.key
    spec = cluster.spec
    environment = cluster.environment
    charts = environment.charts
    software = spec.software
    admission(
        cluster.add("training-platform:tenancy:Admission", f"{name}-admission"),
        scope,
        environment.node_images,
        Bounds(environment.max_grace_seconds, priorities(environment), exclusive=_exclusive_nodes(cluster)),
        sources=environment.image_sources,
        kinds=job_kinds(spec),
        devices=claims_devices(name, spec),
    )
    controllers: dict[str, Component] = {}
    if software.jobset == "installed":
        component = cluster.add("training-platform:index:JobSet", f"{name}-jobset", system)
        jobset(component, charts.get("jobset"))
        controllers[JOBSET.name] = component
    before: Sequence[Node] = list(controllers.values()) or system
    for key in charted(spec):
        release = operator(cluster.component, f"{name}-{key}", key, charts.get(key), before)
        release.own_provider = cluster.provider
    if software.kueue == "installed":
        component = cluster.add("training-platform:index:Kueue", f"{name}-kueue", before)
        kueue(
            component,
            scope.within(spec),
            name,
            spec,
            charts.get("kueue"),
            fair_sharing=environment.fair_sharing,
        )
        controllers[KUEUE.name] = component
    return controllers


def _exclusive_nodes(cluster: PlannedCluster) -> list[ExclusiveNodes]:
    """Return the nodes that JobSet reserves for one Job of `job render`: slices, and the VMs of Pathways heads."""
    flavors = cluster.flavors.values()
    exclusive = [ExclusiveNodes(flavor.node_labels, POOL_LABEL) for flavor in flavors if flavor.slices_by_jobset]
    if cluster.spec.pathways:
        exclusive.append(ExclusiveNodes({POOL_LABEL: HEADS_NAME}, "kubernetes.io/hostname"))
    return exclusive


def _let_nightly_read(cluster: PlannedCluster, scope: Scope, account: str) -> None:
    """Allow an account to read Secrets in the plan and Secrets of Helm releases, which project viewers cannot read."""
    holders: dict[Any, list[Node]] = {}
    for resource in cluster.objects():
        if resource.type == RELEASE:
            holders.setdefault(resource.inputs["namespace"], []).append(resource)
        elif resource.type == SECRET_OBJECT:
            holders.setdefault(resource.inputs["metadata"]["namespace"], []).append(resource)
    component = cluster.add("training-platform:gke:NightlyAccess", f"{cluster.key}-nightly")
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}
    subject = {"apiGroup": RBAC, "kind": "User", "name": account}
    for namespace, after in holders.items():
        name = f"{component.name}-{namespace}"
        fields = rules_of_role(rule)
        role = kubernetes_object(ROLE, f"{name}-role", scope, NIGHTLY, fields, namespace=namespace)
        component.add(role, after)
        fields = binding("Role", NIGHTLY, [subject])
        role_binding = kubernetes_object(ROLE_BINDING, name, scope, NIGHTLY, fields, namespace=namespace)
        component.add(role_binding, [role])


def _add_notebooks(
    cluster: PlannedCluster, shared: _SharedResources, notebooks: Notebooks, system: Sequence[Node]
) -> None:
    """Add JupyterHub with the volumes of home directories and data sets."""
    name = cluster.key
    environment = cluster.environment
    scope = shared.scope
    data_sets = notebook_data_sets(environment, name)
    component_name = name_in_cluster(name, "notebooks")
    namespace = jupyterhub(
        cluster.add("training-platform:index:JupyterHub", component_name, system),
        scope.within(cluster.spec),
        name,
        cluster.spec,
        notebooks,
        home_claim=HOME_CLAIM,
        data_sets=data_sets,
        team_data={team: team_data_sets(environment, name, team) for team in notebooks.teams},
        environment_data=tuple(environment.data_sets),
        chart=environment.charts.get("jupyterhub"),
    )
    if notebooks.gateway:
        gateway = cluster.add("training-platform:jupyterhub:HubGateway", f"{component_name}-gateway", system)
        hub_gateway(gateway, scope, notebooks, notebooks.gateway, namespace)
    for key in data_sets:
        volume_name = f"{declared_name('data_sets', key, name)}-notebooks"
        data_volume(
            cluster.add(DATA_VOLUME, volume_name, system),
            scope,
            scope,
            environment,
            key,
            mode=READ,
            namespace=namespace,
            address=shared.address(environment.data_sets[key]),
        )
    filestore_volume(
        cluster.add(FILESTORE_VOLUME, f"{component_name}-homes", system),
        scope,
        environment.filestore[notebooks.filestore],
        address=shared.instances[notebooks.filestore].ip,
        namespace=namespace,
        claim=HOME_CLAIM,
        size_gib=notebooks.home_gib,
    )
