"""The parts of an environment: ``modules/environment.py`` registers them, and ``check --fast`` plans them.

Both walk over the same parts, which are composed by one function each, such as ``network_resources``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from training_platform.catalog.locations import region_of
from training_platform.config.gpu_fabric import gpu_fabrics
from training_platform.config.model.cluster import ClusterSpec, SoftwareSpec
from training_platform.config.model.environment import BudgetSpec, Environment
from training_platform.config.model.storage import HyperdiskData
from training_platform.config.names import cpu_pool_name
from training_platform.config.pools import Flavor, cluster_pools, cpu_pools
from training_platform.resources.compute_classes import compute_classes
from training_platform.resources.data_sets import data_disk, reads_lustre
from training_platform.resources.declared import Declared, ModelPlan
from training_platform.resources.filestore import cluster_classes, filestore_resources
from training_platform.resources.gke import cluster_name, gke_cluster, node_account_resources
from training_platform.resources.gpu_networks import gpu_network_resources, gpu_nics
from training_platform.resources.monitoring import alert_resources, budget_resources, stack_budget
from training_platform.resources.network import (
    NetworkParts,
    attachment_resources,
    entrance,
    existing_network,
    existing_network_name,
    network_name,
    network_resources,
    subnet_resources,
)
from training_platform.resources.node_pools import PoolPlace, accelerator_pool, cpu_pool, workload_policies
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.queues import flavor_resources
from training_platform.resources.scope import Scope, environment_scope
from training_platform.resources.storage import image_repositories, lustre_instance
from training_platform.resources.vertex import metadata_store


def environment_resources(
    name: str, environment: Environment, flavors: Mapping[str, Mapping[str, Flavor]]
) -> list[Declared]:
    """Return the resources of an environment that rules look at, as far as its file tells them.

    ``flavors`` are those of its clusters, by cluster and name.
    """
    parts, plan = EnvironmentParts(name, environment), ModelPlan()
    scope, network, services, services_range = parts.scope, existing_network(environment), None, None
    if parts.network:
        vpc = network_resources("network", scope, parts.network, plan)
        network, services, services_range = vpc.network.id, vpc.services, vpc.services_range
    nodes, _ = node_account_resources("nodes", scope, plan)
    for key, instance in environment.filestore.items():
        filestore_resources(
            key, instance, scope, network=network, services=services, services_range=services_range, register=plan
        )
    for region, addresses in environment.network_attachments.items():
        attachment_resources(region, addresses, scope, network, plan)
    for key, cluster in environment.clusters.items():
        _plan_cluster(key, cluster, parts, plan, network=network, nodes=nodes.email)
        if cluster.software.kueue != "none":
            flavor_resources(f"{key}-flavors", key, flavors[key], environment.cohorts, scope=scope, register=plan)
    if environment.images:
        image_repositories("images", environment.images, scope, plan)
    alert_resources("alerts", environment.alerts, parts.watched_clusters, scope, plan)
    if parts.budget:
        budget_resources(*parts.budget, scope, plan)
    return [*plan.resources, *_single_resources(parts, network)]


def _single_resources(parts: EnvironmentParts, network: Any) -> Iterator[Declared]:
    """Yield the resources that are alone in their components."""
    environment, scope = parts.environment, parts.scope
    for region in environment.metadata_stores:
        yield metadata_store(region, scope)
    for key, spec in environment.lustre.items():
        yield lustre_instance(key, spec, scope, network)
    for key, disk in parts.data_disks.items():
        yield data_disk(key, disk, scope)


def _plan_cluster(
    key: str, spec: ClusterSpec, parts: EnvironmentParts, plan: ModelPlan, *, network: Any, nodes: Any
) -> None:
    """Plan a cluster with its subnet, its pools and their networks, and its classes; ``nodes`` is an e-mail address."""
    scope, environment = parts.scope, parts.environment
    if spec.existing is None:
        subnet = subnet_resources(
            key, spec, scope, network=network, nodes=nodes, host_project=environment.host_project, register=plan
        )
        plan(
            gke_cluster(
                key, spec, scope, **parts.joined(key), network=network, subnetwork=subnet, service_account=nodes
            )
        )
    place = PoolPlace(
        scope=scope, location=spec.location, cluster=cluster_name(scope, key, spec), service_account=nodes
    )
    for pool_without_chips in cpu_pools(spec):
        plan(cpu_pool(cpu_pool_name(key, pool_without_chips.path), pool_without_chips, place))
    fabrics, pools = gpu_fabrics(key, spec), cluster_pools(key, spec)
    for fabric in fabrics.values():
        gpu_network_resources(scope, key, fabric, plan)
    policies = {topology: plan(policy).name for topology, policy in workload_policies(scope, key, spec.location, pools)}
    for pool in pools:
        nics, policy = gpu_nics(scope, key, fabrics, pool), policies.get(pool.policy_topology or "")
        for gke_pool in pool.gke_pools:
            plan(accelerator_pool(pool, gke_pool, replace(place, nics=nics, workload_policy=policy)))
    for compute_class in compute_classes(key, spec, scope, UNKNOWN):
        plan(compute_class)
    for _, storage_class in cluster_classes(key, spec, scope, environment, parts.driver_network):
        plan(storage_class)


@dataclass(frozen=True)
class EnvironmentParts:
    """The parts of an environment called ``name``; the conditions for each part are here, and in no component."""

    name: str
    environment: Environment

    @cached_property
    def scope(self) -> Scope:
        """The scope of its resources."""
        return environment_scope(self.name, self.environment)

    @property
    def network(self) -> NetworkParts | None:
        """The VPC of its own; None where it joins one that exists already."""
        environment = self.environment
        if environment.network:
            return None
        return NetworkParts(
            regions=tuple(region_of(cluster.location) for cluster in environment.own_clusters.values()),
            nat_addresses=environment.nat_addresses,
            services_range=environment.private_services_range,
            lustre=bool(environment.lustre),
            google_apis=entrance(environment),
        )

    @property
    def driver_network(self) -> str:
        """The name of its VPC as storage drivers take it: the id where it is another project's."""
        return existing_network_name(self.environment) or network_name(self.scope)

    @property
    def watched_clusters(self) -> dict[str, SoftwareSpec]:
        """The installed software of each cluster, by the cluster's name in GKE."""
        return {cluster_name(self.scope, key, spec): spec.software for key, spec in self.environment.clusters.items()}

    @property
    def serving(self) -> bool:
        """Whether a cluster has model servers, whose autoscalers read metrics."""
        return any(spec.serving for spec in self.environment.clusters.values())

    @property
    def data_disks(self) -> dict[str, HyperdiskData]:
        """The disks of its data sets, by the data set's key."""
        return {key: data.hyperdisk_ml for key, data in self.environment.data_sets.items() if data.hyperdisk_ml}

    @property
    def budget(self) -> tuple[BudgetSpec, str] | None:
        """Its budget, and the billing account that the budget is in."""
        return stack_budget(self.environment.budget, self.environment)

    def joined(self, cluster: str) -> dict[str, Any]:
        """Return a cluster's settings from the environment: the domain of Google Groups, and the driver of Lustre."""
        domain = self.environment.google_groups_domain
        return {"google_groups_domain": domain, "lustre": reads_lustre(self.environment, cluster)}
