"""JupyterHub in one cluster, from its Helm chart; the way to it, and the objects for notebooks of teams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
from pulumi_gcp import projects, secretmanager, serviceaccount
from pulumi_kubernetes import core, rbac
from pulumi_kubernetes.apiextensions import CustomResource

from modules.kubernetes_objects import install, metadata
from modules.register import register
from modules.team_account import KubernetesAccount, grant_bucket, workload_member
from modules.volumes import FilestoreVolume, FilestoreVolumeArgs
from training_platform.catalog import CHARTS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.workloads import GatewaySpec, Notebooks
from training_platform.resources.data_sets import NotebookDataSets
from training_platform.resources.jupyterhub import (
    ACCESS_ROLE,
    NAME,
    READER,
    HubSecret,
    TeamData,
    gateway_objects,
    hub_account_id,
    hub_secret,
    hub_values,
    reader_account_id,
)
from training_platform.resources.notebooks import HUB_ACCOUNT, HUB_NAMESPACE, RULES, TEAM_HOMES, network_policy
from training_platform.resources.scope import Scope, slug
from training_platform.resources.storage import ACCESSOR, team_secret
from training_platform.resources.tenancy import POD_SECURITY, POLICY_KIND, POLICY_VERSION


@dataclass(frozen=True, kw_only=True)
class JupyterHubArgs:
    """``home_claim`` is the name of a PersistentVolumeClaim in the hub's namespace, perhaps created after the hub."""

    scope: Scope
    cluster_name: str
    cluster: ClusterSpec
    notebooks: Notebooks
    home_claim: str
    chart: ChartOverride | None = None
    data_sets: NotebookDataSets = field(default_factory=dict)  # whose claims are in that namespace, too
    team_data: TeamData = field(default_factory=dict)
    environment_data: tuple[str, ...] = ()


class JupyterHub(pulumi.ComponentResource):
    """Notebooks for everyone of the organisation's domain, with a profile per single-host pool.

    Somebody makes the Secret with the OAuth client's secret by hand (``notebooks.oauth_secret``), once the namespace is
    there; until then the hub's pod waits for it. In Secret Manager, somebody adds its value.
    """

    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: JupyterHubArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:jupyterhub:JupyterHub", name, {}, opts)
        chart = CHARTS["jupyterhub"]
        namespace = core.v1.Namespace(
            f"{name}-namespace",
            metadata=metadata(args.scope, chart.namespace, more={f"{POD_SECURITY}enforce": "baseline"}),
            # To delete it is to delete the hub's users and the claim for all homes.
            opts=pulumi.ResourceOptions(parent=self, protect=args.scope.deletion_protection),
        )
        install(
            f"{name}-release",
            chart,
            args.chart,
            hub_values(
                args.cluster_name,
                args.cluster,
                args.notebooks,
                args.home_claim,
                args.data_sets,
                team_data=args.team_data,
                environment_data=args.environment_data,
                secret=self._secret(name, args),
            ),
            # The release has only the namespace's name, so nothing else creates the namespace first.
            pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
            prepared=chart.namespace,  # a deployment that waits would fail on the Secret that is created after it
        )
        if buckets := {key: data.bucket for key, data in args.data_sets.items() if data.bucket}:
            self._reader(f"{name}-reader", args, buckets, namespace)
        self.namespace = namespace.metadata.apply(lambda meta: str(meta.name))
        self.register_outputs({"namespace": self.namespace})

    def _secret(self, name: str, args: JupyterHubArgs) -> HubSecret | None:
        """Make the OAuth client's secret, and the account by which the hub reads it, where it is in Secret Manager."""
        if not args.notebooks.oauth_secret.secret_manager:
            return None
        scope, child = args.scope, pulumi.ResourceOptions(parent=self)
        declared = team_secret(args.notebooks.oauth_secret.name, scope, f"{name}-oauth")
        secret = register(declared, self)
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=hub_account_id(scope, args.cluster_name),
            project=scope.project,
            display_name=f"JupyterHub of {scope.prefix} in {args.cluster_name}",
            opts=child,
        )
        secretmanager.SecretIamMember(
            f"{name}-oauth-reader",
            project=scope.project,
            secret_id=secret.secret_id,
            role=ACCESSOR,
            member=account.member,
            opts=child,
        )
        self._act_as(f"{name}-workload", account, HUB_ACCOUNT, scope)
        return hub_secret(scope, args.cluster_name, args.notebooks)

    def _reader(self, name: str, args: JupyterHubArgs, buckets: Mapping[str, str], namespace: pulumi.Resource) -> None:
        """Make the account by which notebooks of everybody read buckets, and nothing else."""
        scope = args.scope
        account = serviceaccount.Account(
            f"{name}-account",
            account_id=reader_account_id(scope, args.cluster_name),
            project=scope.project,
            display_name=f"Notebooks of everybody in {args.cluster_name} of {scope.prefix}",
            opts=pulumi.ResourceOptions(parent=self),
        )
        core.v1.ServiceAccount(
            f"{name}-kubernetes-account",
            metadata=metadata(scope, READER, HUB_NAMESPACE, {"iam.gke.io/gcp-service-account": account.email}),
            automount_service_account_token=False,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
        )
        self._act_as(f"{name}-workload", account, READER, scope)
        for key, bucket in buckets.items():
            child = pulumi.ResourceOptions(parent=self)
            grant_bucket(f"{name}-bucket-{key}", bucket, "roles/storage.objectViewer", account.member, child)

    def _act_as(self, name: str, account: serviceaccount.Account, kubernetes_account: str, scope: Scope) -> None:
        """Let a Kubernetes account of the hub's namespace act as an account of Google Cloud."""
        pod = KubernetesAccount(project=scope.project, namespace=HUB_NAMESPACE, name=kubernetes_account)
        serviceaccount.IAMMember(
            name,
            service_account_id=account.name,
            role="roles/iam.workloadIdentityUser",
            member=workload_member(pod),
            opts=pulumi.ResourceOptions(parent=self),
        )


