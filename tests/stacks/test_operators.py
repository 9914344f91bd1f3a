"""Operators for other kinds of jobs, in a whole environment and its team: installed, queued, for members to use."""

from __future__ import annotations

import pytest
import yaml

from tests.stacks.edited import plans_of_dev
from training_platform.checks.planning.recorder import Plan

RELEASE = "kubernetes:helm.sh/v3:Release"
OPERATORS = "[ray, trainer, leader-worker-set, slice-controller, ml-diagnostics]"


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Plan]:
    """Plan dev and its team, with every operator in its cluster for GPUs."""
    before = "      us-central1:\n        location: us-central1\n"
    edits = {"dev": (before, f"{before}        operators: {OPERATORS}\n")}
    return plans_of_dev(tmp_path_factory.mktemp("repository"), edits)


@pytest.mark.parametrize(
    ("name", "namespace", "values"),
    [
        ("ray", "kuberay-system", {}),
        ("trainer", "kubeflow-system", {"jobset": {"install": False}}),
        ("leader-worker-set", "lws-system", {}),
    ],
)
def test_an_operator_comes_from_its_chart_after_jobset(
    plans: dict[str, Plan], name: str, namespace: str, values: object
) -> None:
    release = plans["dev"].one(RELEASE, f"us-central1-{name}-release")

    assert (release.inputs["name"], release.inputs["namespace"]) == (name, namespace)
    assert release.inputs.get("values", {}) == values


def test_what_is_gkes_own_is_switched_on_in_that_cluster_alone(plans: dict[str, Plan]) -> None:
    clusters = {each.name: each.inputs for each in plans["dev"].resources if each.type.endswith("cluster:Cluster")}
    chosen = {name for name, inputs in clusters.items() if "managedMachineLearningDiagnosticsConfig" in inputs}

    assert chosen == {"us-central1-cluster"}
    inputs = clusters["us-central1-cluster"]
    assert inputs["managedMachineLearningDiagnosticsConfig"] == {"enabled": True}
    assert inputs["addonsConfig"]["sliceControllerConfig"] == {"enabled": True}


def test_kueue_counts_pods_of_worker_sets(plans: dict[str, Plan]) -> None:
    values = plans["dev"].one(RELEASE, "us-central1-kueue-release").inputs["values"]
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])

    frameworks = configuration["integrations"]["frameworks"]
    assert {"pod", "leaderworkerset.x-k8s.io/leaderworkerset", "ray.io/rayjob"} <= set(frameworks)
    assert len(frameworks) == len(set(frameworks))


def test_members_may_make_these_jobs_which_policies_hold_in_queues(plans: dict[str, Plan]) -> None:
    kinds = {"rayclusters", "rayjobs", "trainjobs", "trainingruntimes", "leaderworkersets"}
    rules = (
        plans["dev-vision"]
        .one("kubernetes:rbac.authorization.k8s.io/v1:Role", "share-us-central1-tenancy-role")
        .inputs["rules"]
    )
    policies = {
        each.name.removeprefix("us-central1-admission-queued-")
        for each in plans["dev"].resources
        if each.name.startswith("us-central1-admission-queued-") and not each.name.endswith("-binding")
    }

    assert kinds <= {resource for rule in rules for resource in rule["resources"]}
    assert policies == {"jobs", *kinds}


def test_the_namespace_of_a_team_bounds_these_kinds(plans: dict[str, Plan]) -> None:
    quota = plans["dev-vision"].one("kubernetes:core/v1:ResourceQuota", "share-us-central1-tenancy-resource-quota")

    hard = quota.inputs["spec"]["hard"]
    assert hard["count/rayjobs.ray.io"] == hard["count/trainjobs.trainer.kubeflow.org"] == "500"


def test_the_operator_of_ray_reaches_dashboards_in_that_cluster_alone(plans: dict[str, Plan]) -> None:
    """Without it no RayJob ever ends well: its operator asks the dashboard what became of it."""
    policies = {
        each.name: each.inputs["spec"]
        for each in plans["dev-vision"].resources
        if each.name.endswith("-tenancy-ray-policy")
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
