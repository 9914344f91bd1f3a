"""Pods of runs in real containers, as soon as their programs run."""

from __future__ import annotations

from typing import Any

from tests.parts.jobs.runs.gke_cluster import PODS, SECONDS, Cluster, until

Json = dict[str, Any]
WAIT = "import time; print('begun'); time.sleep(600)"


def begun(cluster: Cluster, run: str, attempt: int = 0, seconds: float = SECONDS) -> Json:
    """Return the pod of a run's attempt once its program runs."""

    def pods() -> list[Json]:
        return [pod for pod in cluster.pods(run) if _attempt(pod) == attempt and "begun" in log(cluster, pod)]

    return until(pods, bool, seconds)[0]


def _attempt(pod: Json) -> int:
    return int(pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"])


def log(cluster: Cluster, pod: Json) -> str:
    answer = cluster.client.get(f"{PODS}/{pod['metadata']['name']}/log")
    return answer.text if answer.is_success else ""
