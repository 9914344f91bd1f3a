"""Google's own accounts in a project and their roles."""

from __future__ import annotations

from collections.abc import Callable

import pulumi
from pulumi_gcp import compute, container

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
)
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
SERVICE = "gcp:projects/service:Service"
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
