"""The stand-in provider checks every planned Kubernetes object, as an update would have it checked.

A first preview does not: while a cluster's endpoint is unknown, the engine asks its provider nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from tests.local_google_cloud.kubernetes.client import Client, connect
from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack
from training_platform.config.workspace import read_workspace
from training_platform.resources.stack_resource import UNKNOWN, StackResource

STACKS = read_workspace(ORGANISATION).stacks
PROVIDER = "pulumi:providers:kubernetes"


@pytest.fixture(scope="module")
def provider(kubernetes: int) -> Iterator[Client]:
    with connect(kubernetes) as client:
        client.configure(clusterIdentifier="tests")
        yield client


def objects(plan: PlannedStack) -> list[StackResource]:
    return [resource for resource in plan.resources if resource.type.startswith("kubernetes:")]


@pytest.mark.parametrize("stack", STACKS)
def test_the_provider_takes_every_planned_object(stack: str, plans: dict[str, PlannedStack], provider: Client) -> None:
    planned = objects(plans[stack])

    assert len(planned) > 10
    for resource in planned:
        assert provider.check(resource.type, resource.name, _on_wire(resource.inputs))[1] == {}, resource.key


def test_no_two_stacks_make_the_same_object_in_one_cluster(plans: dict[str, PlannedStack]) -> None:
    objects_by_place = Counter[tuple[Any, ...]]()
    for plan in plans.values():
        for resource, cluster in _with_clusters(plan):
            name = (resource.inputs.get("metadata") or resource.inputs)["name"]
            if name is not UNKNOWN:
                objects_by_place[cluster, resource.type, _namespace(resource, plan), name] += 1

    assert len(objects_by_place) > 100
    assert [key for key, count in objects_by_place.items() if count > 1] == []


def _with_clusters(plan: PlannedStack) -> Iterator[tuple[StackResource, str]]:
    clusters = {provider.name: provider.inputs["clusterIdentifier"] for provider in plan.of(PROVIDER)}
    for resource in objects(plan):
        yield resource, clusters[resource.options["provider"]]


def _namespace(resource: StackResource, plan: PlannedStack) -> Any:
    """Return an object's namespace, by the planned namespace that it waits for if no preview knows it."""
    namespace = (resource.inputs.get("metadata") or resource.inputs).get("namespace")
    if namespace is not UNKNOWN:
        return namespace
    (name,) = {
        plan.one(*key).inputs["metadata"]["name"]
        for keys in resource.inputs_from.values()
        for key in keys
        if key[0] == "kubernetes:core/v1:Namespace"
    }
    return name


def _on_wire(value: Any) -> Any:
    if value is UNKNOWN:
        return UNKNOWN_ON_WIRE
    if isinstance(value, Mapping):
        return {key: _on_wire(inner) for key, inner in value.items()}
    return [_on_wire(item) for item in value] if isinstance(value, list) else value
