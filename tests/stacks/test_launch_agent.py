"""An agent of W&B Launch in a whole team: in a namespace of its own, with no right to what passes the queue."""

from __future__ import annotations

import pytest
import yaml

from tests.stacks.edited import plans_of_dev
from training_platform.catalog import CHARTS, IMAGES
from training_platform.checks.planning.recorder import Plan

RELEASE = "kubernetes:helm.sh/v3:Release"
RBAC = "kubernetes:rbac.authorization.k8s.io/v1:"
LAUNCH = "    wandb_launch: {us-central1: {entity: example-vision, queues: [gpus], max_jobs: 4}}\n"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Plan dev's team with an agent in its cluster for GPUs, whose chart comes from a mirror."""
    charts = "    charts: {wandb-launch: {repository: https://charts.example.com}}\n"
    edits = {
        "dev": ("    clusters:\n", f"{charts}    clusters:\n"),
        "dev-vision": ("    name: vision\n", f"{LAUNCH}    name: vision\n"),
    }
    return plans_of_dev(tmp_path_factory.mktemp("repository"), edits)["dev-vision"]


def test_the_agent_comes_from_its_chart_without_a_key(plan: Plan) -> None:
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


def test_its_namespace_has_room_for_the_agent_alone(plan: Plan) -> None:
    namespace = plan.one("kubernetes:core/v1:Namespace", "wandb-us-central1-namespace").inputs["metadata"]
    quota = plan.one("kubernetes:core/v1:ResourceQuota", "wandb-us-central1-quota").inputs

    assert namespace["name"] == "wandb-vision"
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert "training-platform/team" not in namespace["labels"]  # its pods are not the team's
    hard = quota["spec"]["hard"]
    assert {hard[each] for each in ("count/jobs.batch", "requests.nvidia.com/gpu", "requests.google.com/tpu")} == {"0"}


def test_it_makes_jobs_and_jobsets_in_the_teams_namespace_and_no_pods(plan: Plan) -> None:
    rules = plan.one(f"{RBAC}Role", "wandb-us-central1-role").inputs["rules"]
    subjects = plan.one(f"{RBAC}RoleBinding", "wandb-us-central1-role-binding").inputs["subjects"]
    makes = {resource for rule in rules if "create" in rule["verbs"] for resource in rule["resources"]}
    reads_secrets = [rule for rule in rules if "secrets" in rule["resources"] and "get" in rule["verbs"]]

    assert makes == {"jobs", "jobsets", "secrets"}
    assert [rule["resourceNames"] for rule in reads_secrets] == [["wandb-api-key-vision"]]
    assert subjects == [
        {"kind": "ServiceAccount", "name": "wandb-launch-serviceaccount-vision", "namespace": "wandb-vision"}
    ]
