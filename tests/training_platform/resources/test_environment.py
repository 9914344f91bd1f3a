"""What the plan of an environment ties together: nodes with their roles, clusters with what is in them."""

from __future__ import annotations

import pytest

from tests.stacks.every_field import ENVIRONMENT, TEAM, planned
from tests.support.plans import PlannedStack
from training_platform.resources.gke import NODE_ROLES
from training_platform.resources.resource_types import CLUSTER, IAM_MEMBER, NODE_POOL, RELEASE
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, StackResource

ROLES = {(IAM_MEMBER, f"nodes-{role.removeprefix('roles/')}") for role in NODE_ROLES}


@pytest.fixture(scope="module")
def plan() -> PlannedStack:
    return planned(ENVIRONMENT, TEAM, "env")


def awaited(resource: StackResource) -> set[tuple[str, str]]:
    return set(resource.options["dependsOn"])


def test_nodes_join_after_their_account_has_its_roles(plan: PlannedStack) -> None:
    pools = [*plan.of(NODE_POOL), *plan.of(CLUSTER)]

    assert len(pools) > 10
    assert [pool.name for pool in pools if not awaited(pool) >= ROLES] == []


def test_a_node_pool_waits_for_its_cluster(plan: PlannedStack) -> None:
    assert [pool.name for pool in plan.of(NODE_POOL) if (CLUSTER, "c-cluster") not in awaited(pool)] == []


@pytest.mark.parametrize(
    ("component", "before"),
    [
        (f"{NODE_POOL} c-system-pool", f"{NODE_POOL} c-general-pool"),  # before it turns pods away
        ("training-platform:index:JobSet c-jobset", f"{NODE_POOL} c-system-pool"),
        ("training-platform:index:Kueue c-kueue", f"{RELEASE} c-jobset-release"),
        ("training-platform:index:ResourceFlavors c-flavors", f"{RELEASE} c-kueue-release"),
    ],
)
def test_what_is_in_a_cluster_waits_for_what_it_runs_on(plan: PlannedStack, component: str, before: str) -> None:
    assert tuple(before.split()) in awaited(plan.one(*component.split()))


def test_every_object_of_a_cluster_is_registered_through_its_provider(plan: PlannedStack) -> None:
    objects = [resource for resource in plan.resources if resource.type.startswith("kubernetes:")]

    assert [resource.name for resource in plan.of(KUBERNETES_PROVIDER)] == ["c-kubernetes"]
    assert {resource.options["provider"] for resource in objects} == {"c-kubernetes"}
