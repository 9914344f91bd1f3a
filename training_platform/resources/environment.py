"""The resources of an environment stack that rules look at, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Mapping

from training_platform.catalog.locations import region_of
from training_platform.config.gpu_fabric import GpuFabric, gpu_fabrics
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.names import cpu_pool_name
from training_platform.config.pools import Flavor, cluster_pools
from training_platform.resources.compute_classes import compute_classes
from training_platform.resources.data_sets import data_disk, reads_lustre
from training_platform.resources.declared import Declared, Later
from training_platform.resources.filestore import (
    backup_association,
    backup_plan,
    backup_vault,
    cluster_classes,
    filestore_instance,
    filestore_snapshots,
)
from training_platform.resources.gke import cluster_name, gke_cluster, node_account, node_roles
from training_platform.resources.gpu_networks import gpu_firewall, gpu_nics, gpu_subnet, gpu_vpc
from training_platform.resources.monitoring import alert_policies, budget_resources, email_channels
from training_platform.resources.network import (
    DOMAINS,
    api_records,
    api_zone,
    attachment_subnet,
    cluster_subnet,
    entrance,
    existing_network,
    existing_network_name,
    existing_subnet,
    nat,
    nat_addresses,
    network_attachment,
    network_name,
    network_project,
    router,
    service_connection,
    services_range,
    vpc,
    webhook_firewall,
)
from training_platform.resources.node_pools import PoolPlace, accelerator_pools, cpu_pool, workload_policies
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.queues import cohort_objects, flavor_object, topology_objects
from training_platform.resources.scope import Scope, environment_scope
from training_platform.resources.storage import image_repository, lustre_firewall, lustre_instance
from training_platform.resources.vertex import metadata_store


def environment_resources(
    name: str, environment: Environment, flavors: Mapping[str, Mapping[str, Flavor]]
) -> Iterator[Declared]:
    """Yield the resources of an environment; ``flavors`` are those of its clusters, by cluster and name."""
    scope = environment_scope(name, environment)
    network = yield from _network(environment, scope)
    nodes = node_account("nodes", scope)
    yield nodes
    yield from node_roles("nodes", scope, _later(nodes))
    if environment.images:
        yield image_repository("images", environment.images, scope)
    yield from _alerts(environment, scope)
    yield from budget_resources(environment.budget, environment.billing_account, scope)
    yield from _filestore(environment, scope, network)
    yield from _vertex_and_data(environment, scope, network)
    for key, cluster in environment.clusters.items():
        yield from _cluster(key, cluster, scope, environment, network=network, nodes=_later(nodes))
        if cluster.software.kueue == "none":
            continue
        yield from topology_objects(f"{key}-flavors", flavors[key], scope)
        for flavor in flavors[key].values():
            yield flavor_object(f"{key}-flavors", flavor, scope)
        yield from cohort_objects(key, environment.cohorts, flavors[key], scope)


def _vertex_and_data(environment: Environment, scope: Scope, network: Later | str) -> Iterator[Declared]:
    """Yield what Vertex AI has of the environment, Managed Lustre, and disks of data sets."""
    for region, cidr in environment.network_attachments.items():
        subnet = attachment_subnet(region, cidr, scope, network)
        yield from (subnet, network_attachment(region, scope, _later(subnet)))
    for region in environment.metadata_stores:
        yield metadata_store(region, scope)
    for key, instance in environment.lustre.items():
        yield lustre_instance(key, instance, scope, network)
    for key, data in environment.data_sets.items():
        if data.hyperdisk_ml:
            yield data_disk(key, data.hyperdisk_ml, scope)


def _network(environment: Environment, scope: Scope) -> Generator[Declared, None, Later | str]:
    """Yield the environment's VPC with its gateways, and return it; only return one that exists already."""
    if existing := existing_network(environment):
        return existing
    network = vpc("network", scope)
    yield network
    for region in sorted({region_of(cluster.location) for cluster in environment.own_clusters.values()}):
        own = router("network", region, scope, _later(network))
        yield own
        addresses = list(nat_addresses("network", region, scope, environment.nat_addresses))
        yield from addresses
        yield nat("network", region, scope, _later(own), [_later(address) for address in addresses])
    if apis := entrance(environment):
        for domain in DOMAINS:
            zone = api_zone("network", domain, scope, _later(network))
            yield zone
            yield from api_records("network", domain, apis, scope, zone.inputs["name"])
    return _later(network)


