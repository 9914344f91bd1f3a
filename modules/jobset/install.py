"""JobSet in one cluster, from its Helm chart."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from modules.helm import install
from training_platform.catalog import CHARTS
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.operators.jobset import values


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
        install(f"{name}-release", CHARTS["jobset"], args.chart, values(), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
