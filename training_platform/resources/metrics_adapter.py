"""The adapter that provides metrics of Cloud Monitoring to autoscalers through Kubernetes' custom metrics API.

GKE does not install it. This is Google's published manifest without the external metrics API, which nothing here uses.
Source: GoogleCloudPlatform/k8s-stackdriver 673c7dd, custom-metrics-stackdriver-adapter, and GKE docs, optimize Pod
autoscaling based on metrics, read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from training_platform.catalog import IMAGES
from training_platform.config.expansion import SYSTEM_PRIORITY, SYSTEM_TOLERATIONS
from training_platform.resources.kubernetes_objects import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    IDENTITY,
    ROLE_BINDING,
    SERVICE_ACCOUNT_OBJECT,
    account_subject,
    binding,
    kubernetes_object,
    object_type,
    rules_of_role,
)
from training_platform.resources.plan import Component, Node, Resource
from training_platform.resources.resource_types import NAMESPACE as NAMESPACE_TYPE
from training_platform.resources.scope import Scope, account_id
from training_platform.resources.team_account import (
    WORKLOAD_USER,
    KubernetesAccount,
    acting,
    project_role,
    service_account,
)

NAMESPACE = "custom-metrics"
NAME = "custom-metrics-stackdriver-adapter"
ROLE = "roles/monitoring.viewer"
GROUP = "custom.metrics.k8s.io"
VERSIONS = {"v1beta1": 100, "v1beta2": 200}  # with the priority of each
_LABELS = {"run": NAME}
_PORT = 443
READ_PODS = {"apiGroups": [""], "resources": ["pods", "nodes", "nodes/stats"], "verbs": ["get", "list", "watch"]}


def adapter_account_id(scope: Scope) -> str:
    """Return the id of the adapter's service account in Google Cloud, which all clusters of an environment share."""
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
    """Return the spec of an APIService. The adapter signs its own certificate, so it is not verified."""
    return {
        "group": GROUP,
        "version": version,
        "groupPriorityMinimum": 100,
        "versionPriority": VERSIONS[version],
        "insecureSkipTLSVerify": True,
        "service": {"name": NAME, "namespace": NAMESPACE},
    }


def metrics_account(into: Component, scope: Scope) -> Resource:
    """Add the service account that the adapters of all clusters use to read the project's metrics.

    The adapters use it through workload identity.
    """
    title = f"Metrics for autoscalers of {scope.prefix}"
    account = into.add(service_account(f"{into.name}-account", scope, adapter_account_id(scope), title))
    into.add(project_role(f"{into.name}-viewer", scope.project, ROLE, account.output("member")))
    return account


def let_pods_act(into: Component, account: Resource, scope: Scope, clusters: Sequence[Node]) -> None:
    """Allow the adapter's pods to act as the account. This waits for a cluster, which creates the identity pool."""
    pod = KubernetesAccount(project=scope.project, namespace=NAMESPACE, name=NAME)
    into.add(acting(f"{into.name}-workload", account, WORKLOAD_USER, pod.member), clusters)


def metrics_adapter(into: Component, scope: Scope, account: Any) -> None:
    """Add the adapter to one cluster, and the API that autoscalers call; ``account`` is an e-mail address."""
    name = into.name
    namespace = into.add(kubernetes_object(NAMESPACE_TYPE, f"{name}-namespace", scope, NAMESPACE, {}))
    pods = kubernetes_object(
        SERVICE_ACCOUNT_OBJECT,
        f"{name}-service-account",
        scope,
        NAME,
        {},
        namespace=NAMESPACE,
        annotations={IDENTITY: account},
    )
    into.add(pods, [namespace])
    for right in _rights(name, scope):
        into.add(right, [namespace])
    for api_version, kind, spec in (
        ("apps/v1", "Deployment", adapter_deployment()),
        ("v1", "Service", adapter_service()),
    ):
        type_ = object_type(api_version, kind)
        logical_name = f"{name}-{kind.lower()}"
        into.add(kubernetes_object(type_, logical_name, scope, NAME, {"spec": spec}, namespace=NAMESPACE), [namespace])
    for version in VERSIONS:
        type_ = object_type("apiregistration.k8s.io/v1", "APIService")
        fields = {"spec": api_service(version)}
        into.add(kubernetes_object(type_, f"{name}-{version}", scope, f"{version}.{GROUP}", fields), [namespace])


def _rights(name: str, scope: Scope) -> Iterator[Resource]:
    """Yield the adapter's permissions: to authenticate callers, and to read the pods and nodes that have metrics."""
    reader = f"{NAME}-reader"
    yield kubernetes_object(CLUSTER_ROLE, f"{name}-reader", scope, reader, rules_of_role(READ_PODS))
    pods = [account_subject(NAME, NAMESPACE)]
    for suffix, role in (("reader", reader), ("delegator", "system:auth-delegator")):
        fields = binding("ClusterRole", role, pods)
        yield kubernetes_object(CLUSTER_ROLE_BINDING, f"{name}-{suffix}-binding", scope, f"{NAME}-{suffix}", fields)
    fields = binding("Role", "extension-apiserver-authentication-reader", pods)
    yield kubernetes_object(ROLE_BINDING, f"{name}-authentication", scope, NAME, fields, namespace="kube-system")
