"""The APIs of a project with their agents, what waits for them, and budgets."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack, composed
from training_platform.config.model.environment import BudgetSpec, Environment
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.monitoring import budget_resources, stack_budget
from training_platform.resources.plan import Options, Plan, PlanError, Resource
from training_platform.resources.project import (
    AGENT_ROLES,
    ENVIRONMENT_APIS,
    LUSTRE_API,
    TEAM_APIS,
    ProjectApis,
)
from training_platform.resources.resource_types import APIS, BUDGET, NOTIFICATION_CHANNEL, api_of
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import UNKNOWN


@pytest.fixture
def scope() -> Scope:
    return Scope(
        environment="dev",
        team=None,
        project="example-train-dev",
        labels={"environment": "dev", "managed-by": "training-platform"},
        deletion_protection=False,
    )


SERVICE = "gcp:projects/service:Service"
IDENTITY = "gcp:projects/serviceIdentity:ServiceIdentity"
MEMBER = "gcp:projects/iAMMember:IAMMember"
CLUSTER = "gcp:container/cluster:Cluster"
NETWORK = "gcp:compute/network:Network"


def add_nothing(_plan: Plan) -> None:
    """Leave a plan as it is."""


def planned(scope: Scope, *apis: str, add: Callable[[Plan], object] = add_nothing) -> PlannedStack:
    """Return a plan with APIs, for which what ``add`` adds waits."""
    plan = Plan("dev")
    project_apis = ProjectApis(plan, scope, apis or ENVIRONMENT_APIS, ())
    add(plan)
    project_apis.make_resources_wait()
    plan.check()
    return PlannedStack(plan.planned())


def resource(resource_type: str, name: str = "it", **options: Any) -> Resource:
    return Resource(type=resource_type, name=name, inputs={}, options=Options(**options))


def test_an_api_is_enabled_in_the_stacks_project_and_kept_on_destroy(scope: Scope) -> None:
    service = planned(scope).one(SERVICE, "apis-container")

    assert service.inputs == {
        "project": "example-train-dev",
        "service": "container.googleapis.com",
        "disableOnDestroy": False,
        "disableDependentServices": False,
    }


def test_every_resource_whose_api_the_stack_does_not_enable_is_named(scope: Scope) -> None:
    def add(plan: Plan) -> None:
        plan.add(resource("gcp:filestore/instance:Instance", "homes"))
        plan.add(resource("gcp:redis/instance:Instance", "cache"))

    sentence = r"homes \(gcp:\S+\) needs file\.googleapis\.com; cache \(gcp:redis\S+\) has to depend"
    with pytest.raises(PlanError, match=sentence):
        planned(scope, "compute.googleapis.com", add=add)


def test_an_api_that_is_enabled_later_is_waited_for_with_the_role_of_its_agent(scope: Scope) -> None:
    plan = Plan("dev")
    apis = ProjectApis(plan, scope, ["cloudresourcemanager.googleapis.com"], ())
    instance = plan.add(resource("gcp:filestore/instance:Instance"))
    apis.enable("file.googleapis.com")
    apis.make_resources_wait()

    assert instance.after == [apis.services["file.googleapis.com"], *apis.bindings["file.googleapis.com"]]
    assert [grant.inputs["role"] for grant in apis.bindings["file.googleapis.com"]] == ["roles/file.serviceAgent"]


def test_a_module_without_an_api_is_refused() -> None:
    with pytest.raises(LookupError, match="'redis'"):
        api_of("gcp:redis/instance:Instance")


@pytest.mark.parametrize("module", APIS)
def test_pulumi_gcp_has_every_module_that_an_api_is_given_for(module: str) -> None:
    assert importlib.util.find_spec(f"pulumi_gcp.{module}")


def test_every_api_of_a_stack_is_a_host_name() -> None:
    assert [api for api in (*APIS.values(), *ENVIRONMENT_APIS, *TEAM_APIS) if not api.endswith(".googleapis.com")] == []


def test_an_agents_role_goes_to_the_account_that_google_made_and_outlives_the_stack(scope: Scope) -> None:
    role = planned(scope).one(MEMBER, "agents-container.serviceAgent")

    assert role.inputs == {"project": "example-train-dev", "role": "roles/container.serviceAgent", "member": UNKNOWN}
    assert role.options == {
        "retainOnDelete": True,
        "dependsOn": [(SERVICE, "apis-cloudresourcemanager"), (IDENTITY, "agents-container")],
    }


OF_OWN_RESOURCES = "notebooks.googleapis.com"


def test_the_agents_of_every_api_belong_to_some_stack() -> None:
    assert set(AGENT_ROLES) <= {*ENVIRONMENT_APIS, *TEAM_APIS, LUSTRE_API, OF_OWN_RESOURCES}


ACCOUNT = "01ABCD-23EF45-67AB89"


def deploy_budget(**fields: Any) -> PlannedStack:
    labels = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}
    scope = Scope(environment="prod", team="vision", project="example-vision", labels=labels, deletion_protection=True)
    spec = BudgetSpec(**{"a_month": 5000, **fields})

    return composed(lambda into: budget_resources(spec, ACCOUNT, scope, into))


def test_a_budget_is_of_what_carries_the_teams_label() -> None:
    plan = deploy_budget()

    assert plan.one(BUDGET, "budget-month").inputs == {
        "billingAccount": ACCOUNT,
        "displayName": "prod-vision",
        "budgetFilter": {"calendarPeriod": "MONTH", "labels": {"team": "vision"}},
        "amount": {"specifiedAmount": {"currencyCode": "USD", "units": "5000"}},
        "thresholdRules": [{"thresholdPercent": 0.5}, {"thresholdPercent": 0.9}, {"thresholdPercent": 1.0}],
    }
    assert [resource.type for resource in plan.resources if resource.custom] == [BUDGET]


def test_each_address_hears_of_it_by_a_channel() -> None:
    plan = deploy_budget(emails=("leads@example.com",))

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
    return [str(finding) for stack in checked.stacks.values() for finding in stack.findings]


def test_a_budget_without_a_billing_account_is_a_finding_at_its_line() -> None:
    (finding,) = findings("")

    assert finding.startswith("stacks/Pulumi.lab-vision.yaml:2:")
    assert "budget: needs billing_account of environment lab" in finding
    assert findings(f", billing_account: {ACCOUNT}") == []


def test_an_environments_budget_is_of_all_that_carries_its_label() -> None:
    labels = {"environment": "prod", "managed-by": "training-platform"}
    scope = Scope(environment="prod", team=None, project="example-prod", labels=labels, deletion_protection=True)

    spec = BudgetSpec(a_month=90000, emails=("ops@example.com",))
    plan = composed(lambda into: budget_resources(spec, ACCOUNT, scope, into))

    assert len(plan.of(NOTIFICATION_CHANNEL)) == 1
    budget_filter = plan.one(BUDGET).inputs["budgetFilter"]
    assert budget_filter == {"calendarPeriod": "MONTH", "labels": {"environment": "prod"}}
    assert stack_budget(None, Environment(project="example-prod", billing_account=ACCOUNT)) is None


def test_an_environments_budget_without_a_billing_account_is_a_finding_at_its_line() -> None:
    (finding,) = findings(", budget: {a_month: 9}", budget="")

    assert finding.startswith("stacks/Pulumi.lab.yaml:2:")
    assert "budget: needs billing_account, which is not set" in finding
    assert findings(f", budget: {{a_month: 9}}, billing_account: {ACCOUNT}", budget="") == []
