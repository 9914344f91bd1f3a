"""Alert rules that are evaluated inside a cluster, by Managed Prometheus.

They are data, in ``data/rules.yaml``. Alerts on what Google Cloud itself measures are alert policies of Cloud
Monitoring instead: its metrics carry other labels, so a rule here would find none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi_kubernetes.apiextensions import CustomResource

from modules.manifest import metadata
from modules.prometheus.monitoring import API_VERSION
from training_platform.resources.scope import MANAGED_BY, Scope

_RULES = Path(__file__).parent / "data" / "rules.yaml"


@cache
def cluster_rules() -> dict[str, Any]:
    """Return the spec of the platform's ClusterRules, read once: every cluster has the same."""
    spec: dict[str, Any] = yaml.safe_load(_RULES.read_text(encoding="utf-8"))
    return spec


@dataclass(frozen=True, kw_only=True)
class AlertRulesArgs:
    """The rules are the same in every cluster."""

    scope: Scope


class AlertRules(pulumi.ComponentResource):
    """The alert rules of one cluster.

    Who is told is for the cluster's OperatorConfig ``config`` in ``gmp-public`` to say, an object that GKE makes; left
    out here, since it is everybody's who alerts in the cluster.
    """

    def __init__(self, name: str, args: AlertRulesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:prometheus:AlertRules", name, {}, opts)
        CustomResource(
            f"{name}-rules",
            api_version=API_VERSION,
            kind="ClusterRules",
            metadata=metadata(args.scope, MANAGED_BY),
            spec=cluster_rules(),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
