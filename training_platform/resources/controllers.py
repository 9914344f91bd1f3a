"""Controllers in a cluster, installed from Helm charts: Kueue, JobSet, operators, and the collection of their metrics.

Kueue and JobSet serve metrics over HTTPS to clients whose token allows reading them. Sources, read 2026-11-21: both
charts (names, labels, port) and the examples of GoogleCloudPlatform/prometheus-engine 2ffde4e (the collector's Role).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training_platform.catalog import CHARTS
from training_platform.config.expansion import SYSTEM_PRIORITY, SYSTEM_PRIORITY_VALUE, SYSTEM_TOLERATIONS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.kubernetes_objects import (
    CLUSTER_ROLE_BINDING,
    PRIORITY_CLASS,
    ROLE,
    ROLE_BINDING,
    SECRET_OBJECT,
    SERVICE_ACCOUNT_OBJECT,
    account_subject,
    binding,
    kubernetes_object,
    object_type,
    release,
    rules_of_role,
)
from training_platform.resources.kueue import POD_LABELS as KUEUE_POD_LABELS
from training_platform.resources.kueue import kueue_values
from training_platform.resources.operators import OPERATORS
from training_platform.resources.plan import Component, Node, Options, Resource
from training_platform.resources.scope import Scope

MONITORING_API = "monitoring.googleapis.com/v1"


def system_priority(name: str, scope: Scope) -> Resource:
    """Return the priority class of the platform's own pods. Pods of teams may not use it."""
    return kubernetes_object(PRIORITY_CLASS, name, scope, SYSTEM_PRIORITY, {"value": SYSTEM_PRIORITY_VALUE})


def kueue(
    into: Component,
    scope: Scope,
    cluster_name: str,
    cluster: ClusterSpec,
    chart: ChartOverride | None = None,
    *,
    fair_sharing: bool = True,
) -> None:
    """Add the queueing controller. Its size and time-outs depend on ``cluster``.

    It needs JobSet's CRD. All Kueue objects wait for the controller for two reasons. They are refused until its webhook
    responds, and only the controller removes their finalizers when they are deleted.
    """
    # The CRDs are part of the release: uninstalling it deletes every queue and workload of every team.
    options = Options(protect=scope.deletion_protection)
    values = kueue_values(cluster_name, cluster, fair_sharing=fair_sharing)
    release(into, CHARTS["kueue"], chart, values, options=options)


def jobset(into: Component, chart: ChartOverride | None = None) -> None:
    """Add the controller of JobSets: groups of Jobs that start, fail and restart together. Kueue waits for it.

    Helm installs the CRD with the first release and never changes it, so the CRD of a newer chart is applied by hand.
    The controller is not protected, because JobSets survive the deletion of the release.
    """
    release(into, CHARTS["jobset"], chart, jobset_values())


JOBSET_POD_LABELS = {
    "app.kubernetes.io/name": "jobset",
    "app.kubernetes.io/instance": "jobset",
    "app.kubernetes.io/component": "controller",
}
_JOBSET_APART = {
    "weight": 100,
    "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": JOBSET_POD_LABELS}},
}


def jobset_values() -> dict[str, Any]:
    """Return the chart's values: two replicas, because JobSets and their pods are refused while the webhook is down."""
    return {
        "certManager": {"enable": False},
        "prometheus": {"enable": False},  # of the Prometheus operator; ClusterPodMonitoring instead
        "controller": {
            "replicas": 2,
            "leaderElection": {"enable": True},
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            "tolerations": list(SYSTEM_TOLERATIONS),  # the chart takes no class of priority
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_JOBSET_APART]}},
            "resources": {
                "requests": {"cpu": "500m", "memory": "256Mi"},
                "limits": {"cpu": "2", "memory": "4Gi"},
            },
        },
    }


def operator(
    into: Component, name: str, key: str, chart: ChartOverride | None = None, after: Sequence[Node] = ()
) -> Resource:
    """Add the operator for a kind of job that Kueue queues; ``key`` is the key of its chart."""
    return release(into, CHARTS[key], chart, OPERATORS[key].values, name=name, after=after)


