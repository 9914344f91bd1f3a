"""What deployed teams are in their project differs from their plans in nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.parts.adopt.stacks import PROJECT, Repository, adopted, plans_of, standing
from tests.parts.jobs.runs.api_stub import write_kubeconfig
from training_platform.clients.kubernetes_api import ClusterError
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import read_workspace
from training_platform.parts.adopt.adoption import stacks_to_adopt
from training_platform.parts.adopt.cluster_objects import planned_clusters, reach_clusters
from training_platform.resources.stack_resource import StackResource

pytestmark = pytest.mark.timeout(300)  # each plans several stacks

HOME = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    priorities: {low: 10, high: 20}
    cohorts:
      research: {weight: 2, shares: {main: {a100-40: {nominal_quota: 8}}}}
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        node_pools:
          a100: {machine_type: a2-highgpu-8g, max_nodes: 4}
          spot: {machine_type: a2-highgpu-8g, max_nodes: 4, capacity: spot}
"""
TEAM = """\
config:
  training-platform:team:
    environment: lab
    name: vision
    labels: {cost-center: vision}
    members: [group:vision@example.com, user:ada@example.com]
    shares:
      main:
        a100-40: {nominal_quota: 16, borrowing_limit: 8, lending_limit: 4}
        a100-40-spot: {nominal_quota: 32}
    cohort: research
    weight: 3
    preemption: {within_queue: Never, reclaim: LowerPriority}
    fallback: {when_can_borrow: TryNextFlavor, when_can_preempt: MayStopSearch, order: {main: [a100-40-spot, a100-40]}}
    hold: {main: Hold}
    secrets: [hugging-face]
    buckets:
      data:
        location: us-central1
        storage_class: NEARLINE
        delete_after_days: 30
        versioning: true
        hierarchical_namespace: true
        provider_inputs: {logging: {log_bucket: example-lab-logs}}
      plain: {location: us-west4}
    vertex:
      tensorboards: [us-central1]
      persistent_resources:
        tuning:
          region: us-central1
          machine_type: a2-highgpu-1g
          replicas: 1
          max_replicas: 4
          boot_disk: {size_gb: 200}
          more_pools:
            cpus: {machine_type: n2-standard-8, replicas: 2, boot_disk: {type: pd-standard}}
            t4: {machine_type: n1-standard-8, accelerator: t4, accelerator_count: 2, replicas: 1}
"""


@pytest.fixture(scope="module", name="plans")
def _plans(repository: Repository) -> Mapping[str, Sequence[StackResource]]:
    """Return the plans of an environment and its team."""
    return plans_of(repository({"lab": HOME, "lab-vision": TEAM}), "lab", "lab-vision")


def all_of(plans: Mapping[str, Sequence[StackResource]]) -> list[StackResource]:
    return [resource for plan in plans.values() for resource in plan]


def test_every_option_of_a_team_that_an_api_returns_agrees_with_its_plan(
    plans: Mapping[str, Sequence[StackResource]],
) -> None:
    result = adopted(standing(all_of(plans)), plans)

    for stack in result.stacks.values():
        assert (stack.changes, stack.unsaid) == ({}, {})
    assert result.unplanned == []


APART = TEAM.replace("name: vision\n", "name: apart\n    project: example-apart\n", 1)


def test_a_team_with_its_own_project_is_adopted_in_that_project(repository: Repository) -> None:
    workspace = read_workspace(repository({"lab": HOME, "lab-vision": TEAM, "lab-apart": APART}))

    assert [stack.name for stack in stacks_to_adopt(workspace, PROJECT, "lab")] == ["lab", "lab-vision"]
    assert [stack.name for stack in stacks_to_adopt(workspace, "example-apart", "lab-apart")] == ["lab-apart"]
    with pytest.raises(UserError, match="lab-apart is in project example-apart, not in example-lab"):
        stacks_to_adopt(workspace, PROJECT, "lab-apart")


def test_the_clusters_of_planned_objects_are_reached(
    plans: Mapping[str, Sequence[StackResource]], tmp_path: Path
) -> None:
    paths = planned_clusters(plans["lab-vision"])
    assert paths == {f"projects/{PROJECT}/locations/us-central1-a/clusters/lab-main"}
    kubeconfig = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9", "other")

    with pytest.raises(
        ClusterError, match="gcloud container clusters get-credentials lab-main --location us-central1-a"
    ):
        reach_clusters(paths, str(kubeconfig))