def _filestore(environment: Environment, scope: Scope, network: Later | str) -> Iterator[Declared]:
    """Yield instances with snapshots and backups, and the private service access that some of them join by."""
    services = None
    if environment.private_services_range:
        addresses = services_range("network", scope, environment.private_services_range, network)
        services = _later(addresses)
        yield addresses
        yield service_connection("network", network, services)
        if environment.lustre:
            yield lustre_firewall(environment.private_services_range, scope, network)
    for key, spec in environment.filestore.items():
        instance = filestore_instance(key, spec, scope, network, services)
        yield instance
        yield from filestore_snapshots(key, spec, scope, _later(instance))
        if spec.backups:
            vault = backup_vault(key, spec, spec.backups, scope)
            plan = backup_plan(key, spec, spec.backups, scope, _later(vault))
            yield from (vault, plan, backup_association(key, spec, scope, _later(instance), _later(plan)))


def _cluster(
    key: str, cluster: ClusterSpec, scope: Scope, environment: Environment, *, network: Later | str, nodes: Later
) -> Iterator[Declared]:
    name = cluster_name(scope, key, cluster)
    place = PoolPlace(scope=scope, location=cluster.location, cluster=name, service_account=nodes)
    if cluster.existing is None:
        subnetwork: Later | str | None = existing_subnet(cluster, network_project(environment))
        if subnetwork is None:
            subnet = cluster_subnet(key, cluster, scope, network)
            yield subnet
            subnetwork = _later(subnet)
        if environment.host_project is None:
            yield webhook_firewall(key, cluster, scope, network, nodes)
        yield gke_cluster(
            key,
            cluster,
            scope,
            network=network,
            subnetwork=subnetwork,
            service_account=nodes,
            google_groups_domain=environment.google_groups_domain,
            lustre=reads_lustre(environment, key),
        )
    for field, pool in cluster.cpu_pools.items():
        yield cpu_pool(cpu_pool_name(key, field), pool, place)
    yield from _accelerators(key, cluster, place)
    yield from compute_classes(key, cluster, scope, UNKNOWN)
    drivers_network = existing_network_name(environment) or network_name(scope)
    for _, storage_class in cluster_classes(key, cluster, scope, environment, drivers_network):
        yield storage_class


def _accelerators(key: str, cluster: ClusterSpec, place: PoolPlace) -> Iterator[Declared]:
    """Yield a cluster's pools, with the networks and policies that their VMs are joined by."""
    pools, fabrics = cluster_pools(key, cluster), gpu_fabrics(key, cluster)
    policies = dict(workload_policies(place.scope, key, cluster.location, pools))
    yield from policies.values()
    for fabric in fabrics.values():
        yield from _gpu_networks(key, fabric, place.scope)
    for pool in pools:
        policy = policies.get(pool.policy_topology or "")
        nics, joined = gpu_nics(place.scope, key, fabrics, pool), policy.inputs["name"] if policy else None
        own = dataclasses.replace(place, nics=nics, workload_policy=joined) if nics or joined else place
        yield from accelerator_pools(pool, own)


def _gpu_networks(key: str, fabric: GpuFabric, scope: Scope) -> Iterator[Declared]:
    for part in fabric.vpcs:
        network = gpu_vpc(scope, key, fabric, part)
        yield network
        if firewall := gpu_firewall(scope, key, fabric, part, _later(network)):
            yield firewall
        for nic in part.nics:
            yield gpu_subnet(scope, key, fabric, nic, _later(network))


def _alerts(environment: Environment, scope: Scope) -> Iterator[Declared]:
    clusters = {cluster_name(scope, key, spec): spec.software for key, spec in environment.clusters.items()}
    if environment.alerts.enabled and clusters:
        told = list(email_channels("alerts", environment.alerts.emails, scope))
        yield from told
        yield from alert_policies("alerts", scope, clusters, [_later(channel) for channel in told])


def _later(declared: Declared) -> Later:
    return Later(declared.type, declared.name)
