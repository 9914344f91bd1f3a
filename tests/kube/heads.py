"""A cluster in which pods of jobs run and end as a kubelet says."""

from __future__ import annotations

from tests.kube.queues import Json, Queues

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/vision/jobsets"
NODE_POOL = "cloud.google.com/gke-nodepool"


class Heads(Queues):
    """A cluster with slices and VMs for heads; pods that have a node run, as a kubelet would say."""

    def pods(self, run: str) -> list[Json]:
        """Return the pods of a run, after those with a node became ready."""
        path = f"/api/v1/namespaces/vision/pods?labelSelector=jobset.sigs.k8s.io/jobset-name={run}"
        pods = [pod for pod in self.get(path)["items"] if not pod["metadata"].get("deletionTimestamp")]
        for pod in pods:
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Running", "Failed"):
                ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                self.change(f"/api/v1/namespaces/vision/pods/{pod['metadata']['name']}/status", {"status": ready})
        return pods

    def nodes_of_roles(self, run: str) -> dict[str, set[str]]:
        """Return by replicated job the node pools of a run's pods."""
        pools = {node["metadata"]["name"]: node["metadata"]["labels"][NODE_POOL] for node in self.nodes()}
        pools_of_jobs: dict[str, set[str]] = {}
        for pod in self.pods(run):
            job = pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"]
            pools_of_jobs.setdefault(job, set()).add(pools.get(pod["spec"].get("nodeName", ""), ""))
        return pools_of_jobs

    def end(self, run: str) -> None:
        """Delete a run, and take its pods away."""
        self.delete(f"{JOBSETS}/{run}")
        self.gone_from("vision", f"/api/v1/namespaces/vision/pods?labelSelector=jobset.sigs.k8s.io/jobset-name={run}")

    def nodes(self) -> list[Json]:
        return list(self.get("/api/v1/nodes")["items"])
