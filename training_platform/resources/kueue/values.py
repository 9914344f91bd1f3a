"""Values of Kueue's chart for one cluster. Source: kubernetes-sigs/kueue v0.19.2 charts/kueue, read 2026-11-21."""

from __future__ import annotations

from math import ceil
from typing import Any

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.pools import cluster_pools
from training_platform.resources.kueue.configuration import configuration_text

POD_LABELS = {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/instance": "kueue"}


def values(cluster_name: str, cluster: ClusterSpec, *, fair_sharing: bool = True) -> dict[str, Any]:
    """Return the chart's values; sizes follow the most VMs that the cluster can have."""
    pools = list(cluster_pools(cluster_name, cluster))
    nodes = sum(pool.max_nodes for pool in cluster.cpu_pools.values()) + sum(pool.max_nodes for pool in pools)
    return {
        # A ServiceMonitor of the Prometheus operator, which no cluster of ours has: ClusterPodMonitoring instead.
        "enablePrometheus": False,
        "enableCertManager": False,
        "managerConfig": {
            "controllerManagerConfigYaml": configuration_text(
                (pool.spec.capacity for pool in pools), fair_sharing=fair_sharing, pods=cluster.queues_pods
            )
        },
        "controllerManager": {
            # The webhooks fail closed, so that no Job starts while no replica answers.
            "replicas": 2,
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            "topologySpreadConstraints": [_SPREAD],
            "manager": {"resources": resources(nodes)},
        },
    }


def resources(nodes: int) -> dict[str, dict[str, str]]:
    """Return requests and limits of the controller; the chart's 512 MiB are for small clusters.

    Limits grow with the cluster as xpk has them: 32 MiB and 0.004 cores a VM, at least 4 GiB and 2 cores.
    Source: AI-Hypercomputer/xpk 367c838 core/kueue_manager.py.
    """
    memory_mib = max(4096, 32 * nodes)
    return {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": str(max(2, ceil(nodes * 4 / 1000))), "memory": f"{memory_mib}Mi"},
    }


_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": POD_LABELS},
}
