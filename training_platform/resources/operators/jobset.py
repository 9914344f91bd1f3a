"""Values of JobSet's chart. Source: kubernetes-sigs/jobset v0.12.0 charts/jobset, read 2026-11-21."""

from __future__ import annotations

from typing import Any

POD_LABELS = {
    "app.kubernetes.io/name": "jobset",
    "app.kubernetes.io/instance": "jobset",
    "app.kubernetes.io/component": "controller",
}


def values() -> dict[str, Any]:
    """Return the chart's values: two replicas, since JobSets and their pods are refused while no webhook answers."""
    return {
        "certManager": {"enable": False},
        "prometheus": {"enable": False},  # of the Prometheus operator; ClusterPodMonitoring instead
        "controller": {
            "replicas": 2,
            "leaderElection": {"enable": True},
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_APART]}},
            "resources": {
                "requests": {"cpu": "500m", "memory": "256Mi"},
                "limits": {"cpu": "2", "memory": "4Gi"},
            },
        },
    }


_APART = {
    "weight": 100,
    "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": POD_LABELS}},
}
