"""Logs of runs: lines of pods on GKE and of replicas on Vertex AI, and earlier attempts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import Thread

from training_platform.catalog.types import Json
from training_platform.clients.google_services import CloudLogging
from training_platform.clients.kubernetes_api import JOBSETS, PODS, ClusterApi, ClusterError
from training_platform.parts.jobs.gke.pathways import HEAD
from training_platform.parts.jobs.gke.pods import CONTAINER, ROLE
from training_platform.parts.jobs.naming import job_of
from training_platform.parts.jobs.runs.on_gke import JOBSET_LABEL, holds
from training_platform.parts.jobs.runs.places import RunPlace
from training_platform.parts.jobs.runs.state import Run, State, quoted

_POLL_SECONDS = 2.0
LogLine = tuple[str, str]
"""The pod or replica that wrote a line, and the line's text."""


def gke_logs(cluster: ClusterApi, namespace: str, run: str, *, follow: bool) -> Iterator[LogLine]:
    """Yield log lines, each with the name of its pod without the run's name. A pod that has not started has none.

    With ``follow``, all pods are read concurrently, including those of restarts, until the run has ended. Raises
    ClusterError.
    """
    if follow:
        yield from _followed(cluster, namespace, run)
        return
    for pod in _started(cluster, namespace, run):
        for line in cluster.logs(namespace, pod, CONTAINER, follow=False):
            yield _short(pod, run), line


def _followed(cluster: ClusterApi, namespace: str, run: str) -> Iterator[LogLine]:
    lines: SimpleQueue[LogLine] = SimpleQueue()
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


def _come(lines: SimpleQueue[LogLine], seconds: float) -> Iterator[LogLine]:
    """Yield the items that arrive within the given number of seconds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            yield lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            return


def _read(cluster: ClusterApi, namespace: str, run: str, pod: str, lines: SimpleQueue[LogLine]) -> None:
    try:
        for line in cluster.logs(namespace, pod, CONTAINER, follow=True):
            lines.put((_short(pod, run), line))
    except ClusterError as error:
        lines.put((_short(pod, run), f"(its log was interrupted: {error})"))


def _started(cluster: ClusterApi, namespace: str, run: str) -> list[str]:
    """Return the names of the started pods of a run, except pods that do not run the job's program."""
    names = []
    for pod in cluster.objects(PODS, namespace, f"{JOBSET_LABEL}={run}"):
        containers = pod.get("spec", {}).get("containers") or [{"name": CONTAINER}]  # a pod may have no spec yet
        phase = (pod.get("status") or {}).get("phase")
        if phase not in (None, "Pending") and any(container["name"] == CONTAINER for container in containers):
            names.append(pod["metadata"]["name"])
    return sorted(names)


def _short(pod: str, run: str) -> str:
    return pod.removeprefix(f"{run}-")


_CLOUD_POLL_SECONDS = 5.0
_TRIAL_LABEL = "ml.googleapis.com/trial_id"
_ENDS: dict[str, State] = {
    "AllJobsCompleted": "succeeded",
    "FailedJobs": "failed",
    "ReachedMaxRestarts": "failed",
    "FailJobSetFailurePolicyAction": "failed",
}

_FAILURES = tuple(reason for reason, state in _ENDS.items() if state == "failed")
# The event of a failed attempt that another one follows. Source: JobSet 0.12, pkg/constants/constants.go.
RESTARTS = {
    "RestartJobSetFailurePolicyAction": "failed",
    "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction": "was interrupted",
}
_ATTEMPTS = 5  # attempts, the last ones
_LINES = 3  # at the end of an attempt's log


def vertex_lines(
    log: CloudLogging, run: Run, ids: Callable[[], Mapping[str, str]], *, ended: Callable[[], bool] | None = None
) -> Iterator[LogLine]:
    """Yield the lines of a run's replicas. With ``ended``, also yield new lines until it returns true.

    ``ids`` returns the current ids of the run's jobs, each with its trial. If a new trial appears, log entries are
    requested again from the start of the run, since lines of the new trial may be older than the last line of another.
    """
    begin = since = f' AND timestamp>="{run.created}"' if run.created else ""
    seen: set[str] = set()
    trials: Mapping[str, str] = {}
    while True:
        last = ended is None or ended()
        if trials.keys() != (now := ids()).keys():
            trials = now
            since = begin
        either = " OR ".join(f'"{job}"' for job in trials)
        for entry in log.entries(f'resource.type="ml_job" AND resource.labels.job_id=({either})' + since):
            if (key := str(entry.get("insertId"))) not in seen:
                seen.add(key)
                since = f' AND timestamp>="{entry["timestamp"]}"'
                labels = (entry.get("resource") or {}).get("labels") or {}
                trial = (entry.get("labels") or {}).get(_TRIAL_LABEL) or trials.get(str(labels.get("job_id")))
                replica = str(labels.get("task_name") or "service")
                yield f"trial-{trial} {replica}" if trial else replica, _text(entry)
        if last:
            return
        time.sleep(_CLOUD_POLL_SECONDS)


