"""Controllers in one cluster, from their Helm charts: Kueue, JobSet, operators, and the scrape of their metrics.

Kueue and JobSet serve metrics over HTTPS to whoever has a token that may read them. Sources, read 2026-11-21: both
charts (names, labels, port), and the examples of GoogleCloudPlatform/prometheus-engine 2ffde4e (the collector's Role).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes import core, rbac, scheduling
from pulumi_kubernetes.apiextensions import CustomResource

from modules.kubernetes_objects import install, metadata
from training_platform.catalog import CHARTS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.pools import SYSTEM_PRIORITY, SYSTEM_PRIORITY_VALUE
from training_platform.resources.kueue import POD_LABELS as KUEUE_POD_LABELS
from training_platform.resources.kueue import kueue_values
from training_platform.resources.operators import OPERATORS, jobset_values
from training_platform.resources.operators import POD_LABELS as JOBSET_POD_LABELS
from training_platform.resources.scope import Scope


def system_priority(name: str, scope: Scope, opts: pulumi.ResourceOptions) -> scheduling.v1.PriorityClass:
    """Register the priority of the platform's own pods, which no team's pod may have."""
    about = metadata(scope, SYSTEM_PRIORITY)
    return scheduling.v1.PriorityClass(name, metadata=about, value=SYSTEM_PRIORITY_VALUE, opts=opts)


@dataclass(frozen=True, kw_only=True)
class KueueArgs:
    """``cluster`` decides sizes and time-outs; ``chart`` is the environment's override of the catalogue's chart."""

    scope: Scope
    cluster_name: str
    cluster: ClusterSpec
    chart: ChartOverride | None = None
    fair_sharing: bool = True


class Kueue(pulumi.ComponentResource):
    """The queueing controller. It needs JobSet's CRD, and every object of Kueue needs the controller to be ready.

    Components that create objects of Kueue depend on this one: they are refused until its webhook answers, and
    their finalizers are taken away by it alone when they are deleted.
    """

    def __init__(self, name: str, args: KueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:kueue:Kueue", name, {}, opts)
        # The CRDs are part of the release: to uninstall it is to delete every queue and workload of every team.
        opts = pulumi.ResourceOptions(parent=self, protect=args.scope.deletion_protection)
        own = kueue_values(args.cluster_name, args.cluster, fair_sharing=args.fair_sharing)
        install(f"{name}-release", CHARTS["kueue"], args.chart, own, opts)
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class JobSetArgs:
    """``chart`` is the environment's override of the catalogue's chart."""

    chart: ChartOverride | None = None


class JobSet(pulumi.ComponentResource):
    """The controller of JobSets: groups of Jobs that start, fail and restart together. Kueue depends on it.

    Helm installs the CRD with the first release and never touches it again: a newer chart's CRD is applied by hand,
    and JobSets outlive the release, which is why nothing protects it.
    """

    def __init__(self, name: str, args: JobSetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:jobset:JobSet", name, {}, opts)
        install(f"{name}-release", CHARTS["jobset"], args.chart, jobset_values(), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class OperatorArgs:
    """``operator`` is a chart of the catalogue, such as ``trainer``; ``chart`` the environment's override of it."""

    operator: str
    chart: ChartOverride | None = None


class Operator(pulumi.ComponentResource):
    """The controller of a kind of job, whose jobs wait in the queues of Kueue. It wants JobSet to be there."""

    def __init__(self, name: str, args: OperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:operators:Operator", name, {}, opts)
        chart, values = CHARTS[args.operator], OPERATORS[args.operator].values
        install(f"{name}-release", chart, args.chart, values, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


API_VERSION = "monitoring.googleapis.com/v1"
COLLECTOR = {"kind": "ServiceAccount", "name": "collector", "namespace": "gmp-system"}
_INTERVAL = "60s"  # samples are what is paid for, and every alert looks back over 10 minutes and more


@dataclass(frozen=True, kw_only=True)
class Controller:
    """The target of a scrape; ``name`` becomes the label ``job`` of its metrics, by which alert rules find it.

    ``reader`` is the chart's ClusterRole that may read them.
    """

    name: str
    namespace: str
    pod_labels: Mapping[str, str]
    reader: str

    @property
    def account(self) -> str:
        """The service account of the scrape, also the name of its Secret and of its binding."""
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
    """Return the spec of a ClusterPodMonitoring; its Secret needs a namespace, which a PodMonitoring's may not have.

    It has no selector of namespaces: any pod with the controller's labels is shown the token, which is why that token
    can read metrics and nothing else. Kueue and JobSet sign their own certificates, hence no verification.
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


@dataclass(frozen=True, kw_only=True)
class ControllerMonitoringArgs:
    """``controller`` is ``KUEUE`` or ``JOBSET``."""

    scope: Scope
    controller: Controller


class ControllerMonitoring(pulumi.ComponentResource):
    """The scrape of one controller; depends on the controller's release, which makes namespace and ClusterRole.

    The cluster fills in the token, which is also in the state, as a secret; with it one can read metrics.
    """

    def __init__(self, name: str, args: ControllerMonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:prometheus:ControllerMonitoring", name, {}, opts)
        secret = self._token(name, args)
        self._bindings(name, args)
        CustomResource(
            f"{name}-scrape",
            api_version=API_VERSION,
            kind="ClusterPodMonitoring",
            metadata=metadata(args.scope, args.controller.name),
            spec=cluster_pod_monitoring(args.controller),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[secret]),  # a scrape without its token is an error
        )
        self.register_outputs({})

    def _token(self, name: str, args: ControllerMonitoringArgs) -> core.v1.Secret:
        """Make the service account and a Secret that the cluster writes a lasting token for it into."""
        controller = args.controller
        account = core.v1.ServiceAccount(
            f"{name}-account",
            metadata=metadata(args.scope, controller.account, controller.namespace),
            automount_service_account_token=False,
            opts=pulumi.ResourceOptions(parent=self),
        )
        of_account = {"kubernetes.io/service-account.name": controller.account}
        return core.v1.Secret(
            f"{name}-token",
            metadata=metadata(args.scope, controller.account, controller.namespace, of_account),
            type="kubernetes.io/service-account-token",
            # The cluster deletes a token whose account is not there.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[account]),
        )

    def _bindings(self, name: str, args: ControllerMonitoringArgs) -> None:
        """Let the account read metrics, and Google's collector read the account's Secret."""
        controller, child = args.controller, pulumi.ResourceOptions(parent=self)
        rbac.v1.ClusterRoleBinding(
            f"{name}-reader",
            metadata=metadata(args.scope, controller.account),
            role_ref=_role_ref("ClusterRole", controller.reader),
            subjects=[
                rbac.v1.SubjectArgs(kind="ServiceAccount", name=controller.account, namespace=controller.namespace)
            ],
            opts=child,
        )
        rbac.v1.Role(
            f"{name}-role",
            metadata=metadata(args.scope, controller.account, controller.namespace),
            rules=[
                rbac.v1.PolicyRuleArgs(
                    api_groups=[""],
                    resources=["secrets"],
                    resource_names=[controller.account],
                    verbs=["get", "list", "watch"],
                )
            ],
            opts=child,
        )
        rbac.v1.RoleBinding(
            f"{name}-collector",
            metadata=metadata(args.scope, controller.account, controller.namespace),
            role_ref=_role_ref("Role", controller.account),
            subjects=[rbac.v1.SubjectArgs(**COLLECTOR)],
            opts=child,
        )


def _role_ref(kind: str, name: str) -> rbac.v1.RoleRefArgs:
    return rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind=kind, name=name)
