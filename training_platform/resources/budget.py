"""A budget in Cloud Billing, of a team or of an environment, and whom it tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from training_platform.config.model.environment import BudgetSpec
from training_platform.resources import gcp
from training_platform.resources.declared import Declared, Later
from training_platform.resources.monitoring.alerts import email_channels
from training_platform.resources.register import BUDGET
from training_platform.resources.scope import Scope

BUDGET_NAME = "budget"


def budget_resources(spec: BudgetSpec | None, account: str | None, scope: Scope) -> Iterator[Declared]:
    """Yield a stack's budget with its channels, where it has one and an account to be in."""
    if spec and account:
        channels = list(email_channels(BUDGET_NAME, spec.emails, scope))
        yield from channels
        yield month_budget(spec, account, scope, [Later(each.type, each.name) for each in channels])


def month_budget(spec: BudgetSpec, account: str, scope: Scope, told: Sequence[Any]) -> Declared:
    """Return a budget of what carries the label of the stack in the account; ``told`` are the names of channels.

    Cloud Billing filters by one label with one value: that of the team, which clusters do not carry since teams share
    them, or of the environment, which all has.
    """
    label = "team" if scope.team else "environment"
    inputs = gcp.budget(
        billing_account=account,
        display_name=scope.prefix,
        budget_filter={"calendar_period": "MONTH", "labels": {label: scope.labels[label]}},
        amount={"specified_amount": {"currency_code": spec.currency, "units": str(spec.a_month)}},
        threshold_rules=[{"threshold_percent": percent / 100} for percent in spec.alert_at_percent],
        all_updates_rule={"monitoring_notification_channels": list(told)} if told else None,
    )
    return Declared(type=BUDGET, name=f"{BUDGET_NAME}-month", inputs=inputs)
