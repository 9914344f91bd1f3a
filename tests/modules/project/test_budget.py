from __future__ import annotations

from typing import Any

import pulumi
import pytest
from pydantic import ValidationError

from modules.monitoring import Budget, BudgetArgs
from tests.places import ORGANISATION
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.environment import BudgetSpec
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.monitoring import budget_resources
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.register import BUDGET, NOTIFICATION_CHANNEL
from training_platform.resources.scope import Scope

ACCOUNT = "01ABCD-23EF45-67AB89"


def deploy(**fields: Any) -> Plan:
    labels = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}
    scope = Scope(environment="prod", team="vision", project="example-vision", labels=labels, deletion_protection=True)
    spec = BudgetSpec(**{"a_month": 5000, **fields})

    def program() -> None:
        Budget("budget", BudgetArgs(scope=scope, spec=spec, account=ACCOUNT))
        pulumi.export("done", "yes")

    return record(program, project="training-platform", stack_name="prod-vision")


def test_a_budget_is_of_what_carries_the_teams_label() -> None:
    plan = deploy()

    assert plan.one(BUDGET, "budget-month").inputs == {
        "billingAccount": ACCOUNT,
        "displayName": "prod-vision",
        "budgetFilter": {"calendarPeriod": "MONTH", "labels": {"team": "vision"}},
        "amount": {"specifiedAmount": {"currencyCode": "USD", "units": "5000"}},
        "thresholdRules": [{"thresholdPercent": 0.5}, {"thresholdPercent": 0.9}, {"thresholdPercent": 1.0}],
    }
    assert [each.type for each in plan.resources if each.custom] == [BUDGET]


def test_each_address_hears_of_it_by_a_channel() -> None:
    plan = deploy(emails=("leads@example.com",))

    assert plan.one(NOTIFICATION_CHANNEL).inputs["labels"] == {"email_address": "leads@example.com"}
    assert plan.one(BUDGET).inputs["allUpdatesRule"] == {"monitoringNotificationChannels": [UNKNOWN]}


@pytest.mark.parametrize(("field", "value"), [("a_month", 0), ("currency", "usd"), ("alert_at_percent", ())])
def test_what_is_not_a_budget_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        BudgetSpec(**{"a_month": 1, field: value})  # type: ignore[arg-type]


def findings(environment: str, *, budget: str = ", budget: {a_month: 1}") -> list[str]:
    files = {
        "lab": f"{{project: example-vertex, production: false{environment}}}",
        "lab-vision": f"{{environment: lab, name: vision, members: [group:a@example.com]{budget}}}",
    }
    kinds = {"lab": "environment", "lab-vision": "team"}
    stacks = {
        name: parse_stack(
            name, parse_source(f"config:\n  training-platform:{kinds[name]}: {text}\n", f"stacks/Pulumi.{name}.yaml")
        )
        for name, text in files.items()
    }
    checked = cross_check(Workspace(ORGANISATION, stacks))
    return [str(each) for stack in checked.stacks.values() for each in stack.findings]


def test_a_budget_without_a_billing_account_is_a_finding_at_its_line() -> None:
    (found,) = findings("")

    assert found.startswith("stacks/Pulumi.lab-vision.yaml:2:")
    assert "budget: needs billing_account of environment lab" in found
    assert findings(f", billing_account: {ACCOUNT}") == []


def test_an_environments_budget_is_of_all_that_carries_its_label() -> None:
    labels = {"environment": "prod", "managed-by": "training-platform"}
    scope = Scope(environment="prod", team=None, project="example-prod", labels=labels, deletion_protection=True)

    found = list(budget_resources(BudgetSpec(a_month=90000, emails=("ops@example.com",)), ACCOUNT, scope))

    assert [each.type for each in found] == [NOTIFICATION_CHANNEL, BUDGET]
    assert found[1].inputs["budget_filter"] == {"calendar_period": "MONTH", "labels": {"environment": "prod"}}
    assert list(budget_resources(None, ACCOUNT, scope)) == []


def test_an_environments_budget_without_a_billing_account_is_a_finding_at_its_line() -> None:
    (found,) = findings(", budget: {a_month: 9}", budget="")

    assert found.startswith("stacks/Pulumi.lab.yaml:2:")
    assert "budget: needs billing_account, which is not set" in found
    assert findings(f", budget: {{a_month: 9}}, billing_account: {ACCOUNT}", budget="") == []