@dataclass(frozen=True, kw_only=True)
class HubGatewayArgs:
    """``gateway`` is that of ``notebooks``, whose host it is for; ``namespace`` is the hub's."""

    scope: Scope
    notebooks: Notebooks
    gateway: GatewaySpec
    namespace: pulumi.Input[str]


class HubGateway(pulumi.ComponentResource):
    """A load balancer before the hub, and who passes Identity-Aware Proxy: the role is on all that it guards there."""

    def __init__(self, name: str, args: HubGatewayArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:jupyterhub:HubGateway", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        for member in args.gateway.members:
            projects.IAMMember(
                f"{name}-{slug(member)}", project=args.scope.project, role=ACCESS_ROLE, member=member, opts=child
            )
        for manifest in gateway_objects(args.gateway, args.notebooks.host or ""):
            CustomResource(
                f"{name}-{manifest.kind.lower()}",
                api_version=manifest.api_version,
                kind=manifest.kind,
                metadata=metadata(args.scope, NAME, args.namespace, manifest.annotations),
                spec=manifest.spec,
                opts=child,
            )
        self.register_outputs({})


_NAME = "notebooks"


@dataclass(frozen=True, kw_only=True)
class TeamNotebooksArgs:
    """``filestore`` is the instance of all homes, at ``ip``; ``namespace`` is the team's."""

    scope: Scope
    notebooks: Notebooks
    filestore: FilestoreSpec
    ip: pulumi.Input[str]
    namespace: pulumi.Input[str]
    closed: bool  # whether its pods connect to nothing that no policy opens


class TeamNotebooks(pulumi.ComponentResource):
    """The hub's rights in a team's namespace, the ways between hub and notebooks, and the claim on homes.

    Notebooks mount a folder of the team's name, and in it one of the user's: admission holds all pods of the team to
    the first, and nothing keeps people of one team from each other's, as nothing does from each other's jobs.
    """

    def __init__(self, name: str, args: TeamNotebooksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:jupyterhub:TeamNotebooks", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        about = metadata(args.scope, _NAME, args.namespace)
        role = rbac.v1.Role(
            f"{name}-role", metadata=about, rules=[rbac.v1.PolicyRuleArgs(**rule) for rule in RULES], opts=child
        )
        rbac.v1.RoleBinding(
            f"{name}-role-binding",
            metadata=about,
            role_ref=rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind="Role", name=_NAME),
            subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=HUB_ACCOUNT, namespace=HUB_NAMESPACE)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
        CustomResource(
            f"{name}-network-policy",
            api_version=POLICY_VERSION,
            kind=POLICY_KIND,
            metadata=about,
            spec=network_policy(closed=args.closed),
            opts=child,
        )
        FilestoreVolume(
            f"{name}-homes",
            FilestoreVolumeArgs(
                scope=args.scope,
                key=args.notebooks.filestore,
                spec=args.filestore,
                ip=args.ip,
                namespace=args.namespace,
                claim=TEAM_HOMES,
                size_gib=args.notebooks.home_gib,
            ),
            child,
        )
        self.register_outputs({})
