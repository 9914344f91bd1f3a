"""Model servers of teams, and the adapter that gives their metrics to autoscalers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects, serviceaccount
from pulumi_kubernetes import core, rbac

from modules.controllers import API_VERSION
from modules.kubernetes_objects import metadata, plain_object
from modules.team_account import KubernetesAccount, workload_member
from training_platform.config.model.workloads import ServerSpec
from training_platform.config.pools import Flavor
from training_platform.resources.metrics_adapter import (
    GROUP,
    NAME,
    NAMESPACE,
    READ_PODS,
    ROLE,
    VERSIONS,
    adapter_account_id,
    adapter_deployment,
    adapter_service,
    api_service,
)
from training_platform.resources.scope import Scope
from training_platform.resources.serving import (
    REPLACED,
    SKIP_AWAIT,
    autoscaler,
    deployment,
    leader_worker_set,
    object_name,
    pod_monitoring,
    pods_kind,
    server_labels,
    service,
    set_annotations,
    vms_of,
)


@dataclass(frozen=True, kw_only=True)
class ModelServerArgs:
    """``key`` is the server's in the team's file, and ``team`` the name of queue and namespace."""

    scope: Scope
    key: str
    team: str
    spec: ServerSpec
    flavor: Flavor
    namespace: pulumi.Input[str]


class ModelServer(pulumi.ComponentResource):
    """Pods of a model server behind one address, as many as their load asks for and the team's queue admits."""

    def __init__(self, name: str, args: ModelServerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:serving:ModelServer", name, {}, opts)
        key, spec = args.key, args.spec
        self._pods(name, args)
        for role, version, kind, what in (
            ("service", "v1", "Service", service(key, spec)),
            ("metrics", API_VERSION, "PodMonitoring", pod_monitoring(key, spec)),
            ("autoscaler", "autoscaling/v2", "HorizontalPodAutoscaler", autoscaler(key, spec, args.flavor)),
        ):
            about = metadata(args.scope, object_name(key), args.namespace, SKIP_AWAIT)
            plain_object(f"{name}-{role}", (version, kind), about, what, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})

    def _pods(self, name: str, args: ModelServerArgs) -> None:
        """Register what makes the pods: a Deployment, or a LeaderWorkerSet where a replica is of several VMs."""
        spec, flavor = args.spec, args.flavor
        several = vms_of(spec, flavor) > 1
        role, pods = ("groups", leader_worker_set) if several else ("deployment", deployment)
        annotations = {**SKIP_AWAIT, **(set_annotations(flavor) if several else {})}
        labels = server_labels(args.team, spec)
        about = metadata(args.scope, object_name(args.key), args.namespace, annotations, labels)
        replaced = REPLACED if several else None
        opts = pulumi.ResourceOptions(parent=self, replace_on_changes=replaced, delete_before_replace=several)
        plain_object(f"{name}-{role}", pods_kind(spec, flavor), about, pods(args.key, spec, flavor, args.scope), opts)


_RBAC = "rbac.authorization.k8s.io"


class MetricsAccount(pulumi.ComponentResource):
    """The account that reads metrics of the project: the adapter's of every cluster, by workload identity."""

    email: pulumi.Output[str]

    def __init__(self, name: str, scope: Scope, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:serving:MetricsAccount", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=adapter_account_id(scope),
            project=scope.project,
            display_name=f"Metrics for autoscalers of {scope.prefix}",
            opts=child,
        )
        projects.IAMMember(f"{name}-viewer", project=scope.project, role=ROLE, member=account.member, opts=child)
        self.email, self._name, self._account, self._project = account.email, name, account.name, scope.project
        self.register_outputs({"email": self.email})

    def let_in(self, clusters: Sequence[pulumi.Resource]) -> None:
        """Let the adapter's pods act as the account: the project has a pool of identities once it has a cluster."""
        pod = KubernetesAccount(project=self._project, namespace=NAMESPACE, name=NAME)
        serviceaccount.IAMMember(
            f"{self._name}-workload",
            service_account_id=self._account,
            role="roles/iam.workloadIdentityUser",
            member=workload_member(pod),
            opts=pulumi.ResourceOptions(parent=self, depends_on=clusters),
        )


@dataclass(frozen=True, kw_only=True)
class MetricsAdapterArgs:
    """``account`` is the email address of the ``MetricsAccount``."""

    scope: Scope
    account: pulumi.Input[str]


class MetricsAdapter(pulumi.ComponentResource):
    """The adapter in one cluster, and the API that autoscalers ask it by."""

    def __init__(self, name: str, args: MetricsAdapterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:serving:MetricsAdapter", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = core.v1.Namespace(f"{name}-namespace", metadata=metadata(args.scope, NAMESPACE), opts=child)
        self._inside = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        core.v1.ServiceAccount(
            f"{name}-service-account",
            metadata=metadata(args.scope, NAME, NAMESPACE, {"iam.gke.io/gcp-service-account": args.account}),
            opts=self._inside,
        )
        self._grant(name, args.scope)
        objects = [("apps/v1", "Deployment", NAME, adapter_deployment()), ("v1", "Service", NAME, adapter_service())]
        objects += [
            ("apiregistration.k8s.io/v1", "APIService", f"{version}.{GROUP}", api_service(version))
            for version in VERSIONS
        ]
        for api_version, kind, called, spec in objects:
            plain_object(
                f"{name}-{kind.lower()}" if called == NAME else f"{name}-{called.partition('.')[0]}",
                (api_version, kind),
                metadata(args.scope, called, NAMESPACE if called == NAME else None),
                spec,
                self._inside,
            )
        self.register_outputs({})

    def _grant(self, name: str, scope: Scope) -> None:
        """Let the adapter ask who calls it, and see the pods and nodes whose metrics it looks for."""
        rbac.v1.ClusterRole(
            f"{name}-reader",
            metadata=metadata(scope, f"{NAME}-reader"),
            rules=[rbac.v1.PolicyRuleArgs(**READ_PODS)],
            opts=self._inside,
        )
        account = rbac.v1.SubjectArgs(kind="ServiceAccount", name=NAME, namespace=NAMESPACE)
        for suffix, role in (("reader", f"{NAME}-reader"), ("delegator", "system:auth-delegator")):
            rbac.v1.ClusterRoleBinding(
                f"{name}-{suffix}-binding",
                metadata=metadata(scope, f"{NAME}-{suffix}"),
                role_ref=rbac.v1.RoleRefArgs(api_group=_RBAC, kind="ClusterRole", name=role),
                subjects=[account],
                opts=self._inside,
            )
        rbac.v1.RoleBinding(
            f"{name}-authentication",
            metadata=metadata(scope, NAME, "kube-system"),
            role_ref=rbac.v1.RoleRefArgs(
                api_group=_RBAC, kind="Role", name="extension-apiserver-authentication-reader"
            ),
            subjects=[account],
            opts=self._inside,
        )
