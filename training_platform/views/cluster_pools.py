"""Which cluster of a program a pool is of, and which pools a cluster has."""

from __future__ import annotations

from collections import defaultdict

from training_platform.views.cluster import ClusterView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.program import Program


def cluster_of(pool: NodePoolView, program: Program) -> ClusterView | None:
    """Return a pool's cluster; None where another program makes it.

    Raises NeedsUnknown where its name is not known and the program has several clusters, or none.
    """
    clusters = program.all(ClusterView)
    if not pool.known("cluster") and len(clusters) == 1:
        return clusters[0]
    return program.once(_by_name).get(pool.cluster)


def pools_of(cluster: ClusterView, program: Program) -> list[NodePoolView]:
    """Return the node pools that the program makes in a cluster."""
    return program.once(_pools).get(cluster.name, [])


def version_of(pool: NodePoolView, program: Program) -> str | None:
    """Return the version of a pool's nodes, as far as it is written: its own, else its cluster's lowest."""
    if pool.version is not None:
        return pool.version
    cluster = cluster_of(pool, program)
    return cluster.version if cluster else None


def _by_name(program: Program) -> dict[str | None, ClusterView]:
    """Return clusters by both of their names, in Google Cloud and in the program; a pool's input may hold either."""
    found: dict[str | None, ClusterView] = {each.name: each for each in program.all(ClusterView)}
    found.update({each.cluster: each for each in program.all(ClusterView) if each.known("cluster")})
    return found


def _pools(program: Program) -> dict[str, list[NodePoolView]]:
    found: dict[str, list[NodePoolView]] = defaultdict(list)
    only = len(program.all(ClusterView)) == 1
    for pool in program.all(NodePoolView):
        cluster = cluster_of(pool, program) if only or pool.known("cluster") else None
        if cluster:
            found[cluster.name].append(pool)
    return found
