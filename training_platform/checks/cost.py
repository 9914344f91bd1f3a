"""Computes the hourly cost of a stack's resources, for the minimum and for the maximum number of machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.locations import region_of
from training_platform.catalog.prices import LIST, Cost, PriceBook, local_ssd_cost, machines_cost, service_cost
from training_platform.config.expansion import ExpandedPool, pools
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import Environment
from training_platform.config.model.storage import DataSetSpec
from training_platform.config.model.team import Team
from training_platform.resources.filestore import most_gib


def stack_cost(section: Environment | Team, book: PriceBook = LIST) -> Cost:
    """Return the hourly cost of a stack: machines with their disks, Filestore, clusters, gateways."""
    parts = _environment(section, book) if isinstance(section, Environment) else _team(section, book)
    return sum(parts, Cost())


def _environment(environment: Environment, book: PriceBook) -> Iterable[Cost]:
    for pool in pools(environment):
        yield from _pool(pool, book)
    for cluster in environment.own_clusters.values():
        yield from _cluster(cluster, book)
    if environment.network is None:
        yield from _network(environment, book)
    yield from _files(environment, book)
    for data in environment.data_sets.values():
        yield from _data_set(data, book)


def _files(environment: Environment, book: PriceBook) -> Iterator[Cost]:
    """Yield the costs of Filestore and Lustre, including the most that claims may create from a StorageClass."""
    for instance in environment.filestore.values():
        name = f"filestore-{instance.tier}"
        custom = bool(instance.iops or instance.iops_per_tib)
        # With them a GiB has another price (Filestore pricing page, read 2026-11-22), which only own prices can have.
        if custom and name not in book.services:
            yield Cost(unpriced=(f"{name} with its own IOPS",))
        else:
            yield service_cost(name, region_of(instance.location), instance.capacity_gib, instance.capacity_gib, book)
        if custom:
            yield Cost(unpriced=("IOPS of Filestore",))
    for cluster in environment.clusters.values():
        for spec in cluster.storage_classes.values():
            yield service_cost(f"filestore-{spec.tier}", region_of(cluster.location), 0, most_gib(spec), book)
    for lustre in environment.lustre.values():
        gib = lustre.capacity_gib
        yield service_cost(f"lustre-{lustre.mbps_per_tib}", region_of(lustre.location), gib, gib, book)


def _data_set(data: DataSetSpec, book: PriceBook) -> Iterator[Cost]:
    """Yield the cost of a disk that holds a data set. The cost of buckets and instances is counted elsewhere."""
    if disk := data.hyperdisk_ml:
        region = region_of(disk.zone)
        mibps = disk.throughput_mibps
        yield service_cost("hyperdisk-ml", region, disk.size_gib, disk.size_gib, book)
        if mibps:
            yield service_cost("hyperdisk-ml-throughput", region, mibps, mibps, book)
        else:
            yield Cost(unpriced=("default throughput of Hyperdisk ML",))


def _pool(pool: ExpandedPool, book: PriceBook) -> Iterator[Cost]:
    """Yield the costs of a node pool: VMs, boot disks, and additional local SSD."""
    spec = pool.spec
    counts = (pool.min_nodes, pool.max_nodes)
    yield machines_cost(pool.machine, spec.charged, pool.region, *counts, book=book)
    yield _disks(spec.boot_disk.type_on(pool.machine), spec.boot_disk.size_gb, pool.region, *counts, book=book)
    if spec.local_ssd.count and not pool.machine.local_ssd.bundled:
        gib = spec.local_ssd.count * pool.machine.local_ssd.partition_gib
        yield local_ssd_cost(gib, spec.charged, pool.region, *counts, book=book)


def _cluster(cluster: ClusterSpec, book: PriceBook) -> Iterator[Cost]:
    region = region_of(cluster.location)
    for pool in cluster.pools_without_chips.values():
        machine = MACHINE_TYPES[pool.machine_type]
        counts = (pool.min_nodes, pool.max_nodes)
        yield machines_cost(machine, "on-demand", region, *counts, book=book)
        yield _disks(pool.boot_disk.type_on(machine), pool.boot_disk.size_gb, region, *counts, book=book)
    yield service_cost("cluster-fee", region, 1, 1, book)


def _network(environment: Environment, book: PriceBook) -> Iterator[Cost]:
    for region in dict.fromkeys(region_of(cluster.location) for cluster in environment.own_clusters.values()):
        yield service_cost("nat-gateway", region, 1, 1, book)
        addresses = environment.nat_addresses or 1
        yield service_cost("address", region, addresses, addresses, book)


def _disks(kind: str, size_gb: int, region: str, min_disks: int, max_disks: int, *, book: PriceBook) -> Cost:
    return service_cost(kind, region, size_gb * min_disks, size_gb * max_disks, book)


def _team(team: Team, book: PriceBook) -> Iterable[Cost]:
    for bucket in team.buckets.values():
        if size := bucket.size_gib:
            yield service_cost(f"bucket-{bucket.storage_class}", bucket.location, size, size, book)
    for resource in team.vertex.persistent_resources.values():
        for pool in resource.pools.values():
            counts = (pool.replicas, pool.max_vms)
            yield machines_cost(pool.machine, "on-demand", resource.region, *counts, book=book)
