"""Notebooks of teams on real controllers: a pod as the hub makes it waits for quota, and yields to the team's jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.kube.clusters import kueue_cluster
from tests.kube.queues import HOMES, Json, Queues, until
from training_platform.config.model.workloads import Notebooks
from training_platform.resources.kueue import configuration
from training_platform.resources.notebooks import in_namespace

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

VISION = {"users": ["ada@example.com"], "pools": ["reserved"]}
HUB: Json = {
    "filestore": "homes", "oauth_client_id": "id", "allowed_domain": "example.com", "teams": {"vision": VISION},
}  # fmt: skip
GATE = "kueue.x-k8s.io/admission"


class Hub(Queues):
    """A cluster with notebooks; a pod is what KubeSpawner makes of a team's profile, as far as Kueue looks at it."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(client)
        self._http = client

    def spawn(self, gpus: int) -> None:
        """Start ada's notebook on GPUs."""
        override = in_namespace(Notebooks.model_validate_json(json.dumps(HUB)), "vision", {})
        amount = {"nvidia.com/gpu": str(gpus)}
        container = {"name": "notebook", "image": "example.com/lab:1", "resources": {"limits": amount}}
        body = {
            "metadata": {"name": "jupyter-ada", "labels": override["extra_labels"]},
            "spec": {"containers": [container], "nodeSelector": {"training-platform/flavor": "h100-reservation"}},
        }
        self._http.post("/api/v1/namespaces/vision/pods", json=body).raise_for_status()

    def notebook(self) -> Json | None:
        """Return the notebook's pod; None once it is deleted."""
        every = self.get("/api/v1/namespaces/vision/pods")["items"]
        alive = (pod for pod in every if not pod["metadata"].get("deletionTimestamp"))
        return next((pod for pod in alive if pod["metadata"]["name"] == "jupyter-ada"), None)

    def gates(self) -> list[str] | None:
        """Return the names of the gates that the notebook waits at; None without a notebook."""
        pod = self.notebook()
        return None if pod is None else [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]

    def clear(self) -> None:
        path = "/api/v1/namespaces/vision/pods"
        self._http.request("DELETE", path, json={"gracePeriodSeconds": 0})
        super().clear()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    settings = configuration(["reservation"], pods=True)
    with kueue_cluster(tmp_path_factory.mktemp("notebooks"), settings) as cluster:
        yield Hub(cluster.client)


@pytest.fixture
def hub(cluster: Hub) -> Iterator[Hub]:
    yield cluster
    cluster.clear()


def deploy(hub: Hub, **team: Any) -> None:
    shares = {"main": {"h100-reservation": {"nominal_quota": 8}}}
    hub.deploy({"vision": {"shares": shares, **team}}, filestore=HOMES, notebooks=HUB)


def test_a_notebook_waits_for_quota_that_jobs_have_and_starts_when_they_end(hub: Hub) -> None:
    deploy(hub)
    hub.submit("vision", "train", 8)
    hub.runs("vision", "train")

    hub.spawn(1)

    until(hub.gates, lambda gates: gates is not None and GATE in gates)
    hub.waits("vision", "jupyter-ada")
    hub.runs("vision", "train")
    hub.delete("/apis/batch/v1/namespaces/vision/jobs/train")
    until(hub.gates, lambda gates: gates == [])


def test_a_notebook_is_deleted_when_a_job_needs_its_quota(hub: Hub) -> None:
    deploy(hub)
    hub.spawn(1)
    until(hub.gates, lambda gates: gates == [])

    hub.submit("vision", "train", 8)  # a job without priority

    hub.runs("vision", "train")
    until(hub.notebook, lambda pod: pod is None)


def test_a_notebook_takes_back_nothing_that_a_job_was_given(hub: Hub) -> None:
    deploy(hub)
    hub.submit("vision", "train", 8, priority="low")
    hub.runs("vision", "train")

    hub.spawn(8)

    hub.waits("vision", "jupyter-ada")
    hub.runs("vision", "train")
