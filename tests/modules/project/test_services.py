"""The APIs of a project: which, kept on destroy, and before everything that needs them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from graphlib import TopologicalSorter

import pulumi
import pytest
from pulumi_gcp import compute, container, filestore, projects, serviceaccount

from modules.project import (
    ENVIRONMENT_APIS,
    TEAM_APIS,
    ProjectServices,
    ProjectServicesArgs,
    ServiceAgents,
    ServiceAgentsArgs,
    depend_on_agents,
    depend_on_services,
)
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.register import APIS, api_of
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
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
