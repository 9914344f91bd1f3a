"""A cluster with model servers and the adapter that gives them their metrics."""

from __future__ import annotations

from typing import Any

from tests.kube.queues import PATHS, Json, Queues, until
from tests.support.plans import composed
from training_platform.resources.metrics_adapter import metrics_adapter
from training_platform.resources.scope import Scope

H100 = {"training-platform/flavor": "h100-reservation", "cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
SERVER = {"flavor": "h100-reservation", "image": "registry.example.com/vllm:1"}


class Servers(Queues):
    """A cluster with model servers; pods that have a node run, as a kubelet would say."""

    selector = "training-platform/server"

    def pods(self, team: str, *, running: bool = False) -> list[Json]:
        """Return the pods of servers that are not being deleted."""
        every = self.get(f"/api/v1/namespaces/{team}/pods?labelSelector={self.selector}")["items"]
        alive = [pod for pod in every if not pod["metadata"].get("deletionTimestamp")]
        return [pod for pod in alive if not running or pod.get("status", {}).get("phase") == "Running"]

    def run(self, team: str) -> int:
        """Say of every pod with a node that it runs and is ready; return how many there are."""
        for pod in self.pods(team):
            if pod["spec"].get("nodeName") and pod["status"].get("phase") != "Running":
                ready = {"type": "Ready", "status": "True"}
                path = f"/api/v1/namespaces/{team}/pods/{pod['metadata']['name']}/status"
                self.change(path, {"status": {"phase": "Running", "conditions": [ready]}})
        return len(self.pods(team, running=True))

    def clear(self) -> None:
        for namespace in (namespace["metadata"]["name"] for namespace in self.get("/api/v1/namespaces")["items"]):
            for kind in ("HorizontalPodAutoscaler", "Deployment"):
                self.delete(PATHS[kind].format(namespace))
            until(lambda namespace=namespace: self._pods_gone(namespace), bool)  # type: ignore[misc]
        super().clear()

    def _pods_gone(self, namespace: str) -> bool:
        path = f"/api/v1/namespaces/{namespace}/pods"
        self.delete(path, gracePeriodSeconds=0)  # there is no kubelet to end them
        return not self.get(path)["items"]


RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADAPTER_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "RoleBinding": f"{RBAC}/namespaces/{{}}/rolebindings",
    "Deployment": PATHS["Deployment"],
    "Service": PATHS["Service"],
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
}


def adapter_objects(scope: Scope) -> list[Json]:
    """Return what a deployment of the adapter makes in a cluster."""
    plan = composed(lambda into: metrics_adapter(into, scope, "a@example.com"), "main-adapter")
    return [dict(resource.inputs) for resource in plan.resources if resource.inputs.get("kind") in ADAPTER_PATHS]


def team(gpus: int, max_replicas: int, **fields: Any) -> dict[str, Json]:
    shares = {"main": {"h100-reservation": {"nominal_quota": gpus}}}
    return {
        "vision": {"shares": shares, "serving": {"main": {"chat": {**SERVER, "max_replicas": max_replicas}}}, **fields}
    }
