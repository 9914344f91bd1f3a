"""A budget in Cloud Billing, of a team or of an environment, and whom it tells."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_gcp import billing, monitoring

from modules.register import register
from training_platform.config.model.environment import BudgetSpec
from training_platform.resources.budget import BUDGET_NAME, month_budget
from training_platform.resources.monitoring.alerts import email_channels
from training_platform.resources.scope import Scope


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
        told = [
            register(monitoring.NotificationChannel, channel, self).name
            for channel in email_channels(BUDGET_NAME, args.spec.emails, args.scope)
        ]
        register(billing.Budget, month_budget(args.spec, args.account, args.scope, told), self)
        self.register_outputs({})
