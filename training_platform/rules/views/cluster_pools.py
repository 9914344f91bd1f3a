"""Which cluster of a program a pool is of, and which pools a cluster has."""

from __future__ import annotations

from collections import defaultdict

from training_platform.rules.views.gke import Cluster, NodePool
from training_platform.rules.views.gke_settings import ClusterSettings, PoolSettings
from training_platform.rules.views.view import Program


def cluster_of(pool: NodePool, program: Program) -> Cluster | None:
    """Return a pool's cluster; None where another program makes it.

    Raises NeedsUnknown where its name is not known and the program has several clusters, or none.
    """
    clusters = program.of(Cluster)
    if not pool.known("cluster") and len(clusters) == 1:
        return clusters[0]
    return program.once(_by_name).get(pool.cluster)


def settings_of(cluster: Cluster, program: Program) -> ClusterSettings | None:
    """Return the settings of a cluster; None where nobody says any."""
    return program.once(_settings).get(cluster.name)


def settings_of_pool(pool: NodePool, program: Program) -> ClusterSettings | None:
    """Return the settings of a pool's cluster; None where another program makes it. Raises as ``cluster_of`` does."""
    cluster = cluster_of(pool, program)
    return settings_of(cluster, program) if cluster else None


def pools_of(cluster: Cluster, program: Program) -> list[NodePool]:
    """Return the node pools that the program makes in a cluster."""
    return program.once(_pools).get(cluster.name, [])


def pool_settings_of(cluster: Cluster, program: Program) -> list[PoolSettings]:
    """Return the settings of the node pools that the program makes in a cluster."""
    return program.once(_pool_settings).get(cluster.name, [])


def version_of(pool: NodePool, program: Program) -> str | None:
    """Return the version of a pool's nodes, as far as it is written: its own, else its cluster's lowest."""
    if pool.version is not None:
        return pool.version
    cluster = cluster_of(pool, program)
    return cluster.version if cluster else None


def _by_name(program: Program) -> dict[str | None, Cluster]:
    """Return clusters by both of their names, in Google Cloud and in the program; a pool's input may hold either."""
    found: dict[str | None, Cluster] = {each.name: each for each in program.of(Cluster)}
    found.update({each.cluster: each for each in program.of(Cluster) if each.known("cluster")})
    return found


def _settings(program: Program) -> dict[str, ClusterSettings]:
    return {each.name: each for each in program.of(ClusterSettings)}


def _pools(program: Program) -> dict[str, list[NodePool]]:
    found: dict[str, list[NodePool]] = defaultdict(list)
    for pool in program.of(NodePool):
        if cluster := _cluster_if_known(pool, program):
            found[cluster.name].append(pool)
    return found


def _pool_settings(program: Program) -> dict[str, list[PoolSettings]]:
    found: dict[str, list[PoolSettings]] = defaultdict(list)
    for each in program.of(PoolSettings):
        if cluster := _cluster_if_known(each.pool, program):
            found[cluster.name].append(each)
    return found


def _cluster_if_known(pool: NodePool, program: Program) -> Cluster | None:
    return cluster_of(pool, program) if pool.known("cluster") or len(program.of(Cluster)) == 1 else None
