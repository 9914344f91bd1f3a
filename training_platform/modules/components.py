"""Components for Pulumi programs in any language: clusters, files, queues, and a team's resources in them.

All components work the same way. The models of stack files validate ``args``. The functions that plan a stack create a
separate plan from them, and this plan is registered with the component as parent. Components do not call Google Cloud.
"""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes

from training_platform.config.component_arguments import (
    FilestoreInstanceArguments,
    GkeClusterArguments,
    JobSetArguments,
    JupyterHubArguments,
    KueueArguments,
    NetworkArguments,
    NodePoolsArguments,
    PersistentResourceArguments,
    PrometheusArguments,
    ResourceFlavorsArguments,
    TeamBucketArguments,
    TeamNamespaceArguments,
    TeamQueuesArguments,
)
from training_platform.config.expansion import flavors
from training_platform.config.model.team import Team
from training_platform.modules.args import (
    FilestoreInstanceArgs,
    GkeClusterArgs,
    JobSetArgs,
    JupyterHubArgs,
    KueueArgs,
    NetworkArgs,
    NodePoolsArgs,
    PersistentResourceArgs,
    PrometheusArgs,
    ResourceFlavorsArgs,
    TeamBucketArgs,
    TeamNamespaceArgs,
    TeamQueuesArgs,
)
from training_platform.modules.reading import read
from training_platform.modules.register import Registered, register_plan
from training_platform.resources import controllers
from training_platform.resources.cluster import add_accelerator_pools, add_cpu_pools, cluster_resources
from training_platform.resources.filestore import filestore_resources
from training_platform.resources.gke import node_account_resources
from training_platform.resources.jupyterhub import jupyterhub
from training_platform.resources.member_rights import member_bucket_grants
from training_platform.resources.network import ENTRANCES, NetworkParts, network_resources
from training_platform.resources.node_pools import PoolPlace
from training_platform.resources.plan import Component, PlanError, Resource, text
from training_platform.resources.queues import flavor_resources, team_queues
from training_platform.resources.scope import place_scope
from training_platform.resources.spelling import camel_case
from training_platform.resources.storage import team_bucket
from training_platform.resources.team_account import bucket_grants
from training_platform.resources.tenancy import NamespaceParts, namespace_labels, team_namespace
from training_platform.resources.vertex import persistent_resource

__all__ = [
    "FilestoreInstance",
    "GkeCluster",
    "JobSet",
    "JupyterHub",
    "Kueue",
    "Network",
    "NodePools",
    "PersistentResource",
    "Prometheus",
    "ResourceFlavors",
    "TeamBucket",
    "TeamNamespace",
    "TeamQueues",
]


class PlatformComponent(pulumi.ComponentResource):
    """The base class of components. A subclass adds resources to its plan, registers the plan, and sets its outputs.

    The parent, providers, protection and dependencies that the caller passes apply to all resources of the component.
    """

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None) -> None:
        token = f"training-platform:index:{type(self).__name__}"
        super().__init__(token, name, {}, opts)
        self._plan = Component(token, name)

    def _register(self) -> Registered:
        """Register the plan and its outputs. Raises pulumi.RunError if the plan cannot be registered."""
        try:
            self._registered = register_plan(self._plan, pulumi.ResourceOptions(parent=self))
        except PlanError as error:
            raise pulumi.RunError(str(error)) from error
        self.register_outputs({camel_case(name): self._output(name) for name in self._plan.outputs})
        return self._registered

    def _output(self, name: str) -> pulumi.Output[Any]:
        """Return an output of the plan after the plan is registered."""
        return self._registered.output(self._plan.outputs[name])


