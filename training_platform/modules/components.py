"""Components for any Pulumi program in Python: networks, GKE clusters, node pools, Filestore, software in clusters.

They have one shape: the constructor takes a name, options and typed arguments, composes a detached plan by the same
functions as the plan of a stack, and registers it with the component as parent. What decides which resources exist is
plain: a scope and a section of a stack file, as its model. Other values may be outputs, which nothing here reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pulumi
import pulumi_kubernetes

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import PersistentResourceSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.modules.register import Registered, register_plan
from training_platform.resources import controllers
from training_platform.resources.environment import add_accelerator_pools, add_cpu_pools
from training_platform.resources.filestore import filestore_resources
from training_platform.resources.gke import (
    cluster_name,
    created_cluster,
    existing_cluster,
    gke_cluster,
    node_account_resources,
)
from training_platform.resources.jupyterhub import jupyterhub
from training_platform.resources.kubernetes_objects import cluster_provider
from training_platform.resources.network import ENTRANCES, NetworkParts, network_resources, subnet_resources
from training_platform.resources.node_pools import PoolPlace
from training_platform.resources.plan import Component, Resource, once
from training_platform.resources.scope import Scope
from training_platform.resources.tenancy import NamespaceParts, namespace_labels, team_namespace
from training_platform.resources.vertex import persistent_resource


class PlatformComponent(pulumi.ComponentResource):
    """The common shape: a subclass adds resources to ``plan``, then calls ``_register`` once.

    The parent, providers, protection and dependencies that the caller gives hold for all resources of the component.
    """

    def __init__(self, component_type: str, name: str, opts: pulumi.ResourceOptions | None) -> None:
        super().__init__(component_type, name, {}, opts)
        self.plan = Component(component_type, name)

    def _register(self, **outputs: Any) -> Registered:
        """Register the plan, and set each output as an attribute of its name."""
        registered = register_plan(self.plan, pulumi.ResourceOptions(parent=self))
        resolved = {name: pulumi.Output.from_input(registered.resolve(value)) for name, value in outputs.items()}
        for name, output in resolved.items():
            setattr(self, name, output)
        self.register_outputs(resolved)
        return registered


class Network(PlatformComponent):
    """A VPC without subnets, which clusters bring, and a NAT gateway in each region.

    ``nat_addresses`` are reserved for each gateway. ``services_range`` holds addresses for private service access, and
    ``google_apis`` leads names of Google's APIs to private or restricted addresses.
    """

    network_id: pulumi.Output[str]  # projects/*/global/networks/*
    network_name: pulumi.Output[str]
    services_range: pulumi.Output[str | None]  # its name, once services of Google have joined

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        regions: Sequence[str],
        nat_addresses: int = 0,
        services_range: str | None = None,
        google_apis: Literal["private", "restricted"] | None = None,
    ) -> None:
        super().__init__("training-platform:network:Network", name, opts)
        parts = NetworkParts(
            regions=tuple(regions),
            nat_addresses=nat_addresses,
            services_range=services_range,
            google_apis=ENTRANCES[google_apis] if google_apis else None,
        )
        network = network_resources(name, scope, parts, self.plan)
        joined = network.services_range
        if network.services is not None:
            joined = once(joined, network.services.output("id"))
        self._register(network_id=network.network_id, network_name=network.network_name, services_range=joined)


class GkeCluster(PlatformComponent):
    """A private cluster with its subnet and the account of its nodes; ``existing`` in ``spec`` reads another's.

    ``name`` is part of its name in Google Cloud. It has no nodes: ``NodePools`` of the same ``spec`` adds them.
    ``service_account`` is the address of an account that nodes have already, such as that of another cluster.
    ``host_project`` owns a Shared VPC.
    """

    cluster_name: pulumi.Output[str]  # pools that take it wait for the cluster
    endpoint: pulumi.Output[str]  # host name of the DNS-based control-plane endpoint
    service_account: pulumi.Output[str | None]  # None of an existing cluster, unless it was given
    provider: pulumi_kubernetes.Provider  # for objects in the cluster

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        spec: ClusterSpec,
        network: pulumi.Input[str] | None = None,
        service_account: pulumi.Input[str] | None = None,
        host_project: str | None = None,
        google_groups_domain: str | None = None,
    ) -> None:
        super().__init__("training-platform:gke:GkeCluster", name, opts)
        if spec.existing:
            cluster = existing_cluster(self.plan, scope, spec.location, spec.existing)
        elif network is None:
            raise TypeError(f"GkeCluster {name} needs a network, unless its spec names an existing cluster")
        else:
            bindings: Sequence[Resource] = ()
            if service_account is None:
                service_account, bindings = node_account_resources(f"{name}-nodes", scope, self.plan)
            subnetwork = subnet_resources(
                self.plan, spec, scope, network=network, nodes=service_account, host_project=host_project
            )
            declared = gke_cluster(
                name,
                spec,
                scope,
                network=network,
                subnetwork=subnetwork,
                service_account=service_account,
                google_groups_domain=google_groups_domain,
            )
            # The first nodes do not join without their roles.
            cluster = created_cluster(self.plan.add(declared, bindings))
        provider = cluster_provider(
            self.plan,
            f"{name}-kubernetes",
            endpoint=cluster.endpoint,
            project=scope.project,
            location=spec.location,
            cluster_name=cluster_name(scope, name, spec),
        )
        outputs = {"cluster_name": cluster.name, "endpoint": cluster.endpoint, "service_account": service_account}
        self.provider = self._register(**outputs)[provider]


class NodePools(PlatformComponent):
    """The node pools of ``spec``, with TPUs, with GPUs and without, and the networks and slices that they need.

    ``name`` is that of the ``GkeCluster``; ``cluster`` is its name in Google Cloud.
    """

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        spec: ClusterSpec,
        cluster: pulumi.Input[str],
        service_account: pulumi.Input[str | None],
    ) -> None:
        super().__init__("training-platform:gke:NodePools", name, opts)
        place = PoolPlace(scope=scope, location=spec.location, cluster=cluster, service_account=service_account)
        add_cpu_pools(self.plan, name, spec, place)
        add_accelerator_pools(self.plan, name, spec, place)
        self._register()


class FilestoreInstance(PlatformComponent):
    """An instance with one share, its snapshots and its backups; ``name`` is part of its name in Google Cloud.

    ``services_range`` is the name of the network's, if the instance joins by private service access.
    """

    ip: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        spec: FilestoreSpec,
        network: pulumi.Input[str],
        services_range: pulumi.Input[str | None] = None,
    ) -> None:
        super().__init__("training-platform:filestore:FilestoreInstance", name, opts)
        instance = filestore_resources(self.plan, name, spec, scope, network=network, services_range=services_range)
        self._register(ip=instance.ip)


class JobSet(PlatformComponent):
    """The controller of JobSets, in the cluster of the caller's Kubernetes provider."""

    def __init__(
        self, name: str, opts: pulumi.ResourceOptions | None = None, *, chart: ChartOverride | None = None
    ) -> None:
        super().__init__("training-platform:jobset:JobSet", name, opts)
        controllers.jobset(self.plan, chart)
        self._register()


