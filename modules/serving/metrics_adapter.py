"""The adapter of Cloud Monitoring's metrics for autoscalers: its account, and itself in one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects, serviceaccount
from pulumi_kubernetes import core, rbac

from modules.manifest import metadata, plain_object
from modules.storage.service_account import KubernetesAccount, workload_member
from training_platform.resources.scope import Scope
from training_platform.resources.serving.metrics_adapter import (
    GROUP,
    NAME,
    NAMESPACE,
    READ_PODS,
    ROLE,
    VERSIONS,
    adapter_account_id,
    api_service,
    deployment,
    service,
)

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
        objects = [("apps/v1", "Deployment", NAME, deployment()), ("v1", "Service", NAME, service())]
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
