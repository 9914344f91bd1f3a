"""An operator for other kinds of jobs in one cluster, from its Helm chart."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.helm import v3 as helm

from modules.helm import chart_ref, release_args
from training_platform.catalog import CHARTS
from training_platform.config.spec.environment import ChartOverride
from training_platform.resources.operators.charts import OPERATORS


@dataclass(frozen=True, kw_only=True)
class OperatorArgs:
    """``operator`` is a chart of the catalogue, such as ``trainer``; ``chart`` the environment's override of it."""

    operator: str
    chart: ChartOverride | None = None


class Operator(pulumi.ComponentResource):
    """The controller of a kind of job, whose jobs wait in the queues of Kueue. It wants JobSet to be there."""

    def __init__(self, name: str, args: OperatorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:operators:Operator", name, {}, opts)
        chart = CHARTS[args.operator]
        helm.Release(
            f"{name}-release",
            release_args(
                chart_ref(chart, args.chart),
                name=args.operator,
                namespace=chart.namespace,
                values=OPERATORS[args.operator].values,
                timeout_seconds=600,
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
