"""A plan as data: references and their values in a preview, dependencies, order, and plans that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from training_platform.resources.plan import (
    Component,
    Options,
    Plan,
    PlanError,
    Resource,
    compute,
    in_order,
    once,
    text,
)
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, UNKNOWN, StackResource

NETWORK = "gcp:compute/network:Network"
SUBNET = "gcp:compute/subnetwork:Subnetwork"
NAMESPACE = "kubernetes:core/v1:Namespace"


def network(name: str = "net", /, **inputs: Any) -> Resource:
    return Resource(type=NETWORK, name=name, inputs=inputs)


def namespace(name: str = "space") -> Resource:
    return Resource(type=NAMESPACE, name=name, inputs={"metadata": {"name": name}})


def planned(plan: Plan, name: str) -> StackResource:
    (only,) = (resource for resource in plan.planned() if resource.name == name)
    return only


@pytest.mark.parametrize(("kubeconfig", "name_in_preview"), [("{}", "space"), (network().output("id"), UNKNOWN)])
def test_nothing_is_known_of_objects_whose_cluster_is_not_deployed(kubeconfig: Any, name_in_preview: Any) -> None:
    provider = Resource(type=KUBERNETES_PROVIDER, name="cluster", inputs={"settings": [{"kubeconfig": kubeconfig}]})
    plan = Plan("dev")
    part = plan.component("test:index:Part", "part", provider=provider).component("test:index:Part", "inner")

    assert part.add(namespace()).output("metadata", "name").preview == name_in_preview


def test_a_function_of_known_values_is_called_at_once() -> None:
    assert compute(str.upper, "a") == "A"
    assert once("a", "b") == "a"
    assert text("{}-{}", "a", 0) == "a-0"


def test_references_are_dependencies_wherever_they_are() -> None:
    plan = Plan("dev")
    names = ("direct", "listed", "computed", "nested")
    first = {name: plan.add(network(name)).output("id") for name in names}
    inputs = {
        "network": first["direct"],
        "some_list": [first["listed"], {"inner": text("{}", text("{}", first["nested"]))}],
        "computed": text("{}", first["computed"]),
        "plain": "a",
    }
    plan.add(Resource(type=SUBNET, name="sub", inputs=inputs))

    assert planned(plan, "sub").options == {"dependsOn": sorted((NETWORK, name) for name in names)}
    assert planned(plan, "sub").inputs_from == {
        "network": ((NETWORK, "direct"),),
        "someList": ((NETWORK, "listed"), (NETWORK, "nested")),
        "computed": ((NETWORK, "computed"),),
    }


def test_a_component_is_waited_for_by_all_that_is_in_it() -> None:
    plan = Plan("dev")
    part = plan.component("test:index:Part", "part")
    part.component("test:index:Part", "inner").add(network("deep"))
    part.add(network("shallow"))
    plan.add(network("last"), [part])
    later = plan.component("test:index:Part", "later", after=[part])
    later.add(network("in later"))

    both = [(NETWORK, "deep"), (NETWORK, "shallow")]
    assert planned(plan, "last").options["dependsOn"] == both
    assert planned(plan, "later").options["dependsOn"] == both
    assert [node.name for node in in_order(plan)][-3:] == ["last", "later", "in later"]


def test_a_planned_resource_has_parent_provider_and_the_options_that_are_set() -> None:
    plan = Plan("dev")
    provider = plan.add(Resource(type=KUBERNETES_PROVIDER, name="cluster", inputs={}))
    other_provider = plan.add(Resource(type=KUBERNETES_PROVIDER, name="own", inputs={}))
    part = plan.component("test:index:Part", "part", provider=provider)
    part.add(namespace())
    part.add(Resource(type=NAMESPACE, name="elsewhere", inputs={}, own_provider=other_provider))
    plan.add(Resource(type=NETWORK, name="net", inputs={}, options=Options(delete_before_replace=False)))

    assert planned(plan, "space").parent == part.key
    assert planned(plan, "space").options == {"provider": "cluster"}
    assert planned(plan, "elsewhere").options == {"provider": "own"}
    assert (planned(plan, "net").parent, planned(plan, "net").options) == (None, {})
    assert [resource.custom for resource in plan.planned()] == [True, True, False, True, True, True]


def test_a_resource_that_is_only_read_is_none_of_the_planned() -> None:
    plan = Plan("dev")
    existing = plan.add(Resource(type=NETWORK, name="theirs", inputs={}, read_id="projects/p/global/networks/n"))
    plan.add(network("ours", description=existing.output("id")))

    assert [resource.name for resource in plan.planned()] == ["ours"]
    assert planned(plan, "ours").options["dependsOn"] == [existing.key]


def test_only_some_types_can_be_planned() -> None:
    plan = Plan("dev")
    plan.add(network())
    plan.add(namespace())

    assert [resource.name for resource in plan.planned({NAMESPACE})] == ["space"]


def test_everything_is_ordered_after_its_parent_provider_and_what_it_waits_for() -> None:
    plan = Plan("dev")
    last = Resource(type=NETWORK, name="last", inputs={})
    part = plan.component("test:index:Part", "part")
    part.add(namespace())
    part.add(last)
    plan.add(network("middle"))
    first = plan.add(network("first"))
    middle = plan.children[1]
    provider = plan.add(Resource(type=KUBERNETES_PROVIDER, name="cluster", inputs={"kubeconfig": first.output("id")}))
    part.provider = provider
    last.after.append(middle)

    assert [node.name for node in in_order(plan)] == ["part", "first", "cluster", "space", "middle", "last"]


def test_every_repeated_type_and_name_is_named() -> None:
    plan = Plan("dev")
    for part in (plan, plan.component("test:index:Part", "net")):
        part.add(network("net"))
        part.add(network("other"))

    with pytest.raises(
        PlanError, match=rf"^stack dev: .* same type and name: net \({NETWORK}\), other \({NETWORK}\)\.$"
    ):
        plan.check()


def a_circle(plan: Plan) -> None:
    first = plan.add(network("first"))
    second = plan.add(network("second", description=first.output("id")))
    plan.add(network("before"), [first])
    first.after.append(second)


def a_circle_through_a_component(plan: Plan) -> None:
    part = plan.component("test:index:Part", "part")
    inner: Component = part.component("test:index:Part", "inner")
    first = inner.add(network("first"))
    second = plan.add(network("second"), [part])
    first.after.append(second)


@pytest.mark.parametrize("add", [a_circle, a_circle_through_a_component])
def test_a_circle_is_named(add: Any) -> None:
    plan = Plan("dev")
    add(plan)

    with pytest.raises(PlanError, match=r"in a circle: first -> second -> first\.$"):
        plan.check()


def test_what_nobody_added_to_the_plan_is_named_with_who_needs_it() -> None:
    plan = Plan("dev")
    plan.add(network("inner", description=network("lost").output("id")))
    plan.add(network("late"), [network("gone")])

    sentence = (
        rf"inner needs lost \({NETWORK}\), late needs gone \({NETWORK}\), which is not in the plan: add that "
        rf"resource as well\.$"
    )
    with pytest.raises(PlanError, match=sentence):
        plan.check()
