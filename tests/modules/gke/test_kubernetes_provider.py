"""How Kubernetes objects reach their cluster: a kubeconfig without secrets, or no cluster at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
from pulumi_gcp import compute

from modules.kubernetes_objects import cluster_provider
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.gke import kubeconfig
from training_platform.resources.planned import UNKNOWN

Deploy = Callable[[Callable[[], object]], Plan]
PROVIDER = "pulumi:providers:kubernetes"


@pytest.fixture(autouse=True)
def _no_kubeconfig_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)


def provider(endpoint: pulumi.Input[str], **more: Any) -> kubernetes.Provider:
    return cluster_provider(
        "tpu-kubernetes",
        endpoint=endpoint,
        project="example-train-prod",
        location="us-central2-b",
        cluster_name="prod-tpu",
        **more,
    )


def test_a_provider_is_known_by_its_cluster_and_not_by_its_kubeconfig(deploy: Deploy) -> None:
    planned = [deploy(partial(provider, host)).one(PROVIDER).inputs for host in ("a.gke.goog", "b.gke.goog")]

    assert {inputs["clusterIdentifier"] for inputs in planned} == {
        "projects/example-train-prod/locations/us-central2-b/clusters/prod-tpu"
    }
    assert [json.loads(inputs["kubeconfig"])["clusters"][0]["cluster"] for inputs in planned] == [
        {"server": "https://a.gke.goog"},
        {"server": "https://b.gke.goog"},
    ]
    assert {inputs["enableServerSideApply"] for inputs in planned} == {"true"}
    assert not any("renderYamlToDirectory" in inputs for inputs in planned)


def test_the_kubeconfig_is_unknown_while_the_endpoint_is(deploy: Deploy) -> None:
    plan = deploy(lambda: provider(compute.Network("not-there-yet").id))

    assert plan.one(PROVIDER).inputs["kubeconfig"] is UNKNOWN


def test_the_callers_options_are_kept(deploy: Deploy) -> None:
    def program() -> None:
        parent = pulumi.ComponentResource("training-platform:test:Parent", "parent")
        provider("a.gke.goog", opts=pulumi.ResourceOptions(parent=parent))

    assert deploy(program).one(PROVIDER).parent == ("training-platform:test:Parent", "parent")


def test_a_kubeconfig_logs_in_as_whoever_runs_pulumi() -> None:
    config = json.loads(kubeconfig("a.gke.goog"))

    (user,) = config["users"]
    login = user["user"]["exec"]
    assert login["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert login["command"] == "gke-gcloud-auth-plugin"
    assert login["provideClusterInfo"] is True
    assert login["interactiveMode"] == "Never"
    assert user["user"].keys() == {"exec"}


def test_a_kubeconfig_hangs_together() -> None:
    config = json.loads(kubeconfig("a.gke.goog"))

    (cluster,), (user,), (context,) = config["clusters"], config["users"], config["contexts"]
    assert config["current-context"] == context["name"]
    assert context["context"] == {"cluster": cluster["name"], "user": user["name"]}
    assert cluster["cluster"] == {"server": "https://a.gke.goog"}


def test_the_same_endpoint_gives_the_same_text() -> None:
    assert kubeconfig("a.gke.goog") == kubeconfig("a.gke.goog")
