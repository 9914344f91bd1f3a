"""Kueue in one cluster, from its Helm chart."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from modules.helm import install
from training_platform.catalog import CHARTS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.kueue.values import values
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class KueueArgs:
    """``cluster`` decides sizes and time-outs; ``chart`` is the environment's override of the catalogue's chart."""

    scope: Scope
    cluster_name: str
    cluster: ClusterSpec
    chart: ChartOverride | None = None
    fair_sharing: bool = True


class Kueue(pulumi.ComponentResource):
    """The queueing controller. It wants JobSet's CRD to be there, and every object of Kueue wants it to be ready.

    Whoever makes such objects in this stack depends on this component: they are refused until its webhook answers, and
    their finalizers are taken away by it alone when they are deleted.
    """

    def __init__(self, name: str, args: KueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:kueue:Kueue", name, {}, opts)
        # The CRDs are part of the release: to uninstall it is to delete every queue and workload of every team.
        opts = pulumi.ResourceOptions(parent=self, protect=args.scope.deletion_protection)
        own = values(args.cluster_name, args.cluster, fair_sharing=args.fair_sharing)
        install(f"{name}-release", CHARTS["kueue"], args.chart, own, opts)
        self.register_outputs({})
