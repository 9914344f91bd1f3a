"""A plan of what an environment's project is given, and of one resource after it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from graphlib import TopologicalSorter
from typing import Any

import pulumi
import pytest
from pulumi_gcp import compute, container, filestore, projects, serviceaccount
from pydantic import ValidationError

from modules.monitoring import Budget, BudgetArgs
from modules.project import (
    AGENT_ROLES,
    ENVIRONMENT_APIS,
    LUSTRE_API,
    TEAM_APIS,
    WORKBENCH_API,
    ProjectServices,
    ProjectServicesArgs,
    ServiceAgents,
    ServiceAgentsArgs,
    depend_on_agents,
    depend_on_services,
)
from tests.places import ORGANISATION
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.environment import BudgetSpec, Environment
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.declared import ModelPlan
from training_platform.resources.monitoring import budget_resources, stack_budget
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.resource_types import APIS, BUDGET, NOTIFICATION_CHANNEL, api_of
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]


@pytest.fixture
def scope() -> Scope:
    return Scope(
        environment="dev",
        team=None,
        project="example-train-dev",
        labels={"environment": "dev", "managed-by": "training-platform"},
        deletion_protection=False,
    )


@pytest.fixture
def deploy() -> Deploy:
    return lambda program: record(program, project="training-platform", stack_name="dev")


SERVICE = "gcp:projects/service:Service"


def services(scope: Scope, *apis: str) -> ProjectServices:
    return ProjectServices("services", ProjectServicesArgs(scope=scope, apis=apis or ENVIRONMENT_APIS))


def after_services(scope: Scope, create: Callable[[], object], *apis: str) -> Callable[[], None]:
    def program() -> None:
        pulumi.runtime.register_stack_transformation(depend_on_services(services(scope, *apis)))
        create()

    return program


def test_an_api_is_enabled_in_the_stacks_project_and_kept_on_destroy(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: services(scope, "container.googleapis.com"))

    assert plan.one(SERVICE, "services-container").inputs == {
        "project": "example-train-dev",
        "service": "container.googleapis.com",
        "disableOnDestroy": False,
        "disableDependentServices": False,
    }


def test_an_api_that_is_asked_for_twice_is_enabled_once(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: services(scope, "compute.googleapis.com", "compute.googleapis.com"))

    assert [service.name for service in plan.of(SERVICE)] == ["services-compute"]


def test_every_resource_waits_for_the_api_of_its_kind(scope: Scope, deploy: Deploy) -> None:
    def create() -> None:
        container.Cluster("cluster")
        compute.Network("network")
        serviceaccount.Account("account", account_id="example")

    plan = deploy(after_services(scope, create))

    for resource_type, name, api in (
        ("gcp:container/cluster:Cluster", "cluster", "container"),
        ("gcp:compute/network:Network", "network", "compute"),
        ("gcp:serviceaccount/account:Account", "account", "iam"),
    ):
        assert plan.one(resource_type, name).options["dependsOn"] == [(SERVICE, f"services-{api}")]


def test_a_resource_keeps_what_it_waited_for_and_its_other_options(scope: Scope, deploy: Deploy) -> None:
    def create() -> None:
        first = compute.Network("first")
        compute.Network("second", opts=pulumi.ResourceOptions(depends_on=[first], protect=True))

    options = deploy(after_services(scope, create)).one("gcp:compute/network:Network", "second").options

    assert options["protect"] is True
    assert options["dependsOn"] == [("gcp:compute/network:Network", "first"), (SERVICE, "services-compute")]


def test_children_of_components_wait_and_components_do_not(scope: Scope, deploy: Deploy) -> None:
    def create() -> None:
        parent = pulumi.ComponentResource("training-platform:test:Parent", "parent")
        compute.Network("child", opts=pulumi.ResourceOptions(parent=parent))

    plan = deploy(after_services(scope, create))

    assert plan.one("gcp:compute/network:Network", "child").options["dependsOn"] == [(SERVICE, "services-compute")]
    assert plan.one("training-platform:test:Parent").options == {}


def test_the_apis_themselves_wait_for_nothing(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(after_services(scope, lambda: projects.Service("later", service="dns.googleapis.com")))

    assert [service.options for service in plan.of(SERVICE)] == [{}] * (len(ENVIRONMENT_APIS) + 1)


def test_nothing_waits_in_a_circle(scope: Scope, deploy: Deploy) -> None:
    def program() -> None:
        enabled = services(scope, *ENVIRONMENT_APIS, *TEAM_APIS)
        pulumi.runtime.register_stack_transformation(depend_on_services(enabled))
        agents = ServiceAgents("agents", ServiceAgentsArgs(scope=scope, services=enabled))
        pulumi.runtime.register_stack_transformation(depend_on_agents(agents))
        projects.IAMMember("access", project="p", role="roles/viewer", member="user:x@example.com")
        container.Cluster("cluster")

    plan = deploy(program)

    waits = {resource.key: resource.options.get("dependsOn", []) for resource in plan.resources}
    assert len(list(TopologicalSorter(waits).static_order())) == len(plan.resources)
    assert any(waits.values())


def test_a_resource_whose_api_the_stack_does_not_enable_is_refused(scope: Scope, deploy: Deploy) -> None:
    create = after_services(scope, lambda: filestore.Instance("x", tier="ZONAL", networks=[], file_shares={
        "capacity_gb": 1024, "name": "share",
    }), "compute.googleapis.com")  # fmt: skip

    with pytest.raises(LookupError, match=r"filestore/instance:Instance needs file\.googleapis\.com"):
        deploy(create)


@pytest.mark.parametrize(
    ("resource_type", "api"),
    [
        ("gcp:vertex/aiPersistentResource:AiPersistentResource", "aiplatform.googleapis.com"),
        ("gcp:filestore/instance:Instance", "file.googleapis.com"),
        ("gcp:projects/iAMMember:IAMMember", "cloudresourcemanager.googleapis.com"),
        ("gcp:projects/service:Service", None),
        ("pulumi:providers:gcp", None),
        ("kubernetes:core/v1:Namespace", None),
        ("training-platform:gke:GkeCluster", None),
    ],
)
def test_the_api_of_a_type_is_that_of_its_module(resource_type: str, api: str | None) -> None:
    assert api_of(resource_type) == api


def test_a_module_without_an_api_is_refused() -> None:
    with pytest.raises(LookupError, match="'redis'"):
        api_of("gcp:redis/instance:Instance")


@pytest.mark.parametrize("module", APIS)
def test_pulumi_gcp_has_every_module_that_an_api_is_given_for(module: str) -> None:
    assert importlib.util.find_spec(f"pulumi_gcp.{module}")


def test_every_api_of_a_stack_is_a_host_name() -> None:
    assert [api for api in (*APIS.values(), *ENVIRONMENT_APIS, *TEAM_APIS) if not api.endswith(".googleapis.com")] == []


IDENTITY = "gcp:projects/serviceIdentity:ServiceIdentity"
MEMBER = "gcp:projects/iAMMember:IAMMember"


def agents(scope: Scope, *apis: str) -> ServiceAgents:
    services = ProjectServices("services", ProjectServicesArgs(scope=scope, apis=apis))
    return ServiceAgents("agents", ServiceAgentsArgs(scope=scope, services=services))


def test_an_agent_comes_after_its_api(scope: Scope, deploy: Deploy) -> None:
    agent = deploy(lambda: agents(scope, "file.googleapis.com")).one(IDENTITY)

    assert agent.name == "agents-file"
    assert agent.inputs == {"project": "example-train-dev", "service": "file.googleapis.com"}
    assert agent.options["dependsOn"] == [(SERVICE, "services-file")]


def test_an_agents_role_goes_to_the_account_that_google_made_and_outlives_the_stack(
    scope: Scope, deploy: Deploy
) -> None:
    role = deploy(lambda: agents(scope, "container.googleapis.com")).one(MEMBER, "agents-container.serviceAgent")

    assert role.inputs == {"project": "example-train-dev", "role": "roles/container.serviceAgent", "member": UNKNOWN}
    assert role.options == {"retainOnDelete": True, "dependsOn": [(IDENTITY, "agents-container")]}


def test_only_apis_of_the_stack_get_agents(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: agents(scope, "aiplatform.googleapis.com", "compute.googleapis.com"))

    assert [agent.name for agent in plan.of(IDENTITY)] == ["agents-aiplatform"]
    assert [role.inputs["role"] for role in plan.of(MEMBER)] == ["roles/aiplatform.serviceAgent"]


def test_a_cluster_waits_for_the_role_of_gkes_agent_and_a_network_for_none(scope: Scope, deploy: Deploy) -> None:
    def program() -> None:
        pulumi.runtime.register_stack_transformation(depend_on_agents(agents(scope, "container.googleapis.com")))
        container.Cluster("cluster")
        compute.Network("network")

    plan = deploy(program)

    assert plan.one("gcp:container/cluster:Cluster").options["dependsOn"] == [(MEMBER, "agents-container.serviceAgent")]
    assert plan.one("gcp:compute/network:Network").options == {}


def test_the_agents_of_every_api_belong_to_some_stack() -> None:
    assert set(AGENT_ROLES) <= {*ENVIRONMENT_APIS, *TEAM_APIS, LUSTRE_API, WORKBENCH_API}


ACCOUNT = "01ABCD-23EF45-67AB89"


def deploy_budget(**fields: Any) -> Plan:
    labels = {"environment": "prod", "team": "vision", "managed-by": "training-platform"}
    scope = Scope(environment="prod", team="vision", project="example-vision", labels=labels, deletion_protection=True)
    spec = BudgetSpec(**{"a_month": 5000, **fields})

    def program() -> None:
        Budget("budget", BudgetArgs(scope=scope, spec=spec, account=ACCOUNT))
        pulumi.export("done", "yes")

    return record(program, project="training-platform", stack_name="prod-vision")


def test_a_budget_is_of_what_carries_the_teams_label() -> None:
    plan = deploy_budget()

    assert plan.one(BUDGET, "budget-month").inputs == {
        "billingAccount": ACCOUNT,
        "displayName": "prod-vision",
        "budgetFilter": {"calendarPeriod": "MONTH", "labels": {"team": "vision"}},
        "amount": {"specifiedAmount": {"currencyCode": "USD", "units": "5000"}},
        "thresholdRules": [{"thresholdPercent": 0.5}, {"thresholdPercent": 0.9}, {"thresholdPercent": 1.0}],
    }
    assert [each.type for each in plan.resources if each.custom] == [BUDGET]


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
    return [str(each) for stack in checked.stacks.values() for each in stack.findings]


def test_a_budget_without_a_billing_account_is_a_finding_at_its_line() -> None:
    (found,) = findings("")

    assert found.startswith("stacks/Pulumi.lab-vision.yaml:2:")
    assert "budget: needs billing_account of environment lab" in found
    assert findings(f", billing_account: {ACCOUNT}") == []


def test_an_environments_budget_is_of_all_that_carries_its_label() -> None:
    labels = {"environment": "prod", "managed-by": "training-platform"}
    scope = Scope(environment="prod", team=None, project="example-prod", labels=labels, deletion_protection=True)

    plan = ModelPlan()
    budget_resources(BudgetSpec(a_month=90000, emails=("ops@example.com",)), ACCOUNT, scope, plan)

    channel, budget = plan.resources
    assert (channel.type, budget.type) == (NOTIFICATION_CHANNEL, BUDGET)
    assert budget.inputs["budget_filter"] == {"calendar_period": "MONTH", "labels": {"environment": "prod"}}
    assert stack_budget(None, Environment(project="example-prod", billing_account=ACCOUNT)) is None


def test_an_environments_budget_without_a_billing_account_is_a_finding_at_its_line() -> None:
    (found,) = findings(", budget: {a_month: 9}", budget="")

    assert found.startswith("stacks/Pulumi.lab.yaml:2:")
    assert "budget: needs billing_account, which is not set" in found
    assert findings(f", budget: {{a_month: 9}}, billing_account: {ACCOUNT}", budget="") == []
