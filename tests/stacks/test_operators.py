"""Operators for other kinds of jobs, in a whole environment and its team: installed, queued, for members to use."""

from __future__ import annotations

import pytest
import yaml

from tests.stacks.edited_dev import plans_of_dev
from tests.support.plans import PlannedStack
from training_platform.catalog import CHARTS, IMAGES

RELEASE = "kubernetes:helm.sh/v3:Release"
TOLERATIONS = [
    {"key": "components.gke.io/gke-managed-components", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
]
OF_TRAINER = {
    "jobset": {"install": False},
    "manager": {"tolerations": TOLERATIONS},
    "runtimes": {"installer": {"tolerations": TOLERATIONS}},
}
ON_THE_SYSTEM_POOL = {"tolerations": TOLERATIONS, "priorityClassName": "training-platform-system"}
OPERATORS = "[ray, trainer, leader-worker-set, slice-controller, ml-diagnostics]"


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlannedStack]:
    """Plan dev and its team, with every operator in its cluster for GPUs."""
    before = "      us-central1:\n        location: us-central1\n"
    edits = {"dev": (before, f"{before}        operators: {OPERATORS}\n")}
    return plans_of_dev(tmp_path_factory.mktemp("repository"), edits)


@pytest.mark.parametrize(
    ("name", "namespace", "values"),
    [
        ("ray", "kuberay-system", ON_THE_SYSTEM_POOL),
        ("trainer", "kubeflow-system", OF_TRAINER),
        ("leader-worker-set", "lws-system", ON_THE_SYSTEM_POOL),
    ],
)
def test_an_operator_comes_from_its_chart_after_jobset(
    plans: dict[str, PlannedStack], name: str, namespace: str, values: object
) -> None:
    release = plans["dev"].one(RELEASE, f"us-central1-{name}-release")

    assert (release.inputs["name"], release.inputs["namespace"]) == (name, namespace)
    assert release.inputs.get("values", {}) == values


def test_what_is_gkes_own_is_switched_on_in_that_cluster_alone(plans: dict[str, PlannedStack]) -> None:
    clusters = {
        resource.name: resource.inputs
        for resource in plans["dev"].resources
        if resource.type.endswith("cluster:Cluster")
    }
    chosen = {name for name, inputs in clusters.items() if "managedMachineLearningDiagnosticsConfig" in inputs}

    assert chosen == {"us-central1-cluster"}
    inputs = clusters["us-central1-cluster"]
    assert inputs["managedMachineLearningDiagnosticsConfig"] == {"enabled": True}
    assert inputs["addonsConfig"]["sliceControllerConfig"] == {"enabled": True}


def test_kueue_counts_pods_of_worker_sets(plans: dict[str, PlannedStack]) -> None:
    values = plans["dev"].one(RELEASE, "us-central1-kueue-release").inputs["values"]
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])

    frameworks = configuration["integrations"]["frameworks"]
    assert {"pod", "leaderworkerset.x-k8s.io/leaderworkerset", "ray.io/rayjob"} <= set(frameworks)
    assert len(frameworks) == len(set(frameworks))


def test_members_may_make_these_jobs_which_policies_hold_in_queues(plans: dict[str, PlannedStack]) -> None:
    kinds = {"rayclusters", "rayjobs", "trainjobs", "trainingruntimes", "leaderworkersets"}
    rules = (
        plans["dev-vision"]
        .one("kubernetes:rbac.authorization.k8s.io/v1:Role", "share-us-central1-tenancy-role")
        .inputs["rules"]
    )
    policies = {
        resource.name.removeprefix("us-central1-admission-queued-")
        for resource in plans["dev"].resources
        if resource.name.startswith("us-central1-admission-queued-") and not resource.name.endswith("-binding")
    }

    assert kinds <= {resource for rule in rules for resource in rule["resources"]}
    assert policies == {"jobs", *kinds}


def test_the_namespace_of_a_team_bounds_these_kinds(plans: dict[str, PlannedStack]) -> None:
    quota = plans["dev-vision"].one("kubernetes:core/v1:ResourceQuota", "share-us-central1-tenancy-resource-quota")

    hard = quota.inputs["spec"]["hard"]
    assert hard["count/rayjobs.ray.io"] == hard["count/trainjobs.trainer.kubeflow.org"] == "500"