def pod_lines(log: CloudLogging, place: RunPlace, run: str) -> Iterator[LogLine]:
    """Yield the lines of a run's pods, which may be deleted, from Cloud Logging."""
    for entry in log.entries(_of_pods(place.cluster, place.team.name, run)):
        yield _line(entry, run)


def _of_pods(cluster: str, namespace: str, run: str) -> str:
    return (
        f'resource.type="k8s_container" AND resource.labels.cluster_name="{cluster}" AND '
        f'resource.labels.namespace_name="{namespace}" AND resource.labels.container_name="{CONTAINER}" AND '
        f'resource.labels.pod_name=~"^{run}-({ROLE}|{HEAD})-"'
    )


def _line(entry: Json, run: str) -> LogLine:
    return str(entry["resource"]["labels"].get("pod_name")).removeprefix(f"{run}-"), _text(entry)


def _of_jobset(cluster: str, namespace: str, run: str) -> str:
    return (
        f'log_id("events") AND resource.labels.cluster_name="{cluster}" AND '
        f'jsonPayload.involvedObject.kind="JobSet" AND jsonPayload.involvedObject.namespace="{namespace}" AND '
        f'jsonPayload.involvedObject.name="{run}"'
    )


def earlier_attempts(log: CloudLogging, cluster: str, namespace: str, run: str) -> Iterator[str]:
    """Yield a sentence about each recent attempt of a run that failed, with the last lines of its log.

    When an attempt begins, JobSet deletes the pods of the previous one and writes an event. Cloud Logging keeps both
    events and lines. Raises GoogleError.
    """
    ends = [(str(entry["timestamp"]), _event(entry)) for entry in log.entries(_of_jobset(cluster, namespace, run))]
    ends = [(time, event) for time, event in ends if event.get("reason") in (*RESTARTS, *_FAILURES)]
    for number, (end, event) in [*enumerate(ends, 1)][-_ATTEMPTS:]:
        after = f' AND timestamp>="{ends[number - 2][0]}"' if number > 1 else ""
        written = f'{_of_pods(cluster, namespace, run)} AND timestamp<="{end}"{after}'
        lines = [_line(entry, run) for entry in log.last(written, _LINES)]
        log_end = " / ".join(f"{pod} | {text}" for pod, text in lines)
        verb = RESTARTS.get(str(event["reason"]), "failed")
        yield (
            f"Attempt {number} {verb} at {end}: {quoted(str(event.get('message') or event['reason']))}."
            + (
                f" Its log ended with: {quoted(log_end)}."
                if log_end
                else " Cloud Logging has no lines of this attempt."
            )
        )


def recorded_end(log: CloudLogging, cluster: str, namespace: str, run: str) -> tuple[State, Json, str] | None:
    """Return a run's final state, the event of its end and the time; None if there is no such event.

    Raises GoogleError.
    """
    entries = log.entries(_of_jobset(cluster, namespace, run))
    ends = [(_event(entry), str(entry["timestamp"])) for entry in entries if _event(entry).get("reason") in _ENDS]
    return (_ENDS[ends[-1][0]["reason"]], *ends[-1]) if ends else None


def gone_run(log: CloudLogging, place: RunPlace, run: str) -> Run | None:
    """Return a run that is no longer in its cluster, from the event of its end; None if there is no such event."""
    end = recorded_end(log, place.cluster, place.team.name, run)
    if end is None:
        return None
    state, event, ended = end
    return Run(
        name=run,
        job=job_of(run),
        team=place.team.name,
        target="gke",
        place=place.key,
        identity=run,
        state=state,
        created="",
        reason=str(event.get("message") or event["reason"]),
        ended=ended,
        gone=True,
    )


def _event(entry: Json) -> Json:
    return dict(entry.get("jsonPayload") or {})


def _text(entry: Json) -> str:
    payload = entry.get("jsonPayload") or {}
    return str(entry.get("textPayload") or payload.get("message") or "").rstrip("\n")
