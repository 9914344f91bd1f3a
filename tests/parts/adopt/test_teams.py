"""Adopting deployed teams and their queues beside their environment gives files with the same plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.parts.adopt.stacks import PROJECT, Repository, contents_of, differing, in_cloud, plans_of, standing
from tests.parts.jobs.runs.api_stub import ApiStub, served, write_kubeconfig
from tests.places import ORGANISATION
from training_platform.clients.kubernetes_api import CLUSTER_QUEUES, COHORTS, PRIORITIES, ClusterError
from training_platform.clients.project_contents import Contents
from training_platform.config.workspace import read_workspace
from training_platform.parts.adopt.adoption import AdoptedStack, adopt_environment, adopt_teams
from training_platform.parts.adopt.cli import planner
from training_platform.parts.adopt.cluster_objects import Queues, reach_clusters, read_queues
from training_platform.resources.resource_types import CLUSTER, CLUSTER_QUEUE, COHORT, PERSISTENT_RESOURCE
from training_platform.resources.stack_resource import StackResource

pytestmark = pytest.mark.timeout(300)  # each plans several stacks

WORKSPACE = read_workspace(ORGANISATION)
TEAMS = {stack.name: team for stack, team, _ in WORKSPACE.teams()}
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
        access_logs: example-lab-logs
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


def kueue(resources: Sequence[StackResource], name: str) -> list[dict[str, Any]]:
    """Return a plan's Kueue objects of one kind, as a cluster holds them."""
    return [dict(resource.inputs) for resource in resources if resource.type.endswith(f":{name}")]


def queues_of(plans: Mapping[str, Sequence[StackResource]], clusters: Sequence[str]) -> Queues:
    """Return the queues of clusters after these stacks are deployed."""

    def held(cluster: str, kind: str) -> list[Any]:
        every = [resource for plan in plans.values() for resource in plan if resource.type.endswith(f":{kind}")]
        return [
            resource.inputs
            for resource in every
            if f"{cluster}-" in resource.name or resource.name.endswith(f"-{cluster}")
        ]

    kinds = {
        CLUSTER_QUEUES.plural: "ClusterQueue",
        COHORTS.plural: "Cohort",
        PRIORITIES.plural: "WorkloadPriorityClass",
    }
    return Queues({cluster: {plural: held(cluster, kind) for plural, kind in kinds.items()} for cluster in clusters})


def adopted(
    root: Path, home: str, contents: Contents, queues: Queues, production: bool, *, keep_replaced: bool = False
) -> dict[str, AdoptedStack]:
    plan = planner(root)
    environment = adopt_environment(home, contents, plan, production=production, queues=queues)
    teams = adopt_teams(environment, contents, plan, queues=queues, keep_replaced=keep_replaced)
    return {stack.name: stack for stack in [environment, *teams]}


def queue_specs(resources: Sequence[StackResource]) -> dict[tuple[str, str], Any]:
    return {resource.key: resource.inputs["spec"] for resource in resources if resource.type in (CLUSTER_QUEUE, COHORT)}


@pytest.fixture(scope="module", name="plans")
def _plans(repository: Repository) -> Mapping[str, Sequence[StackResource]]:
    """Return the plans of an environment and its team."""
    return plans_of(repository({"lab": HOME, "lab-vision": TEAM}), "lab", "lab-vision")


def all_of(plans: Mapping[str, Sequence[StackResource]]) -> list[StackResource]:
    return [resource for plan in plans.values() for resource in plan]


@pytest.mark.parametrize("home", [stack.name for stack, _ in WORKSPACE.environments()])
def test_environments_and_teams_of_the_organisation_plan_the_same_once_adopted(
    home: str, repository: Repository
) -> None:
    names = [home, *(name for name, team in TEAMS.items() if team.environment == home)]
    plans = plans_of(ORGANISATION, *names)
    section = WORKSPACE.stacks[home].environment
    assert section is not None
    contents = contents_of(standing(all_of(plans), section.project), section.project)
    queues = queues_of(plans, list(section.clusters))

    adopted_stacks = adopted(repository({}), home, contents, queues, bool(section.production))

    assert list(adopted_stacks) == names
    assert {resource.type for resource in adopted_stacks[home].new if resource.type.startswith("gcp:")} == {
        "gcp:projects/iAMMember:IAMMember",  # of the service agents, which are in no list
        "gcp:projects/serviceIdentity:ServiceIdentity",
        "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",  # of people and pipelines: nobody asks for it
    }
    for name, plan in plans.items():
        stack = adopted_stacks[name]
        assert (stack.left_out, stack.unsaid) == ({}, {})
        # No API tells a team's directories, which its dashboard shows.
        # Nor does one tell a pipeline's account that submits to Vertex AI from other members.
        other = {
            key
            for key in differing(in_cloud(plan), in_cloud(stack.resources))
            if not key[0].startswith("budget")
            and "submit-at-example-ci" not in key[0]
            and not key[0].startswith("images-reader-submit-")
        }
        assert other <= {("dashboard-team", "dashboardJson")}
        assert {path.split("/")[2] for path in stack.changes} == ({"dashboards"} if other else set())
        assert queue_specs(plan) == queue_specs(stack.resources)


