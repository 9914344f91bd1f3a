"""How Kubernetes objects reach their cluster: a kubeconfig without secrets, or no cluster at all."""

from __future__ import annotations

import json
from typing import Any

from tests.support.plans import composed
from training_platform.resources.gke import kubeconfig
from training_platform.resources.kubernetes_objects import cluster_provider
from training_platform.resources.plan import Resource, referenced
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, UNKNOWN


def provider(endpoint: Any) -> Any:
    """Return the inputs of a cluster's provider."""
    place = {"project": "example-train-prod", "location": "us-central2-b", "cluster_name": "prod-tpu"}

    def compose(into: Any) -> None:
        for cluster in referenced(endpoint):
            into.add(cluster)
        cluster_provider(into, "tpu-kubernetes", endpoint=endpoint, **place)

    plan = composed(compose)
    return plan.one(KUBERNETES_PROVIDER, "tpu-kubernetes").inputs


def test_a_provider_is_known_by_its_cluster_and_not_by_its_kubeconfig() -> None:
    identifier = "projects/example-train-prod/locations/us-central2-b/clusters/prod-tpu"

    for host in ("a.gke.goog", "b.gke.goog"):
        assert provider(host) == {
            "clusterIdentifier": identifier, "enableServerSideApply": "true", "enablePatchForce": "true",
            "kubeconfig": kubeconfig(host),
        }  # fmt: skip


def test_the_kubeconfig_is_unknown_while_the_endpoint_is() -> None:
    cluster = Resource(type="gcp:container/cluster:Cluster", name="later", inputs={})

    assert provider(cluster.output("endpoint"))["kubeconfig"] is UNKNOWN


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

    (cluster,) = config["clusters"]
    (user,) = config["users"]
    (context,) = config["contexts"]
    assert config["current-context"] == context["name"]
    assert context["context"] == {"cluster": cluster["name"], "user": user["name"]}
    assert cluster["cluster"] == {"server": "https://a.gke.goog"}


def test_the_same_endpoint_gives_the_same_text() -> None:
    assert kubeconfig("a.gke.goog") == kubeconfig("a.gke.goog")
