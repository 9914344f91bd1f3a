"""JupyterHub in one cluster, from its Helm chart."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.helm import v3 as helm

from modules.helm import chart_ref, release_args
from modules.manifest import metadata
from training_platform.catalog import CHARTS
from training_platform.config.spec.cluster import ClusterSpec, Notebooks
from training_platform.config.spec.environment import ChartOverride
from training_platform.resources.jupyterhub.values import values
from training_platform.resources.scope import Scope
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
    data_sets: tuple[str, ...] = ()  # whose claims are in that namespace, too


class JupyterHub(pulumi.ComponentResource):
    """Notebooks for everyone of the organisation's domain, with a profile per single-host pool.

    Somebody makes the Secret with the OAuth client's secret by hand (``notebooks.oauth_secret``), once the namespace is
    there; until then the hub's pod waits for it.
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
        helm.Release(
            f"{name}-release",
            release_args(
                chart_ref(chart, args.chart),
                name="jupyterhub",
                namespace=chart.namespace,
                values=values(args.cluster_name, args.cluster, args.notebooks, args.home_claim, args.data_sets),
                timeout_seconds=600,
                create_namespace=False,
                await_ready=False,  # the first deployment would fail on the Secret that comes after it
            ),
            # The namespace is given by name, so nothing else says that it comes first.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
        )
        self.namespace = namespace.metadata.apply(lambda found: str(found.name))
        self.register_outputs({"namespace": self.namespace})