class Kueue(PlatformComponent):
    """The queueing controller, after JobSet, whose CRD it needs; ``cluster`` is the name of the ``GkeCluster``.

    To uninstall it is to delete every queue, so ``scope`` protects it.
    """

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        cluster: str,
        spec: ClusterSpec,
        chart: ChartOverride | None = None,
        fair_sharing: bool = True,
    ) -> None:
        super().__init__("training-platform:kueue:Kueue", name, opts)
        controllers.kueue(self.plan, scope.within(spec), cluster, spec, chart, fair_sharing=fair_sharing)
        self._register()


class ControllerMonitoring(PlatformComponent):
    """The scrape of Kueue's or JobSet's metrics by Managed Service for Prometheus, after that controller."""

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        controller: Literal["jobset", "kueue"],
    ) -> None:
        super().__init__("training-platform:prometheus:ControllerMonitoring", name, opts)
        scraped = {"jobset": controllers.JOBSET, "kueue": controllers.KUEUE}[controller]
        controllers.controller_monitoring(self.plan, scope, scraped)
        self._register()


class JupyterHub(PlatformComponent):
    """Notebooks for everyone of a domain; ``cluster`` is the name of the ``GkeCluster``, ``spec`` has its pools.

    ``home_claim`` is a PersistentVolumeClaim in the hub's namespace that holds all homes; the name of the Filestore
    instance in ``notebooks`` is not read. Somebody makes the Secret of the OAuth client by hand.
    """

    namespace: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        cluster: str,
        spec: ClusterSpec,
        notebooks: Notebooks,
        home_claim: pulumi.Input[str],
        chart: ChartOverride | None = None,
    ) -> None:
        super().__init__("training-platform:jupyterhub:JupyterHub", name, opts)
        within = scope.within(spec)
        namespace = jupyterhub(
            self.plan, within, cluster, spec, notebooks, home_claim=home_claim, data_sets={}, chart=chart
        )
        self._register(namespace=namespace)


class PersistentResource(PlatformComponent):
    """Machines that Vertex AI keeps for training jobs; ``name`` is part of the id by which jobs name them.

    ``network_attachment`` is the full name of an attachment, in place of that of ``spec``.
    """

    resource_id: pulumi.Output[str]  # projects/*/locations/*/persistentResources/*

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        spec: PersistentResourceSpec,
        network_attachment: pulumi.Input[str] | None = None,
    ) -> None:
        super().__init__("training-platform:vertex:PersistentResource", name, opts)
        resource = self.plan.add(persistent_resource(name, spec, scope, network_attachment))
        self._register(resource_id=resource.output("id"))


class TeamNamespace(PlatformComponent):
    """A team's namespace, called ``team``, with its members' rights, its jobs' account and a policy against others.

    ``google_service_account`` is the address of the account that jobs act as. ``quota`` is the ``hard`` part of a
    ResourceQuota, and ``egress`` the spec of a NetworkPolicy; without them, nothing bounds the objects and connections.
    """

    namespace: pulumi.Output[str]  # once it exists

    def __init__(
        self,
        name: str,
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: Scope,
        team: str,
        members: Sequence[str],
        google_service_account: pulumi.Input[str],
        quota: Mapping[str, str] | None = None,
        egress: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__("training-platform:tenancy:TeamNamespace", name, opts)
        parts = NamespaceParts(
            scope=scope,
            team=team,
            members=tuple(members),
            google_service_account=google_service_account,
            labels=namespace_labels(team, (), host_network=False),
            quota=quota or {},
            egress=egress,
        )
        self._register(namespace=team_namespace(self.plan, parts))
