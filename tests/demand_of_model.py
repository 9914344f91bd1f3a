"""Demand a second time: summed over the model of a stack file, for tests to hold against the sum over views."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from training_platform.catalog import FILESTORE_TIERS, MACHINE_TYPES
from training_platform.catalog.locations import region_of
from training_platform.config.expansion import SYSTEM_POOL_SURGE, ExpandedPool, auto_provisioned_chips, cluster_pools
from training_platform.config.gpu_fabric import gpu_fabrics
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.node_pool import CpuPoolSpec
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import ResourcePoolSpec, Team, pool_path
from training_platform.config.names import cpu_pool_name
from training_platform.config.reading.finding import Path
from training_platform.config.workspace import Workspace
from training_platform.quota.alternatives import pool_vms
from training_platform.quota.charges import (
    Charge,
    Holder,
    VmUsage,
    accelerator_usage,
    class_usage,
    filestore_usage,
    lustre_usage,
    nat_addresses,
    nat_usage,
    network_usage,
    upgrade_label,
    upgrade_vms,
    vertex_usage,
    vm_usage,
)
from training_platform.resources.filestore import most_gib
from training_platform.resources.network import NAT_MIN_PORTS, own_ranges


def model_demand(stack: Stack, workspace: Workspace) -> list[Charge]:
    """Return every charge of a stack; none for a file that the model rejects, whose findings say why."""
    project = workspace.project_of(stack)
    if project is None:
        return []
    if stack.environment:
        return list(_environment(stack.name, project, stack.environment))
    return list(_team(stack.name, project, stack.team)) if stack.team else []


def by_holder(charges: Iterable[Charge]) -> dict[tuple[object, ...], float]:
    """Return what each holder charges to each limit; a field's lowest value is 1 where it may be 0."""
    totals: dict[tuple[object, ...], float] = defaultdict(float)
    for keys, amount, unit, holder in charges:
        totals[keys, unit, holder._replace(base=max(1, holder.base))] += amount
    return {key: amount for key, amount in totals.items() if amount}


def _environment(stack: str, project: str, environment: Environment) -> Iterator[Charge]:
    for name, cluster in environment.clusters.items():
        yield from _cpu_pools(stack, project, name, cluster)
        if cluster.existing is None:
            counts = {
                "subnetworks": int(own_ranges(cluster).name is None),
                "firewalls": int(not environment.host_project),
            }
            yield from _counted(project, Holder(stack, ("clusters", name), name), counts)
        for pool in cluster_pools(name, cluster):
            yield from _pool(stack, project, pool)
        yield from _gpu_networks(stack, project, name, cluster)
        yield from _claims(stack, project, name, cluster)
        yield from _auto_provisioning(stack, project, name, cluster)
    if environment.network is None:
        yield from _network(stack, project, environment)
        yield from _gateways(stack, project, environment)
    for region in environment.network_attachments:
        yield from _counted(project, Holder(stack, ("network_attachments", region), region), {"subnetworks": 1})
    for name, instance in environment.filestore.items():
        path: Path = ("filestore", name)
        holder = Holder(stack, path, name, (*path, "capacity_gib"), 1, instance.capacity_gib)
        for usage in filestore_usage(project, instance.tier, instance.capacity_gib, instance.location):
            yield usage.by(holder)
    for name, lustre in environment.lustre.items():
        holder = Holder(stack, ("lustre", name), name, ("lustre", name, "capacity_gib"), 1, lustre.capacity_gib)
        for usage in lustre_usage(project, lustre.mbps_per_tib, lustre.capacity_gib, lustre.location):
            yield usage.by(holder)


def _claims(stack: str, project: str, name: str, cluster: ClusterSpec) -> Iterator[Charge]:
    """Yield what claims of teams may make of the StorageClasses that a cluster declares."""
    for key, spec in cluster.storage_classes.items():
        path: Path = ("clusters", name, "storage_classes", key)
        tier = FILESTORE_TIERS[spec.tier].csi_tier
        holder = Holder(stack, path, key, (*path, "teams"))
        yield from (usage.by(holder) for usage in class_usage(project, tier, most_gib(spec), cluster.location))


def _pool(stack: str, project: str, pool: ExpandedPool) -> Iterator[Charge]:
    spec = pool.spec
    field, value = ("max_nodes", spec.max_nodes) if pool.machine.kind == "gpu" else ("slices", spec.slices)
    vms = pool_vms(project, pool)
    minimum = max(1, spec.min_nodes, spec.min_slices)
    section = pool.path
    name = pool.name
    path = (*section, field)
    for keys, amount, unit in vm_usage(vms):
        yield Charge(keys, amount, unit, Holder(stack, section, name, path, amount / value, minimum))
    if pool.multi_host or spec.charged == "flex-start":
        return  # a slice is recreated as one, and flex-start VMs are replaced as they end
    blue_green = spec.upgrades.strategy == "blue-green"
    more = upgrade_vms(pool.max_nodes, blue_green=blue_green, max_surge=spec.upgrades.max_surge)
    yield from _upgrade(vms._replace(nodes=more), Holder(stack, pool.path, pool.name, (*pool.path, "upgrades")))


def _upgrade(vms: VmUsage, holder: Holder) -> Iterator[Charge]:
    """Yield what VMs charge that a pool has only while it is upgraded."""
    if vms.nodes:
        holder = holder._replace(label=upgrade_label(holder.label))
        yield from (usage.by(holder) for usage in vm_usage(vms))


