"""A GKE cluster: its subnet, the Pulumi provider for its Kubernetes objects, and its node pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from training_platform.config.expansion import ExpandedPool, cluster_pools, cpu_pools
from training_platform.config.gpu_fabric import GpuFabric, fabric_name, gpu_fabrics
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.names import cpu_pool_name
from training_platform.resources.gke import (
    cluster_name,
    dns_endpoint,
    existing_endpoint,
    gke_cluster,
    kubeconfig,
    read_cluster,
)
from training_platform.resources.gpu_networks import GpuNetworks, gpu_network_resources, gpu_nics
from training_platform.resources.kubernetes_objects import cluster_provider
from training_platform.resources.network import subnet_resources
from training_platform.resources.node_pools import PoolPlace, accelerator_pool, cpu_pool, workload_policies
from training_platform.resources.plan import Component, Resource, compute, once
from training_platform.resources.scope import Scope


class ClusterResources(NamedTuple):
    """The parts of a cluster that other resources refer to.

    ``cpu_pools`` are the pools without accelerators; controllers run in its system pool. ``name`` is the cluster's name
    in Google Cloud. Resources that use the name wait for the cluster. ``endpoint`` is the host name of the control
    plane.
    """

    cluster: Resource
    name: Any
    endpoint: Any
    provider: Resource
    cpu_pools: list[Resource]
    accelerator_pools: list[Resource]
    gpu_networks: Mapping[str, GpuNetworks]


def cluster_resources(
    into: Component,
    key: str,
    spec: ClusterSpec,
    scope: Scope,
    *,
    network: Any,
    service_account: Any,
    bindings: Sequence[Resource] = (),
    host_project: str | None = None,
    google_groups_domain: str | None = None,
    lustre: bool = False,
) -> ClusterResources:
    """Add a cluster with its subnet, its provider and its pools, or only the pools of an existing cluster.

    ``key`` is its key in the stack file. ``bindings`` are the roles of nodes. Without them, nodes can neither join the
    cluster nor pull images.
    """
    if spec.existing:
        cluster = into.add(read_cluster(f"{key}-existing", scope, spec.location, spec.existing))
        name: Any = spec.existing
        endpoint = _endpoint(cluster, existing=True)
    else:
        subnet = subnet_resources(into, spec, scope, network=network, nodes=service_account, host_project=host_project)
        declared = gke_cluster(
            key,
            spec,
            scope,
            network=network,
            subnetwork=subnet,
            service_account=service_account,
            google_groups_domain=google_groups_domain,
            lustre=lustre,
        )
        cluster = into.add(declared, bindings)
        name = cluster.output("name")
        endpoint = _endpoint(cluster, existing=False)
    provider = cluster_provider(
        into,
        f"{key}-kubernetes",
        endpoint=endpoint,
        project=scope.project,
        location=spec.location,
        cluster_name=cluster_name(scope, key, spec),
    )
    place = PoolPlace(scope=scope, location=spec.location, cluster=name, service_account=service_account)
    without_chips = add_cpu_pools(into, key, spec, place, bindings)
    with_chips, networks = add_accelerator_pools(into, key, spec, place, bindings)
    into.outputs = {
        "cluster_name": name,
        "endpoint": endpoint,
        "kubeconfig": compute(kubeconfig, endpoint),
        "pool_names": [pool.output("name") for pool in (*without_chips, *with_chips)],
        "service_account": service_account,
    }
    return ClusterResources(
        cluster,
        name,
        endpoint=endpoint,
        provider=provider,
        cpu_pools=without_chips,
        accelerator_pools=with_chips,
        gpu_networks=networks,
    )


def _endpoint(cluster: Resource, *, existing: bool) -> Any:
    """Return a cluster's endpoint, which is unknown until the cluster has an id.

    Until then, the cluster's configuration contains no endpoint.
    """
    function = existing_endpoint if existing else dns_endpoint
    return compute(function, cluster.output("control_plane_endpoints_config"), cluster.output("id"))


def add_cpu_pools(
    into: Component, cluster: str, spec: ClusterSpec, place: PoolPlace, bindings: Sequence[Resource] = ()
) -> list[Resource]:
    """Add the pools without accelerators, for controllers, webhooks, system pods, head pods, or teams' own pods.

    ``cluster`` is its key in the stack file. ``bindings`` are the roles of nodes, which cannot join without them.
    """
    pools_of_teams: list[Resource] = []
    system_pools: list[Resource] = []
    for pool in cpu_pools(spec):
        # The system's pools come last: they stop taking other pods once these have a pool of their own. A fallback does
        # not wait for the system pool, whose machine type may be out of stock.
        declared = cpu_pool(cpu_pool_name(cluster, pool.path, pool.spec.machine_type), pool, place)
        if pool.path[0] == "system_pool":
            system_pools.append(into.add(declared, [*bindings, *pools_of_teams]))
        else:
            pools_of_teams.append(into.add(declared, bindings))
    return pools_of_teams + system_pools


def add_accelerator_pools(
    into: Component, cluster: str, spec: ClusterSpec, place: PoolPlace, bindings: Sequence[Resource] = ()
) -> tuple[list[Resource], dict[str, GpuNetworks]]:
    """Add the accelerator pools and the networks of their NICs. Return the pools, and the networks by fabric.

    ``cluster`` is its key in the stack file. ``bindings`` are the roles of nodes. Without them, nodes can neither join
    the cluster nor pull images.
    """
    fabrics = gpu_fabrics(cluster, spec)
    networks = {}
    for fabric in fabrics.values():
        component = into.component("training-platform:network:GpuNetworks", fabric.component)
        networks[fabric.name] = gpu_network_resources(place.scope, cluster, fabric, component)
    pools = cluster_pools(cluster, spec)
    declared = workload_policies(place.scope, cluster, place.location, pools)
    policies = {topology: into.add(policy).output("name") for topology, policy in declared}
    added = []
    for pool in pools:
        joined = replace(
            place,
            cluster=_cluster_after_networks(place.cluster, pool, fabrics, networks),
            nics=gpu_nics(place.scope, cluster, fabrics, pool),
            workload_policy=policies.get(pool.policy_topology or ""),
        )
        added += [into.add(accelerator_pool(pool, gke_pool, joined), bindings) for gke_pool in pool.gke_pools]
    return added, networks


def _cluster_after_networks(
    cluster: Any, pool: ExpandedPool, fabrics: Mapping[str, GpuFabric], networks: Mapping[str, GpuNetworks]
) -> Any:
    """Return the name of the cluster, which is known only after the networks of a pool's NICs exist.

    The name waits for the subnets, so replacing a subnet replaces the pool. Unknown names in ``networkConfig`` would
    have the same effect, but the provider (10.2.0) panics on them.
    """
    name = fabric_name(pool)
    if name is None:
        return cluster
    subnets = networks[name].subnetworks
    return once(cluster, *(subnets[nic.name] for _, nic in fabrics[name].nics(pool)))
