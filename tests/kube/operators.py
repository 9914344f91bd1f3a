"""A cluster with Ray and Kubeflow Trainer, and the objects that a team gives them."""

from __future__ import annotations

import copy
from typing import Any

import httpx

from tests.kube.deployed import GPU, TEAM
from tests.kube.queues import KUEUE, Json, Queues, until
from tests.kube.server import MEMBER

OPERATORS = ("      us-central1:\n        loc", "      us-central1:\n        operators: [ray, trainer]\n        loc")
RAY = f"/apis/ray.io/v1/namespaces/{TEAM}"
TRAINER = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{TEAM}"
RAYCLUSTERS = f"{RAY}/rayclusters"
RAYJOBS = f"{RAY}/rayjobs"
TRAINJOBS = f"{TRAINER}/trainjobs"
RUNTIMES = f"{TRAINER}/trainingruntimes"
JOBS = f"/apis/batch/v1/namespaces/{TEAM}/jobs"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets"
GRACE_SECONDS = 60
IMAGE = "us-central1-docker.pkg.dev/example-train-dev/images/train:1"
MERGE = {"Content-Type": "application/merge-patch+json"}


class Operated(Queues):
    """A cluster whose operators run, as a member of a team and as its kubelets see it."""

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(client)
        self._http = client

    def refusal(self, path: str, body: Json, *, keep: bool = False) -> str:
        """Create an object as a member, a dry run unless it is to stay; return the refusal."""
        options = {"fieldValidation": "Strict"}
        if not keep:
            options["dryRun"] = "All"
        answer = self._http.post(path, json=body, params=options, headers=MEMBER)
        return "" if answer.is_success else str(answer.json()["message"])

    def make(self, path: str, body: Json) -> None:
        """Create an object as a member."""
        assert self.refusal(path, body, keep=True) == ""

    def changed(self, path: str, patch: Json) -> str:
        """Try to change an object as a member; return the refusal."""
        answer = self._http.patch(path, json=patch, params={"dryRun": "All"}, headers={**MEMBER, **MERGE})
        return "" if answer.is_success else str(answer.json()["message"])

    def deleted(self, path: str, **options: str | bool) -> str:
        """Delete an object as a member; return the refusal."""
        answer = self._http.request("DELETE", path, json=options, headers=MEMBER)
        return "" if answer.is_success else str(answer.json()["message"])

    def pods(self, selector: str) -> list[Json]:
        """Return the pods, after those with a node became ready."""
        pods = self.get(f"{PODS}?labelSelector={selector}")["items"]
        for pod in pods:
            if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
                status = {"phase": "Running", "podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]}
                path = f"{PODS}/{pod['metadata']['name']}/status"
                self.change(path, {"status": {**status, "conditions": conditions}})
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]

    def nodes_of_pods(self, selector: str) -> set[str]:
        """Return the nodes of the pods that ask for GPUs."""
        return {
            pod["spec"].get("nodeName", "")
            for pod in self.pods(selector)
            if GPU in pod["spec"]["containers"][0]["resources"].get("limits", {})
        }

    def gone(self, selector: str) -> None:
        """Wait until no pod is left."""
        self.gone_from(TEAM, f"{PODS}?labelSelector={selector}")

    def cluster_of(self, job: str) -> str:
        """Wait for the Ray cluster of a RayJob, and return its name; a suspended RayJob has none."""

        def name() -> str:
            cluster_name = str(self.get(f"{RAYJOBS}/{job}").get("status", {}).get("rayClusterName", ""))
            return (
                cluster_name
                if cluster_name in {ray_cluster["metadata"]["name"] for ray_cluster in self.get(RAYCLUSTERS)["items"]}
                else ""
            )

        return until(name, bool)

    def workloads(self) -> list[str]:
        """Return the owners of the team's workloads."""
        every = self.get(f"{KUEUE}/namespaces/{TEAM}/workloads")["items"]
        return sorted(workload["metadata"]["ownerReferences"][0]["name"] for workload in every)

    def clear(self) -> None:
        """Delete all jobs of the team, and wait until nothing of them is left."""
        for path in (RAYJOBS, RAYCLUSTERS, TRAINJOBS, RUNTIMES, JOBS):
            self.delete(path)
        workloads = f"{KUEUE}/namespaces/{TEAM}/workloads"
        self.gone_from(TEAM, RAYJOBS, RAYCLUSTERS, TRAINJOBS, JOBSETS, JOBS, PODS, workloads)


def owned(body: Json) -> Json:
    """Return a job that says to be a part of another."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1", "controller": True}
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [owner]}}


def about(kind: str, name: str, api_version: str, **labels: str) -> Json:
    labels = {"kueue.x-k8s.io/queue-name": TEAM, **labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": TEAM, "labels": labels}}


def pods_of(container: str, gpus: int = 0) -> Json:
    """Return a template of pods."""
    limits = {"cpu": "1", "memory": "1Gi"}
    if gpus:
        limits[GPU] = str(gpus)
    return {"spec": {"containers": [{"name": container, "image": IMAGE, "resources": {"limits": limits}}]}}


def ray(workers: int = 2) -> Json:
    group = {"groupName": "gpus", "replicas": workers, "minReplicas": workers, "maxReplicas": workers}
    worker = {**group, "rayStartParams": {}, "template": pods_of("ray-worker", 8)}
    head = {"rayStartParams": {}, "template": pods_of("ray-head")}
    return {"rayVersion": "2.52.0", "headGroupSpec": head, "workerGroupSpecs": [worker]}


def ray_cluster(name: str = "rays", **labels: str) -> Json:
    return {**about("RayCluster", name, "ray.io/v1", **labels), "spec": {"suspend": True, **ray()}}


def with_field(body: Json, path: str, value: Any) -> Json:
    spoiled = copy.deepcopy(body)
    *parents, last = path.split(".")
    inner: Any = spoiled
    for key in parents:
        inner = inner[int(key)] if key.isdigit() else inner.setdefault(key, {})
    inner[last] = value
    return spoiled


def runtime() -> Json:
    """Return a runtime as a team writes it: PyTorch on as many nodes as its jobs say."""
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    pods = with_field(pods_of("node"), "spec.terminationGracePeriodSeconds", GRACE_SECONDS)
    node = {"name": "node", "template": {"metadata": {"labels": step}, "spec": {"template": pods}}}
    body = about("TrainingRuntime", "torch", "trainer.kubeflow.org/v1alpha1")
    return {
        **body,
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [node]}}},
    }


def train_job(name: str = "tune", nodes: int = 2) -> Json:
    limits = {"limits": {"cpu": "1", GPU: "8"}, "requests": {"cpu": "1", GPU: "8"}}
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "torch"}
    trainer = {"numNodes": nodes, "image": IMAGE, "command": ["torchrun", "train.py"], "resourcesPerNode": limits}
    spec = {"suspend": True, "runtimeRef": reference, "trainer": trainer}
    return {**about("TrainJob", name, "trainer.kubeflow.org/v1alpha1"), "spec": spec}