COLLECTOR = account_subject("collector", "gmp-system")
_INTERVAL = "60s"  # Google charges by the sample, and every alert looks back over 10 minutes or more


@dataclass(frozen=True, kw_only=True)
class Controller:
    """A controller whose metrics are collected. ``name`` is the label ``job`` of its metrics, which alert rules select.

    ``reader`` is the chart's ClusterRole for reading the metrics.
    """

    name: str
    namespace: str
    pod_labels: Mapping[str, str]
    reader: str

    @property
    def account(self) -> str:
        """The name of the service account that collects metrics. Its Secret and its binding have the same name."""
        return f"{self.name}-metrics-scraper"


KUEUE = Controller(
    name="kueue",
    namespace=CHARTS["kueue"].namespace,
    pod_labels=KUEUE_POD_LABELS,
    reader="kueue-metrics-reader",
)
JOBSET = Controller(
    name="jobset",
    namespace=CHARTS["jobset"].namespace,
    pod_labels=JOBSET_POD_LABELS,
    reader="jobset-metrics-reader",
)


def cluster_pod_monitoring(controller: Controller) -> dict[str, Any]:
    """Return the spec of a ClusterPodMonitoring, which can refer to a Secret in another namespace.

    A PodMonitoring cannot do this. A ClusterPodMonitoring cannot select namespaces, so any pod with the controller's
    labels receives the token. The token can therefore only read metrics. Kueue and JobSet use self-signed certificates,
    so these are not verified.
    """
    secret = {"name": controller.account, "namespace": controller.namespace, "key": "token"}
    return {
        "selector": {"matchLabels": dict(controller.pod_labels)},
        "endpoints": [
            {
                "port": "metrics",
                "scheme": "https",
                "interval": _INTERVAL,
                "tls": {"insecureSkipVerify": True},
                "authorization": {"type": "Bearer", "credentials": {"secret": secret}},
            }
        ],
    }


def controller_monitoring(into: Component, scope: Scope, controller: Controller) -> None:
    """Add the collection of one controller's metrics, after the release that creates its namespace and ClusterRole.

    The cluster generates the token, which can only read metrics. Pulumi's state also contains it, as a secret.
    """
    name = into.name
    account = controller.account
    namespace = controller.namespace
    service_account = into.add(
        kubernetes_object(
            SERVICE_ACCOUNT_OBJECT,
            f"{name}-account",
            scope,
            account,
            {"automountServiceAccountToken": False},
            namespace=namespace,
        )
    )
    secret = kubernetes_object(
        SECRET_OBJECT,
        f"{name}-token",
        scope,
        account,
        {"type": "kubernetes.io/service-account-token"},
        namespace=namespace,
        annotations={"kubernetes.io/service-account.name": account},
    )
    into.add(secret, [service_account])  # the cluster deletes a token whose account does not exist
    _metrics_bindings(into, scope, controller)
    scrape = kubernetes_object(
        object_type(MONITORING_API, "ClusterPodMonitoring"),
        f"{name}-scrape",
        scope,
        controller.name,
        {"spec": cluster_pod_monitoring(controller)},
    )
    into.add(scrape, [secret])  # a scrape without its token is an error


def _metrics_bindings(into: Component, scope: Scope, controller: Controller) -> None:
    """Allow the service account to read metrics, and allow Google's collector to read the account's Secret."""
    name = into.name
    account = controller.account
    namespace = controller.namespace
    reads_metrics = binding("ClusterRole", controller.reader, [account_subject(account, namespace)])
    into.add(kubernetes_object(CLUSTER_ROLE_BINDING, f"{name}-reader", scope, account, reads_metrics))
    reads_secret = rules_of_role(
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [account], "verbs": ["get", "list", "watch"]}
    )
    into.add(kubernetes_object(ROLE, f"{name}-role", scope, account, reads_secret, namespace=namespace))
    collects = binding("Role", account, [COLLECTOR])
    into.add(kubernetes_object(ROLE_BINDING, f"{name}-collector", scope, account, collects, namespace=namespace))