def test_the_operator_of_ray_reaches_dashboards_in_that_cluster_alone(plans: dict[str, PlannedStack]) -> None:
    """Without it no RayJob ever ends well: its operator asks the dashboard what became of it."""
    policies = {
        resource.name: resource.inputs["spec"]
        for resource in plans["dev-vision"].resources
        if resource.name.endswith("-tenancy-ray-policy")
    }

    assert policies == {
        "share-us-central1-tenancy-ray-policy": {
            "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kuberay-system"}}}],
                    "ports": [{"protocol": "TCP", "port": 8265}],
                }
            ],
        }
    }


RBAC = "kubernetes:rbac.authorization.k8s.io/v1:"
LAUNCH = "    wandb_launch: {us-central1: {entity: example-vision, queues: [gpus], max_jobs: 4}}\n"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> PlannedStack:
    """Plan dev's team with an agent in its cluster for GPUs, whose chart comes from a mirror."""
    charts = "    charts: {wandb-launch: {repository: https://charts.example.com}}\n"
    edits = {
        "dev": ("    clusters:\n", f"{charts}    clusters:\n"),
        "dev-vision": ("    name: vision\n", f"{LAUNCH}    name: vision\n"),
    }
    return plans_of_dev(tmp_path_factory.mktemp("repository"), edits)["dev-vision"]


def test_the_agent_comes_from_its_chart_without_a_key(plan: PlannedStack) -> None:
    inputs = plan.one(RELEASE, "wandb-us-central1-release").inputs
    values = dict(inputs["values"])
    config = yaml.safe_load(values.pop("launchConfig"))

    assert (inputs["chart"], inputs["version"]) == ("launch-agent", CHARTS["wandb-launch"].version)
    assert inputs["repositoryOpts"] == {"repo": "https://charts.example.com"}
    assert (inputs["name"], inputs["namespace"], inputs["skipAwait"]) == ("vision", "wandb-vision", True)
    assert config == {
        "entity": "example-vision", "queues": ["gpus"], "max_jobs": 4, "builder": {"type": "noop"},
    }  # fmt: skip
    assert values == {
        "agent": {"useExternalWandbSecret": True, "image": IMAGES["wandb-launch-agent"]},
        "namespace": "wandb-vision",
        "additionalTargetNamespaces": [],
        "baseUrl": "https://api.wandb.ai",
        "volcano": False,
    }


def test_its_namespace_has_room_for_the_agent_alone(plan: PlannedStack) -> None:
    namespace = plan.one("kubernetes:core/v1:Namespace", "wandb-us-central1-namespace").inputs["metadata"]
    quota = plan.one("kubernetes:core/v1:ResourceQuota", "wandb-us-central1-quota").inputs

    assert namespace["name"] == "wandb-vision"
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert "training-platform/team" not in namespace["labels"]  # its pods are not the team's
    hard = quota["spec"]["hard"]
    assert {hard[quota] for quota in ("count/jobs.batch", "requests.nvidia.com/gpu", "requests.google.com/tpu")} == {
        "0"
    }


def test_it_makes_jobs_and_jobsets_in_the_teams_namespace_and_no_pods(plan: PlannedStack) -> None:
    rules = plan.one(f"{RBAC}Role", "wandb-us-central1-role").inputs["rules"]
    subjects = plan.one(f"{RBAC}RoleBinding", "wandb-us-central1-role-binding").inputs["subjects"]
    makes = {resource for rule in rules if "create" in rule["verbs"] for resource in rule["resources"]}
    reads_secrets = [rule for rule in rules if "secrets" in rule["resources"] and "get" in rule["verbs"]]

    assert makes == {"jobs", "jobsets", "secrets"}
    assert [rule["resourceNames"] for rule in reads_secrets] == [["wandb-api-key-vision"]]
    assert subjects == [
        {"kind": "ServiceAccount", "name": "wandb-launch-serviceaccount-vision", "namespace": "wandb-vision"}
    ]
