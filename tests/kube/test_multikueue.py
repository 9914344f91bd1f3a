"""What Kueue's own controller says of a queue over several clusters as our clusters are reached: decision 13."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.kube.clusters import kueue_cluster
from tests.kube.queues import KUEUE, Json, Queues, until
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

API, NAMESPACE = "kueue.x-k8s.io/v1beta2", "kueue-system"
# How kubectl and our provider sign in to GKE: no secret, and a plugin that asks Google Cloud for a token each time.
PLUGIN = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "gke-gcloud-auth-plugin"}}
TOKEN = {"token": "a-token-that-somebody-has-to-keep"}


@pytest.fixture(scope="module")
def queues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queues]:
    settings = configuration(["reservation", "queued-provisioning"])
    with kueue_cluster(tmp_path_factory.mktemp("multikueue"), settings) as cluster:
        queues = Queues(cluster.client)
        queues.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield queues


def kubeconfig(user: Json) -> str:
    text = yaml.safe_dump(
        {
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "a", "user": user}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }
    )  # fmt: skip
    return base64.b64encode(text.encode()).decode()


def condition(queues: Queues, path: str) -> dict[str, Any]:
    """Return the condition Active of an object, once there is one."""

    def active() -> list[Json]:
        conditions = queues.get(path).get("status", {}).get("conditions", ())
        return [each for each in conditions if each["type"] == "Active"]

    return dict(until(active, bool)[0])


@pytest.mark.parametrize(("name", "user", "refused"), [("plugin", PLUGIN, True), ("token", TOKEN, False)])
def test_a_worker_is_not_reached_as_gke_is_but_by_a_token(queues: Queues, name: str, user: Json, refused: bool) -> None:
    about = {"name": name, "namespace": NAMESPACE}
    secret = {"metadata": about, "data": {"kubeconfig": kubeconfig(user)}}
    queues.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
    source = {"clusterSource": {"kubeConfig": {"location": name, "locationType": "Secret"}}}
    body = {"apiVersion": API, "kind": "MultiKueueCluster", "metadata": {"name": name}, "spec": source}
    queues.create(f"{KUEUE}/multikueueclusters", body)

    found = condition(queues, f"{KUEUE}/multikueueclusters/{name}")

    assert found["status"] == "False"  # nobody answers at the other's address either
    assert ("exec" in found["message"].lower()) is refused, found
    assert (found["reason"] == "InsecureKubeConfig") is refused, found


def test_a_queue_has_no_check_of_both_other_clusters_and_requested_vms(queues: Queues) -> None:
    checks = {
        "clusters": ("kueue.x-k8s.io/multikueue", "MultiKueueConfig", {"clusters": ["token"]}),
        "machines": (
            "kueue.x-k8s.io/provisioning-request", "ProvisioningRequestConfig",
            {"provisioningClassName": "queued-provisioning.gke.io"},
        ),
    }  # fmt: skip
    for name, (controller, kind, spec) in checks.items():
        config = {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
        queues.create(f"{KUEUE}/{kind.lower()}s", config)
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": kind, "name": name}
        check = {"controllerName": controller, "parameters": parameters}
        body = {"apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": check}
        queues.create(f"{KUEUE}/admissionchecks", body)
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": name} for name in checks]}}
    body = {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": "spans"}, "spec": strategy}
    queues.create(f"{KUEUE}/clusterqueues", body)

    def reason() -> str:
        return str(condition(queues, f"{KUEUE}/clusterqueues/spans")["message"])

    said = until(reason, lambda text: "MultiKueue" in text)
    assert "ProvisioningRequest" in said or "provisioning" in said.lower()
