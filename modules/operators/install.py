"""An operator for other kinds of jobs in one cluster, from its Helm chart."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from modules.helm import install
from training_platform.catalog import CHARTS
from training_platform.config.model.environment import ChartOverride
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
        chart, values = CHARTS[args.operator], OPERATORS[args.operator].values
        install(f"{name}-release", chart, args.chart, values, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
