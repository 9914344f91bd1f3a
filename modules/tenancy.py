"""A team's namespace in one cluster, its right to connect, and the admission policies that hold all such namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_gcp import projects
from pulumi_kubernetes import core, networking, rbac
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs

from modules.kubernetes_objects import metadata
from training_platform.catalog import IMAGES
from training_platform.resources.admission import API_VERSION, Bounds, JobKind, policies
from training_platform.resources.scope import SERVICE_ACCOUNT, Scope, slug
from training_platform.resources.tenancy import (
    DEFAULT_REQUESTS,
    FQDN_KIND,
    FQDN_VERSION,
    MEMBER_RULES,
    POLICY_KIND,
    POLICY_VERSION,
    rules_of,
    subjects,
)

COLLECTOR_NAMESPACE = "gmp-system"  # of Managed Prometheus
_MEMBERS = "members"
_QUOTA = "team"


@dataclass(frozen=True, kw_only=True)
class TeamNamespaceArgs:
    """``google_service_account`` is the email address of the account that jobs act as in Google Cloud.

    Admission reads ``labels`` and ``annotations``; ``quota`` bounds all objects of the namespace together.
    ``egress`` and ``hosts`` are the specs of the policies on connections of pods, where these are limited.
    ``kinds`` are the jobs of operators, which members may make as well, and ``operators`` the specs of the policies
    that let these in, by the operator's name.
    """

    scope: Scope
    team: str
    members: tuple[str, ...]
    google_service_account: pulumi.Input[str]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    quota: Mapping[str, str] = field(default_factory=dict)
    egress: Mapping[str, Any] | None = None
    hosts: Mapping[str, Any] | None = None
    kinds: Sequence[JobKind] = ()
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class TeamNamespace(pulumi.ComponentResource):
    """A namespace with the team's name, its members' rights and the account of its jobs, shut off from other teams.

    Accelerators are Kueue's to count: the ResourceQuota stops only what came past it. ``namespace`` is its name, known
    once it is there.
    """

    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: TeamNamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:tenancy:TeamNamespace", name, {}, opts)
        namespace = core.v1.Namespace(
            f"{name}-namespace",
            metadata=metadata(args.scope, args.team, annotations=args.annotations or None, more=args.labels),
            # To delete it is to delete every job that runs in it and every claim of the team.
            opts=pulumi.ResourceOptions(parent=self, protect=args.scope.deletion_protection),
        )
        self.namespace = namespace.metadata.apply(lambda meta: str(meta.name))
        core.v1.ServiceAccount(
            f"{name}-service-account",
            metadata=metadata(
                args.scope,
                SERVICE_ACCOUNT,
                self.namespace,
                {"iam.gke.io/gcp-service-account": args.google_service_account},
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._grant(name, args)
        self._isolate(name, args)
        self._limit(name, args)
        self.register_outputs({"namespace": self.namespace})

    def _grant(self, name: str, args: TeamNamespaceArgs) -> None:
        """Give the members their rights."""
        child = pulumi.ResourceOptions(parent=self)
        rbac.v1.Role(
            f"{name}-role",
            metadata=metadata(args.scope, _MEMBERS, self.namespace),
            rules=[
                rbac.v1.PolicyRuleArgs(
                    api_groups=[rule.api_group], resources=list(rule.resources), verbs=list(rule.verbs)
                )
                for rule in (*MEMBER_RULES, *rules_of(args.kinds))
            ],
            opts=child,
        )
        rbac.v1.RoleBinding(
            f"{name}-role-binding",
            metadata=metadata(args.scope, _MEMBERS, self.namespace),
            role_ref=rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind="Role", name=_MEMBERS),
            subjects=[
                rbac.v1.SubjectArgs(api_group="rbac.authorization.k8s.io", kind=subject.kind, name=subject.name)
                for subject in subjects(args.members)
            ],
            opts=child,
        )

    def _limit(self, name: str, args: TeamNamespaceArgs) -> None:
        """Bound the objects of the namespace by its quota, if it has one."""
        if not args.quota:
            return
        child = pulumi.ResourceOptions(parent=self)
        core.v1.LimitRange(
            f"{name}-limit-range",
            metadata=metadata(args.scope, _QUOTA, self.namespace),
            spec=core.v1.LimitRangeSpecArgs(
                limits=[core.v1.LimitRangeItemArgs(type="Container", default_request=dict(DEFAULT_REQUESTS))]
            ),
            opts=child,
        )
        core.v1.ResourceQuota(
            f"{name}-resource-quota",
            metadata=metadata(args.scope, _QUOTA, self.namespace),
            spec=core.v1.ResourceQuotaSpecArgs(hard=dict(args.quota)),
            opts=child,
        )

    def _isolate(self, name: str, args: TeamNamespaceArgs) -> None:
        """Let in the team's own pods, which must reach each other, metrics' scrape and operators; out, what files open.

        Workers of a training job trust whoever speaks to them. Pods on their node's network are out of its reach.
        """
        everyone_here = networking.v1.NetworkPolicyPeerArgs(pod_selector=LabelSelectorArgs())
        collector = networking.v1.NetworkPolicyPeerArgs(
            namespace_selector=LabelSelectorArgs(match_labels={"kubernetes.io/metadata.name": COLLECTOR_NAMESPACE})
        )
        networking.v1.NetworkPolicy(
            f"{name}-network-policy",
            metadata=metadata(args.scope, "same-namespace", self.namespace),
            spec=networking.v1.NetworkPolicySpecArgs(
                pod_selector=LabelSelectorArgs(),
                policy_types=["Ingress"],
                ingress=[networking.v1.NetworkPolicyIngressRuleArgs(from_=[everyone_here, collector])],
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        for role, version, kind, spec in (
            ("egress", POLICY_VERSION, POLICY_KIND, args.egress),
            ("hosts", FQDN_VERSION, FQDN_KIND, args.hosts),
            *((operator, POLICY_VERSION, POLICY_KIND, spec) for operator, spec in args.operators.items()),
        ):
            if spec:
                CustomResource(
                    f"{name}-{role}-policy",
                    api_version=version,
                    kind=kind,
                    metadata=metadata(args.scope, role, self.namespace),
                    spec=spec,
                    opts=pulumi.ResourceOptions(parent=self),
                )


# To find a cluster and to connect to its DNS-based endpoint (container.clusters.get and .connect), and no right inside
# it. That the role holds the second permission is (unverified): a listing of its permissions, without a date, lacks it.
CONNECT_ROLE = "roles/container.clusterViewer"
ALWAYS = 'request.time >= timestamp("2020-01-01T00:00:00Z")'


@dataclass(frozen=True, kw_only=True)
class ClusterConnectArgs:
    """``project`` is the clusters', which may be another than the team's."""

    scope: Scope
    project: str
    members: tuple[str, ...]


class ClusterConnect(pulumi.ComponentResource):
    """Members of a team as callers of the environment's clusters."""

    def __init__(self, name: str, args: ClusterConnectArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:tenancy:ClusterConnect", name, {}, opts)
        for member in args.members:
            projects.IAMMember(
                f"{name}-{slug(member)}",
                project=args.project,
                role=CONNECT_ROLE,
                member=member,
                # The member may be another team's too. A condition that is always true makes the grant this team's own,
                # so that it is deleted with the member and takes no other team's away.
                condition=projects.IAMMemberConditionArgs(title=f"team {args.scope.prefix}", expression=ALWAYS),
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class AdmissionArgs:
    """``images`` are the stack file's places of what nodes and the daemons of GPUDirect run.

    ``sources`` are the prefixes of images of teams' pods, where the environment has them; ``kinds`` are the operators'.
    """

    scope: Scope
    images: Mapping[str, str]
    bounds: Bounds
    sources: Sequence[str] = ()
    kinds: Sequence[JobKind] = ()


class Admission(pulumi.ComponentResource):
    """The ValidatingAdmissionPolicies of one cluster, each with its binding: they hold in every team's namespace."""

    def __init__(self, name: str, args: AdmissionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:tenancy:Admission", name, {}, opts)
        for policy in policies({**IMAGES, **args.images}, args.bounds, args.sources, args.kinds):
            short = policy.name.removeprefix("training-platform-")
            refused = CustomResource(
                f"{name}-{short}",
                api_version=API_VERSION,
                kind="ValidatingAdmissionPolicy",
                metadata=metadata(args.scope, policy.name),
                spec=policy.spec,
                opts=pulumi.ResourceOptions(parent=self),
            )
            CustomResource(
                f"{name}-{short}-binding",
                api_version=API_VERSION,
                kind="ValidatingAdmissionPolicyBinding",
                metadata=metadata(args.scope, policy.name),
                spec=policy.binding,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[refused]),
            )
        self.register_outputs({})
