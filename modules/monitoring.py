"""Alerts, dashboards and budgets, and the channels by which people hear of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pulumi

from modules.register import children_of, register
from training_platform.config.model import environment
from training_platform.config.model.cluster import SoftwareSpec
from training_platform.config.model.environment import BudgetSpec
from training_platform.resources.declared import Declared
from training_platform.resources.monitoring import alert_resources, budget_resources
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class AlertsArgs:
    """``clusters`` are names in GKE, of all clusters of the environment, with what is installed there."""

    scope: Scope
    spec: environment.AlertsSpec
    clusters: Mapping[str, SoftwareSpec]


class Alerts(pulumi.ComponentResource):
    """One AlertPolicy per rule, which tells every address; without addresses, incidents show in the console alone.

    Nothing exists where alerts are not enabled, or where there is no cluster to watch.
    """

    def __init__(self, name: str, args: AlertsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:monitoring:Alerts", name, {}, opts)
        alert_resources(name, args.spec, args.clusters, args.scope, children_of(self))
        self.register_outputs({})


class Dashboards(pulumi.ComponentResource):
    """The dashboards of a stack, as ``training_platform/resources/monitoring.py`` declares them."""

    def __init__(self, name: str, dashboards: Iterable[Declared], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:monitoring:Dashboards", name, {}, opts)
        for dashboard in dashboards:
            register(dashboard, self)
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class BudgetArgs:
    """``account`` is the id of the billing account."""

    scope: Scope
    spec: BudgetSpec
    account: str


class Budget(pulumi.ComponentResource):
    """A budget for each calendar month, with the channels by which people hear of it."""

    def __init__(self, name: str, args: BudgetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:project:Budget", name, {}, opts)
        budget_resources(args.spec, args.account, args.scope, children_of(self))
        self.register_outputs({})
