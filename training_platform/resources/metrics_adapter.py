"""The adapter that gives metrics of Cloud Monitoring to autoscalers, as Kubernetes' API of custom metrics.

GKE does not install it: Google publishes it as a manifest, repeated here without the API of external metrics, which
nothing here uses. Source: GoogleCloudPlatform/k8s-stackdriver 673c7dd, custom-metrics-stackdriver-adapter, and GKE
docs, optimize Pod autoscaling based on metrics, read 2026-11-22.
"""

from __future__ import annotations

from typing import Any

from training_platform.catalog import IMAGES
from training_platform.config.pools import SYSTEM_PRIORITY, SYSTEM_TOLERATIONS
from training_platform.resources.scope import Scope, account_id

NAMESPACE = "custom-metrics"
NAME = "custom-metrics-stackdriver-adapter"
ROLE = "roles/monitoring.viewer"
GROUP = "custom.metrics.k8s.io"
VERSIONS = {"v1beta1": 100, "v1beta2": 200}  # with the priority of each
_LABELS = {"run": NAME}
_PORT = 443
READ_PODS = {"api_groups": [""], "resources": ["pods", "nodes", "nodes/stats"], "verbs": ["get", "list", "watch"]}


def adapter_account_id(scope: Scope) -> str:
    """Return the id of the adapter's service account in Google Cloud, one for all clusters of an environment."""
    return account_id(scope.prefix, "metrics")


def adapter_deployment() -> dict[str, Any]:
    """Return the spec of the adapter's Deployment, on the system pool."""
    room = {"cpu": "250m", "memory": "200Mi"}
    container = {
        "name": "adapter",
        "image": IMAGES["metrics-adapter"],
        # The model of resources that Managed Prometheus writes to.
        "command": ["/adapter", "--use-new-resource-model=true", "--fallback-for-container-metrics=true"],
        "resources": {"requests": room, "limits": room},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": _PORT, "scheme": "HTTPS"}},
    }
    return {
        "replicas": 1,
        "selector": {"matchLabels": _LABELS},
        "template": {
            "metadata": {"labels": _LABELS},
            "spec": {
                "serviceAccountName": NAME,
                "priorityClassName": SYSTEM_PRIORITY,
                "tolerations": list(SYSTEM_TOLERATIONS),
                "containers": [container],
            },
        },
    }


def adapter_service() -> dict[str, Any]:
    """Return the spec of the adapter's Service."""
    return {"selector": _LABELS, "ports": [{"port": _PORT, "targetPort": _PORT}]}


def api_service(version: str) -> dict[str, Any]:
    """Return the spec of an APIService; the adapter signs its own certificate, hence no verification."""
    return {
        "group": GROUP,
        "version": version,
        "groupPriorityMinimum": 100,
        "versionPriority": VERSIONS[version],
        "insecureSkipTLSVerify": True,
        "service": {"name": NAME, "namespace": NAMESPACE},
    }