class Network(PlatformComponent):
    """A VPC and a NAT gateway in each region. The VPC has no subnets, because clusters create their own."""

    network_id: pulumi.Output[str]
    """Id of the VPC, `projects/*/global/networks/*`."""
    network_name: pulumi.Output[str]
    """Name of the VPC."""
    services_range: pulumi.Output[str | None]
    """Name of the address range for private service access, once Google's services are connected; None without it."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("Network", name, args, NetworkArguments)
        super().__init__(name, opts)
        parts = NetworkParts(
            regions=arguments.regions,
            nat_addresses=arguments.nat_addresses,
            services_range=arguments.services_range,
            google_apis=ENTRANCES[arguments.google_apis] if arguments.google_apis else None,
        )
        network_resources(name, place_scope(arguments.place), parts, self._plan)
        self._register()
        self.network_id = self._output("network_id")
        self.network_name = self._output("network_name")
        self.services_range = self._output("services_range")


class GkeCluster(PlatformComponent):
    """A private GKE cluster with its subnet, node service account and node pools, or an existing one with pools."""

    cluster_name: pulumi.Output[str]
    """Name of the cluster in Google Cloud: the name of the environment, a dash, and the component's name."""
    endpoint: pulumi.Output[str]
    """Host name of the DNS-based control-plane endpoint."""
    kubeconfig: pulumi.Output[str]
    """Kubeconfig without a secret: gke-gcloud-auth-plugin gets a token for the person who uses it."""
    pool_names: pulumi.Output[list[str]]
    """Names of the GKE node pools, once they exist."""
    service_account: pulumi.Output[str | None]
    """E-mail address of the node service account; for an existing cluster None unless it was passed."""

    def __init__(self, name: str, args: GkeClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("GkeCluster", name, args, GkeClusterArguments)
        super().__init__(name, opts)
        scope = place_scope(arguments.place)
        service_account = arguments.service_account
        bindings: Sequence[Resource] = ()
        if service_account is None and arguments.spec.existing is None:
            service_account, bindings = node_account_resources(f"{name}-nodes", scope, self._plan)
        cluster = cluster_resources(
            self._plan,
            name,
            arguments.spec,
            scope,
            network=arguments.network,
            service_account=service_account,
            bindings=bindings,
            host_project=arguments.host_project,
            google_groups_domain=arguments.google_groups_domain,
        )
        self._provider: pulumi_kubernetes.Provider = self._register()[cluster.provider]
        self.cluster_name = self._output("cluster_name")
        self.endpoint = self._output("endpoint")
        self.kubeconfig = self._output("kubeconfig")
        self.pool_names = self._output("pool_names")
        self.service_account = self._output("service_account")

    @property
    def provider(self) -> pulumi_kubernetes.Provider:
        """The provider of objects in the cluster. Programs in other languages create one from the kubeconfig."""
        return self._provider


class NodePools(PlatformComponent):
    """Node pools, with or without TPUs and GPUs, and the networks they need, in a cluster that is not a GkeCluster."""

    pool_names: pulumi.Output[list[str]]
    """Names of the GKE node pools, once they exist."""

    def __init__(self, name: str, args: NodePoolsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("NodePools", name, args, NodePoolsArguments)
        super().__init__(name, opts)
        place = PoolPlace(
            scope=place_scope(arguments.place),
            location=arguments.spec.location,
            cluster=arguments.cluster,
            service_account=arguments.service_account,
        )
        without_chips = add_cpu_pools(self._plan, name, arguments.spec, place)
        with_chips, _ = add_accelerator_pools(self._plan, name, arguments.spec, place)
        self._plan.outputs = {"pool_names": [pool.output("name") for pool in (*without_chips, *with_chips)]}
        self._register()
        self.pool_names = self._output("pool_names")


class FilestoreInstance(PlatformComponent):
    """A Filestore instance with one share, its snapshots and its backups."""

    address: pulumi.Output[str]
    """Address that clients mount."""

    def __init__(self, name: str, args: FilestoreInstanceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("FilestoreInstance", name, args, FilestoreInstanceArguments)
        super().__init__(name, opts)
        filestore_resources(
            self._plan,
            name,
            arguments.spec,
            place_scope(arguments.place),
            network=arguments.network,
            services_range=arguments.services_range,
        )
        self._register()
        self.address = self._output("address")


class JobSet(PlatformComponent):
    """The JobSet controller. Kueue must wait for it."""

    def __init__(self, name: str, args: JobSetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("JobSet", name, args, JobSetArguments)
        super().__init__(name, opts)
        controllers.jobset(self._plan, arguments.chart)
        self._register()


class Kueue(PlatformComponent):
    """The Kueue controller, after JobSet, whose CRD it needs. It is protected: its queues are deleted with it."""

    def __init__(self, name: str, args: KueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("Kueue", name, args, KueueArguments)
        super().__init__(name, opts)
        controllers.kueue(
            self._plan,
            place_scope(arguments.place).within(arguments.spec),
            arguments.cluster,
            arguments.spec,
            arguments.chart,
            fair_sharing=arguments.fair_sharing,
        )
        self._register()


class Prometheus(PlatformComponent):
    """Collection of the metrics of Kueue or JobSet by Managed Service for Prometheus, after that controller."""

    def __init__(self, name: str, args: PrometheusArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("Prometheus", name, args, PrometheusArguments)
        super().__init__(name, opts)
        scraped = {"jobset": controllers.JOBSET, "kueue": controllers.KUEUE}[arguments.controller]
        controllers.controller_monitoring(self._plan, place_scope(arguments.place), scraped)
        self._register()


class ResourceFlavors(PlatformComponent):
    """The ResourceFlavors of a cluster's node pools, with Topologies, priorities and cohorts, after Kueue."""

    flavors: pulumi.Output[list[str]]
    """Names of the flavors, once they exist; teams have shares of them."""

    def __init__(self, name: str, args: ResourceFlavorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("ResourceFlavors", name, args, ResourceFlavorsArguments)
        super().__init__(name, opts)
        flavor_resources(
            self._plan,
            arguments.cluster,
            flavors(arguments.cluster, arguments.spec),
            priorities=arguments.priorities,
            cohorts=arguments.cohorts,
            scope=place_scope(arguments.place),
        )
        self._register()
        self.flavors = self._output("flavors")


class TeamNamespace(PlatformComponent):
    """A namespace with the team's name, with access for its members, a service account for its jobs, and policies."""

    namespace: pulumi.Output[str]
    """Name of the namespace, once it exists."""

    def __init__(self, name: str, args: TeamNamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("TeamNamespace", name, args, TeamNamespaceArguments)
        super().__init__(name, opts)
        team = arguments.place.team
        parts = NamespaceParts(
            scope=place_scope(arguments.place),
            team=team,
            members=arguments.members,
            google_service_account=arguments.google_service_account,
            labels=namespace_labels(team, ()),
            quota=arguments.quota,
            egress=arguments.egress or None,
        )
        team_namespace(self._plan, parts)
        self._register()
        self.namespace = self._output("namespace")


class TeamQueues(PlatformComponent):
    """A ClusterQueue with the team's name, and the LocalQueues of its namespace, after ResourceFlavors."""

    cluster_queue: pulumi.Output[str]
    """Name of the ClusterQueue."""
    queues: pulumi.Output[list[str]]
    """Names of the LocalQueues, which jobs refer to."""

    def __init__(self, name: str, args: TeamQueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("TeamQueues", name, args, TeamQueuesArguments)
        super().__init__(name, opts)
        cluster = arguments.cluster
        team = Team.model_construct(  # its fields are validated
            environment=arguments.place.environment,
            name=arguments.place.team,
            members=(),
            shares={cluster: arguments.shares},
            fallback=arguments.fallback,
            cohort=arguments.cohort,
            weight=arguments.weight,
            preemption=arguments.preemption,
        )
        team_queues(
            self._plan,
            team,
            cluster,
            flavors(cluster, arguments.spec),
            scope=place_scope(arguments.place),
            namespace=arguments.namespace,
        )
        self._register()
        self.cluster_queue = self._output("cluster_queue")
        self.queues = self._output("queues")


class TeamBucket(PlatformComponent):
    """A Cloud Storage bucket of a team. Its members read and add objects; its jobs read and write objects."""

    bucket_name: pulumi.Output[str]
    """Name of the bucket, composed of project, environment, team and the component's name."""

    def __init__(self, name: str, args: TeamBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("TeamBucket", name, args, TeamBucketArguments)
        super().__init__(name, opts)
        bucket = self._plan.add(team_bucket(name, arguments.spec, place_scope(arguments.place)))
        bucket_name = bucket.output("name")
        jobs = text("serviceAccount:{}", arguments.jobs)
        for grant in bucket_grants(f"{name}-jobs", bucket_name, "roles/storage.objectUser", jobs):
            self._plan.add(grant)
        for grant in member_bucket_grants(name, arguments.spec, bucket_name, arguments.members):
            self._plan.add(grant)
        self._plan.outputs = {"bucket_name": bucket_name}
        self._register()
        self.bucket_name = self._output("bucket_name")


class JupyterHub(PlatformComponent):
    """Notebooks for everyone in a domain. The Secret of the OAuth client has to be created by hand."""

    namespace: pulumi.Output[str]
    """Namespace of the hub, once it exists."""

    def __init__(self, name: str, args: JupyterHubArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("JupyterHub", name, args, JupyterHubArguments)
        super().__init__(name, opts)
        spec = arguments.spec
        jupyterhub(
            self._plan,
            place_scope(arguments.place).within(spec),
            arguments.cluster,
            spec,
            spec.notebooks,
            home_claim=arguments.home_claim,
            data_sets={},
            chart=arguments.chart,
        )
        self._register()
        self.namespace = self._output("namespace")


class PersistentResource(PlatformComponent):
    """Machines that Vertex AI keeps for training jobs. The component's name is part of the id that jobs refer to."""

    resource_id: pulumi.Output[str]
    """Full name, `projects/*/locations/*/persistentResources/*`."""

    def __init__(self, name: str, args: PersistentResourceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        arguments = read("PersistentResource", name, args, PersistentResourceArguments)
        super().__init__(name, opts)
        declared = persistent_resource(name, arguments.spec, place_scope(arguments.place), arguments.network_attachment)
        resource = self._plan.add(declared)
        self._plan.outputs = {"resource_id": resource.output("id")}
        self._register()
        self.resource_id = self._output("resource_id")