def _cpu_pools(stack: str, project: str, name: str, cluster: ClusterSpec) -> Iterator[Charge]:
    for path, spec in cluster.pools_without_chips.items():
        holder = Holder(stack, ("clusters", name, *path), cpu_pool_name(name, path, spec.machine_type))
        yield from _cpu_pool(project, holder, spec, cluster)


def _cpu_pool(project: str, holder: Holder, spec: CpuPoolSpec, cluster: ClusterSpec) -> Iterator[Charge]:
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
        section = holder.path[: 3 if "fallback_machine_types" in holder.path else None]  # that of the system pool
        yield usage.by(holder._replace(field=(*section, "max_nodes"), step=step, base=spec.min_nodes))
    more = upgrade_vms(spec.max_nodes, blue_green=False, max_surge=SYSTEM_POOL_SURGE)
    yield from _upgrade(vms._replace(nodes=more), holder._replace(field=holder.path))


def _auto_provisioning(stack: str, project: str, name: str, cluster: ClusterSpec) -> Iterator[Charge]:
    """Yield what GKE may add by itself: of each limit, what the cluster's own pools leave of it."""
    path: Path = ("clusters", name, "auto_provisioning")
    spec = cluster.auto_provisioning
    if not spec:
        return
    location = spec.zones[0] if len(spec.zones) == 1 else cluster.location
    for label, chips in auto_provisioned_chips(name, cluster).items():
        holder = Holder(stack, path, f"auto-provisioning of {name}", (*path, "accelerators", label), 1)
        if not chips:
            continue
        for usage in accelerator_usage(project, label, chips, location, spec.cpu):
            yield usage.by(holder)


def _network(stack: str, project: str, environment: Environment) -> Iterator[Charge]:
    """Yield the charges of the VPC and its single resources; DNS zones have no known quota id."""
    lustre = bool(environment.private_services_range and environment.lustre)
    yield from _counted(project, Holder(stack, (), "network"), {"networks": 1, "firewalls": int(lustre)})


def _counted(project: str, holder: Holder, counts: Mapping[str, int], region: str = "") -> Iterator[Charge]:
    for quota, count in counts.items():
        if count:
            yield network_usage(project, quota, count, region).by(holder)


def _gpu_networks(stack: str, project: str, name: str, cluster: ClusterSpec) -> Iterator[Charge]:
    """Yield the charges of the networks between a cluster's GPUs."""
    vpcs = [vpc for fabric in gpu_fabrics(name, cluster).values() for vpc in fabric.vpcs]
    if vpcs:
        holder = Holder(stack, ("clusters", name, "gpu_networks"), f"GPU networks of {name}")
        counts = {
            "networks": len(vpcs),
            "subnetworks": sum(len(vpc.nics) for vpc in vpcs),
            "firewalls": sum(vpc.profile is None for vpc in vpcs),  # those for RDMA take no rules
        }
        yield from _counted(project, holder, counts)


def _gateways(stack: str, project: str, environment: Environment) -> Iterator[Charge]:
    """One NAT gateway serves all clusters of a region; the first cluster is its place in the file."""
    first: dict[str, str] = {}
    vms: Counter[str] = Counter()
    for name, cluster in environment.own_clusters.items():
        region = region_of(cluster.location)
        first.setdefault(region, name)
        vms[region] += sum(pool.max_nodes for pool in cluster.pools_without_chips.values())
        vms[region] += sum(pool.max_nodes for pool in cluster_pools(name, cluster))
    for region, name in first.items():
        addresses = environment.nat_addresses or nat_addresses(vms[region], NAT_MIN_PORTS)
        holder = Holder(stack, ("clusters", name), f"NAT of {region}")
        gateway = holder._replace(disputed=not environment.nat_addresses)
        yield from (usage.by(gateway) for usage in nat_usage(project, region, addresses))
        yield from _counted(project, holder, {"routers": 1, "static-addresses": environment.nat_addresses}, region)


def _team(stack: str, project: str, team: Team) -> Iterator[Charge]:
    for name, resource in team.vertex.persistent_resources.items():
        path: Path = ("vertex", "persistent_resources", name)
        for key, pool in resource.pools.items():
            label = "-".join((name, *pool_path(key)[1:]))
            yield from _resource_pool(Holder(stack, (*path, *pool_path(key)), label), project, resource.region, pool)


def _resource_pool(holder: Holder, project: str, region: str, pool: ResourcePoolSpec) -> Iterator[Charge]:
    scales = pool.max_replicas is not None
    vms = VmUsage(
        project=project,
        machine_type=pool.machine_type,
        nodes=pool.max_vms,
        capacity="on-demand",
        location=region,
        disk_type=pool.boot_disk.type,
        disk_gb=pool.boot_disk.size_gb,
        accelerator_type=pool.machine.vertex_gpus,
        accelerator_count=pool.machine.chips,
    )
    field = (*holder.path, "max_replicas" if scales else "replicas")
    minimum = pool.replicas if scales else 1
    for usage in vertex_usage(vms):
        yield usage.by(
            holder._replace(field=field, step=usage.amount / pool.max_vms if pool.max_vms else 0, base=minimum)
        )
