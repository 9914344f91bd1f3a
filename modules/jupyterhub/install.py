"""JupyterHub in one cluster, from its Helm chart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
from pulumi_gcp import secretmanager, serviceaccount
from pulumi_kubernetes import core

from modules.helm import install
from modules.manifest import metadata
from modules.register import register
from modules.storage.grants import grant_bucket
from modules.storage.service_account import KubernetesAccount, workload_member
from training_platform.catalog import CHARTS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.workloads import Notebooks
from training_platform.resources.jupyterhub.profiles import HUB_NAMESPACE
from training_platform.resources.jupyterhub.teams import HUB_ACCOUNT
from training_platform.resources.jupyterhub.values import (
    READER,
    HubSecret,
    TeamData,
    hub_account_id,
    hub_secret,
    reader_account_id,
    values,
)
from training_platform.resources.scope import Scope
from training_platform.resources.storage.data_sets import NotebookDataSets
from training_platform.resources.storage.secret import ACCESS_ROLE, team_secret
from training_platform.resources.tenancy import POD_SECURITY


@dataclass(frozen=True, kw_only=True)
class JupyterHubArgs:
    """``home_claim`` is the name of a PersistentVolumeClaim in the hub's namespace, which may be made after the hub."""

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
            values(
                args.cluster_name,
                args.cluster,
                args.notebooks,
                args.home_claim,
                args.data_sets,
                team_data=args.team_data,
                environment_data=args.environment_data,
                secret=self._secret(name, args),
            ),
            # The namespace is given by name, so nothing else says that it comes first.
            pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
            prepared=chart.namespace,  # a deployment that waits would fail on the Secret that comes after it
        )
        if buckets := {key: each.bucket for key, each in args.data_sets.items() if each.bucket}:
            self._reader(f"{name}-reader", args, buckets, namespace)
        self.namespace = namespace.metadata.apply(lambda found: str(found.name))
        self.register_outputs({"namespace": self.namespace})

    def _secret(self, name: str, args: JupyterHubArgs) -> HubSecret | None:
        """Make the OAuth client's secret, and the account by which the hub reads it, where it is in Secret Manager."""
        if not args.notebooks.oauth_secret.secret_manager:
            return None
        scope, child = args.scope, pulumi.ResourceOptions(parent=self)
        declared = team_secret(args.notebooks.oauth_secret.name, scope, f"{name}-oauth")
        secret = register(secretmanager.Secret, declared, self)
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
            role=ACCESS_ROLE,
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
