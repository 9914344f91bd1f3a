"""Flavors, priorities and queues as registered, for the sample stacks too: names, schemas, order of deletion."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack, composed
from tests.support.team_queues import team_of
from training_platform.config.expansion import flavors
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.queues import ROOT_COHORT, CohortSpec, Share
from training_platform.config.workspace import read_workspace
from training_platform.resources.queues import flavor_resources
from training_platform.resources.queues import team_queues as add_team_queues
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import StackResource
from training_platform.rules.documents.definitions import CrdSchema

KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"
Build = Callable[..., ClusterSpec]
Crds = dict[tuple[str, str, str], CrdSchema]
GPUS: dict[str, object] = {"machine_type": "a3-highgpu-8g", "max_nodes": 4}


def cluster_objects(
    scope: Scope,
    name: str,
    cluster: ClusterSpec,
    priorities: dict[str, int],
    cohorts: Mapping[str, CohortSpec] | None = None,
) -> PlannedStack:
    flavors_by_name = flavors(name, cluster)
    return composed(
        lambda into: flavor_resources(
            into, name, flavors_by_name, priorities=priorities, cohorts=cohorts or {}, scope=scope
        ),
        f"{name}-flavors",
    )


def team_queues(scope: Scope, cluster: ClusterSpec, shares: dict[str, Share], name: str = "main") -> PlannedStack:
    team = dataclasses.replace(scope, team="vision", labels={**scope.labels, "team": "vision"})
    vision = team_of("vision", {name: shares})
    flavors_by_name = flavors(name, cluster)
    return composed(
        lambda into: add_team_queues(into, vision, name, flavors_by_name, scope=team, namespace="vision"),
        f"share-{name}",
    )


def named(plan: PlannedStack, kind: str) -> dict[str, StackResource]:
    return {resource.inputs["metadata"]["name"]: resource for resource in plan.of(f"{KUEUE}:{kind}")}


def refusals(plan: PlannedStack, crds: Crds) -> list[str]:
    objects = [resource for resource in plan.resources if resource.type.startswith(KUEUE)]
    assert objects
    return [
        f"{resource.name}: {error}"
        for resource in objects
        for error in crds["kueue.x-k8s.io", "v1beta2", resource.type.rpartition(":")[2]].errors(resource.inputs)
    ]


def test_priorities_have_their_value_beside_their_metadata(scope: Scope, cluster: Build, crds: Crds) -> None:
    plan = cluster_objects(scope, "main", cluster(), {"low": 100, "urgent": 2000})
    classes = named(plan, "WorkloadPriorityClass")

    assert {name: resource.inputs["value"] for name, resource in classes.items()} == {"low": 100, "urgent": 2000}
    assert all("spec" not in resource.inputs for resource in classes.values())
    assert refusals(plan, crds) == []


def test_all_queues_of_a_namespace_lead_to_the_teams_cluster_queue(scope: Scope, cluster: Build, crds: Crds) -> None:
    plan = team_queues(scope, cluster(a=GPUS), {"h100": Share(nominal_quota=16)})
    local = named(plan, "LocalQueue")

    assert set(named(plan, "ClusterQueue")) == {"vision"}
    assert set(local) == {"vision", "default"}
    for queue in local.values():
        assert queue.inputs["metadata"]["namespace"] == "vision"
        assert queue.inputs["spec"] == {"clusterQueue": "vision"}
    assert refusals(plan, crds) == []


def test_every_object_says_whose_it_is(scope: Scope, cluster: Build) -> None:
    plans = [
        cluster_objects(scope, "main", cluster(a=GPUS), {"low": 1}),
        team_queues(scope, cluster(a=GPUS), {"h100": Share(nominal_quota=16)}),
    ]
    objects = [resource for plan in plans for resource in plan.resources if resource.type.startswith(KUEUE)]

    for resource in objects:
        labels = resource.inputs["metadata"]["labels"]
        assert labels["environment"] == "prod"
        assert labels["app.kubernetes.io/managed-by"] == "training-platform"
        assert ("team" in labels) is resource.type.endswith("Queue")


def test_the_sample_stacks_ask_for_nothing_that_the_crds_refuse(scope: Scope, crds: Crds) -> None:
    workspace = read_workspace(ORGANISATION)
    environments = list(workspace.environments())
    for stack, environment in environments:
        for name, spec in environment.clusters.items():
            assert (
                refusals(cluster_objects(scope, name, spec, environment.priorities, environment.cohorts), crds) == []
            ), stack.name
    shares = [
        (home.clusters[name], share, name) for _, team, home in workspace.teams() for name, share in team.shares.items()
    ]
    assert environments
    assert shares
    for spec, share, name in shares:
        assert refusals(team_queues(scope, spec, share, name), crds) == []


def test_each_cohort_of_the_environment_has_an_object_in_the_cluster(scope: Scope, cluster: Build, crds: Crds) -> None:
    cohorts = {"research": CohortSpec(), "robots": CohortSpec(parent="research")}
    plan = cluster_objects(scope, "main", cluster(a=GPUS), {}, cohorts)

    parents = {
        name: cohort_object.inputs["spec"]["parentName"] for name, cohort_object in named(plan, "Cohort").items()
    }
    assert parents == {"research": ROOT_COHORT, "robots": "research"}
    assert refusals(plan, crds) == []
