"""What a stack file asks of its project's quotas, at the autoscaling maximum."""

from __future__ import annotations

from collections.abc import Iterator

from modules.catalog import MACHINE_TYPES
from modules.catalog.locations import region_of
from modules.config.cluster import Cluster
from modules.config.environment import Environment
from modules.config.finding import Path
from modules.config.fleet import Pool, cluster_pools
from modules.config.stack import Stack
from modules.config.team import PersistentResource, Team
from modules.config.workspace import Workspace
from modules.quota.keys import Charge, Holder
from modules.quota.usage import (
    VertexUsage,
    VmUsage,
    filestore_usage,
    nat_usage,
    vertex_usage,
    vm_usage,
)


def stack_demand(stack: Stack, workspace: Workspace) -> list[Charge]:
    """Return every charge of a stack; none for a file that the model rejects, whose findings say why."""
    project = workspace.project_of(stack)
    if project is None:
        return []
    if stack.environment:
        return list(_environment(stack.name, project, stack.environment))
    return list(_team(stack.name, project, stack.team)) if stack.team else []


def _environment(stack: str, project: str, environment: Environment) -> Iterator[Charge]:
    for name, cluster in environment.clusters.items():
        yield from _system_pool(stack, project, name, cluster)
        for pool in cluster_pools(name, cluster):
            yield from _pool(stack, project, pool)
    yield from _gateways(stack, project, environment)
    for name, instance in environment.filestore.items():
        path: Path = ("filestore", name)
        holder = Holder(stack, path, name, (*path, "capacity_gib"), 1, instance.capacity_gib)
        for usage in filestore_usage(project, instance.tier, instance.capacity_gib, instance.location):
            yield usage.by(holder)


def _pool(stack: str, project: str, pool: Pool) -> Iterator[Charge]:
    spec = pool.spec
    field, value = ("max_nodes", spec.max_nodes) if pool.machine.kind == "gpu" else ("slices", spec.slices)
    vms = VmUsage(
        project=project,
        machine_type=spec.machine_type,
        nodes=pool.max_nodes,
        capacity=spec.capacity,
        location=pool.zone or pool.region,
        disk_type=spec.boot_disk.type_on(pool.machine),
        disk_gb=spec.boot_disk.size_gb,
    )
    least = max(1, spec.min_nodes, spec.min_slices)
    for usage in vm_usage(vms):
        yield usage.by(Holder(stack, pool.path, pool.name, (*pool.path, field), usage.amount / value, least))


def _system_pool(stack: str, project: str, cluster_name: str, cluster: Cluster) -> Iterator[Charge]:
    spec = cluster.system_pool
    path: Path = ("clusters", cluster_name, "system_pool")
    vms = VmUsage(
        project=project,
        machine_type=spec.machine_type,
        nodes=spec.max_nodes,
        capacity="on-demand",
        location=cluster.location,
        disk_type=spec.boot_disk.type_on(MACHINE_TYPES[spec.machine_type]),
        disk_gb=spec.boot_disk.size_gb,
    )
    for usage in vm_usage(vms):
        step = usage.amount / spec.max_nodes
        yield usage.by(Holder(stack, path, f"{cluster_name}-system", (*path, "max_nodes"), step, spec.min_nodes))


def _gateways(stack: str, project: str, environment: Environment) -> Iterator[Charge]:
    """One NAT gateway serves all clusters of a region; the first of them stands for it in the file."""
    first: dict[str, str] = {}
    for name, cluster in environment.clusters.items():
        first.setdefault(region_of(cluster.location), name)
    for region, name in first.items():
        for usage in nat_usage(project, region):
            yield usage.by(Holder(stack, ("clusters", name), f"NAT of {region}"))


def _team(stack: str, project: str, team: Team) -> Iterator[Charge]:
    for name, resource in team.vertex.persistent_resources.items():
        path: Path = ("vertex", "persistent_resources", name)
        yield from _persistent_resource(stack, project, name, path, resource)


def _persistent_resource(
    stack: str, project: str, name: str, path: Path, resource: PersistentResource
) -> Iterator[Charge]:
    scales = resource.max_replicas is not None
    replicas = resource.max_replicas or resource.replicas
    vms = VertexUsage(
        project=project,
        machine_type=resource.machine_type,
        replicas=replicas,
        capacity="on-demand",
        region=resource.region,
        disk_type=resource.boot_disk.type,
        disk_gb=resource.boot_disk.size_gb,
    )
    field = (*path, "max_replicas" if scales else "replicas")
    least = resource.replicas if scales else 1
    for usage in vertex_usage(vms):
        yield usage.by(Holder(stack, path, name, field, usage.amount / replicas, least))