def test_every_option_of_a_team_that_an_api_returns_is_adopted(
    plans: Mapping[str, Sequence[StackResource]], repository: Repository
) -> None:
    contents = contents_of(standing(all_of(plans)))

    adopted_stacks = adopted(repository({}), "lab", contents, queues_of(plans, ["main"]), production=False)

    for name, text in (("lab", HOME), ("lab-vision", TEAM)):
        assert (adopted_stacks[name].left_out, adopted_stacks[name].changes, adopted_stacks[name].unsaid) == (
            {},
            {},
            {},
        )
        assert list(differing(in_cloud(plans[name]), in_cloud(adopted_stacks[name].resources))) == []
        assert queue_specs(plans[name]) == queue_specs(adopted_stacks[name].resources)
        (written,), (original,) = (
            yaml.safe_load(source)["config"].values() for source in (adopted_stacks[name].text, text)
        )
        assert written.keys() == original.keys()


def test_a_persistent_resource_that_runs_ray_is_left_out(
    plans: Mapping[str, Sequence[StackResource]], repository: Repository
) -> None:
    contents = contents_of(standing(all_of(plans)))
    path = "projects/example-lab/locations/us-central1/persistentResources/lab-vision-tuning"
    contents.of(PERSISTENT_RESOURCE)[path]["resourceRuntimeSpec"]["raySpec"] = {"headNodeResourcePoolId": "machines"}

    vision = adopted(repository({}), "lab", contents, queues_of(plans, ["main"]), production=False)["lab-vision"]

    assert list(vision.left_out) == [path]
    assert vision.left_out[path].startswith("it runs Ray, for which the provider has no field")


def test_without_queues_a_team_has_what_the_project_shows(
    plans: Mapping[str, Sequence[StackResource]], repository: Repository
) -> None:
    contents = contents_of(standing(all_of(plans)))

    team_stack = adopted(repository({}), "lab", contents, Queues(), production=False)["lab-vision"]

    section = yaml.safe_load(team_stack.text)["config"]["training-platform:team"]
    assert "shares" not in section
    assert sorted(section["buckets"]) == ["data", "plain"]


def test_members_are_read_from_an_account_with_a_shortened_name(repository: Repository) -> None:
    stacks = {
        "lab": HOME,
        "lab-vision-and-language-models": TEAM.replace("vision\n", "vision-and-language-models\n", 1),
    }
    plans = plans_of(repository(stacks), *stacks)
    contents = contents_of(standing(all_of(plans)))

    adopted_stacks = adopted(repository({}), "lab", contents, queues_of(plans, ["main"]), production=False)

    assert list(adopted_stacks) == list(stacks)
    section = yaml.safe_load(adopted_stacks["lab-vision-and-language-models"].text)["config"]["training-platform:team"]
    assert section["members"] == ["group:vision@example.com", "user:ada@example.com"]


def test_a_bucket_of_no_team_is_left_out_by_name(
    plans: Mapping[str, Sequence[StackResource]], repository: Repository
) -> None:
    seeded = standing(plans["lab"])
    seeded.ask("POST", "serviceusage/v1/projects/example-lab/services/storage.googleapis.com:enable", {})
    seeded.ask("POST", "storage/v1/b", {"name": "images-of-all", "location": "US"}, project=PROJECT)

    adopted_stacks = adopted(repository({}), "lab", contents_of(seeded), Queues(), production=False)

    assert list(adopted_stacks) == ["lab"]
    reason = (
        "name is images-of-all, and a team's is example-lab-lab-TEAM-KEY. For reading it as it is: "
        "data_sets: {KEY: {bucket: {name: images-of-all, location: us}}}"
    )
    assert adopted_stacks["lab"].left_out == {"images-of-all": reason}


def test_a_team_without_members_is_left_out(
    plans: Mapping[str, Sequence[StackResource]], repository: Repository
) -> None:
    contents = contents_of(standing(plans["lab"]))
    queue = {"metadata": {"name": "nlp"}, "spec": {"resourceGroups": []}}

    adopted_stacks = adopted(
        repository({}), "lab", contents, Queues({"main": {CLUSTER_QUEUES.plural: [queue]}}), production=False
    )

    assert adopted_stacks["lab"].left_out == {"team nlp": "nobody may act as lab-nlp-jobs, and a team needs members"}


class Cluster(ApiStub):
    """An API server that has queues but no cohorts."""

    def __init__(self) -> None:
        super().__init__()
        queue = {"metadata": {"name": "nlp"}, "spec": {"cohortName": "training-platform"}}
        self.lists = {"/apis/kueue.x-k8s.io/v1beta2/clusterqueues": [queue]}


def holding(cluster: str) -> Contents:
    path = f"projects/{PROJECT}/locations/us-central1/clusters/{cluster}"
    return Contents(PROJECT, {CLUSTER: {path: {"name": cluster}}})


def test_queues_are_read_by_a_kubeconfig(tmp_path: Path) -> None:
    with served(Cluster()) as server:
        kubeconfig = write_kubeconfig(tmp_path / "config", server, f"gke_{PROJECT}_us-central1_lab-main")
        queues = read_queues("lab", reach_clusters("lab", holding("lab-main"), str(kubeconfig)))

    assert queues.teams() == {"nlp"}
    assert queues.objects["main"][COHORTS.plural] == []


def test_a_kubeconfig_without_a_cluster_says_how_to_get_it(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9", "other")

    with pytest.raises(ClusterError, match="gcloud container clusters get-credentials lab-main --location us-central1"):
        read_queues("lab", reach_clusters("lab", holding("lab-main"), str(kubeconfig)))


def test_clusters_of_others_are_not_asked(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9", "other")

    assert reach_clusters("lab", holding("others"), str(kubeconfig)) == {}
