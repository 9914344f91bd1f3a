"""What the containers of a run on GKE write, pod by pod, or all at once while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from training_platform.clients.kubernetes_api import JOBSETS, PODS, ClusterApi, ClusterError
from training_platform.jobs.gke.pod import CONTAINER
from training_platform.jobs.runs.on_gke import JOBSET_LABEL, holds

_POLL_SECONDS = 2.0
Line = tuple[str, str]
"""The pod or replica that wrote a line, and its text."""


def gke_logs(cluster: ClusterApi, namespace: str, run: str, *, follow: bool) -> Iterator[Line]:
    """Yield lines with the name of their pod, without the run's; a pod that has not started has none.

    With ``follow`` pods are read side by side, those of a restart too, until the run has ended. Raises ClusterError.
    """
    if follow:
        yield from _followed(cluster, namespace, run)
        return
    for pod in _started(cluster, namespace, run):
        for line in cluster.logs(namespace, pod, CONTAINER, follow=False):
            yield _short(pod, run), line


def _followed(cluster: ClusterApi, namespace: str, run: str) -> Iterator[Line]:
    lines: SimpleQueue[Line] = SimpleQueue()
    readers: dict[str, Thread] = {}
    ended = False
    while True:
        for pod in _started(cluster, namespace, run):
            if pod not in readers:
                readers[pod] = Thread(target=_read, args=(cluster, namespace, run, pod, lines), daemon=True)
                readers[pod].start()
        yield from _come(lines, _POLL_SECONDS)
        if ended and not any(reader.is_alive() for reader in readers.values()):
            yield from _come(lines, 0)
            return
        jobset = cluster.get(JOBSETS, namespace, run)
        ended = jobset is None or holds(jobset, "Completed") or holds(jobset, "Failed")


def _come(lines: SimpleQueue[Line], seconds: float) -> Iterator[Line]:
    """Yield what comes within so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            yield lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            return


def _read(cluster: ClusterApi, namespace: str, run: str, pod: str, lines: SimpleQueue[Line]) -> None:
    try:
        for line in cluster.logs(namespace, pod, CONTAINER, follow=True):
            lines.put((_short(pod, run), line))
    except ClusterError as error:
        lines.put((_short(pod, run), f"(no more lines: {error})"))


def _started(cluster: ClusterApi, namespace: str, run: str) -> list[str]:
    """Return the pods of a run whose containers have started, by name; none of those without the job's own program."""
    every = cluster.objects(PODS, namespace, f"{JOBSET_LABEL}={run}")
    pods = [pod for pod in every if _has_program(pod)]
    phases = {pod["metadata"]["name"]: (pod.get("status") or {}).get("phase") for pod in pods}
    return sorted(name for name, phase in phases.items() if phase not in (None, "Pending"))


def _has_program(pod: Mapping[str, Any]) -> bool:
    return CONTAINER in [each["name"] for each in pod.get("spec", {}).get("containers") or [{"name": CONTAINER}]]


def _short(pod: str, run: str) -> str:
    return pod.removeprefix(f"{run}-")
