"""What Cloud Logging has of runs: lines of Vertex AI's replicas, and of pods that are gone, and how a gone run ended.

Sources: Vertex AI docs, "View training logs"; gcloud's command_lib, the label of a trial; GKE docs, "View your GKE
logs"; event reasons of JobSet 0.12, pkg/constants; read 2026-11-22. Never seen with Google's service.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from training_platform.clients.google_api import Json
from training_platform.clients.google_services import CloudLogging
from training_platform.jobs.gke.jobset import ROLE
from training_platform.jobs.gke.pathways import HEAD
from training_platform.jobs.gke.pod import CONTAINER
from training_platform.jobs.runs.logs import Line
from training_platform.jobs.runs.naming import job_of
from training_platform.jobs.runs.places import Place
from training_platform.jobs.runs.state import Run, State

_POLL_SECONDS = 5.0
_TRIAL_LABEL = "ml.googleapis.com/trial_id"
_ENDS: dict[str, State] = {
    "AllJobsCompleted": "succeeded",
    "FailedJobs": "failed",
    "ReachedMaxRestarts": "failed",
    "FailJobSetFailurePolicyAction": "failed",
}


def vertex_lines(
    log: CloudLogging, run: Run, ids: Callable[[], Mapping[str, str]], *, ended: Callable[[], bool] | None = None
) -> Iterator[Line]:
    """Yield what the replicas of a run wrote; with ``ended`` also what they still write, until that is true.

    ``ids`` are those of its jobs as they are now, with the trial that an id belongs to. A trial that begins is asked
    from the run's beginning: its lines may be older than the last one of another.
    """
    begin = since = f' AND timestamp>="{run.created}"' if run.created else ""
    seen: set[str] = set()
    trials: Mapping[str, str] = {}
    while True:
        last = ended is None or ended()
        if trials.keys() != (now := ids()).keys():
            trials, since = now, begin
        either = " OR ".join(f'"{each}"' for each in trials)
        for entry in log.entries(f'resource.type="ml_job" AND resource.labels.job_id=({either})' + since):
            if (key := str(entry.get("insertId"))) not in seen:
                seen.add(key)
                since = f' AND timestamp>="{entry["timestamp"]}"'
                yield _replica(entry, trials), _text(entry)
        if last:
            return
        time.sleep(_POLL_SECONDS)


def pod_lines(log: CloudLogging, place: Place, run: str) -> Iterator[Line]:
    """Yield what the pods of a run wrote that may be gone."""
    query = (
        f'resource.type="k8s_container" AND resource.labels.cluster_name="{place.cluster}" AND '
        f'resource.labels.namespace_name="{place.team.name}" AND resource.labels.container_name="{CONTAINER}" AND '
        f'resource.labels.pod_name=~"^{run}-({ROLE}|{HEAD})-"'
    )
    for entry in log.entries(query):
        pod = str(entry["resource"]["labels"].get("pod_name"))
        yield pod.removeprefix(f"{run}-"), _text(entry)


def gone_run(log: CloudLogging, place: Place, run: str) -> Run | None:
    """Return a run that is not in its cluster any more, by the event of its end; None where there is no such event."""
    query = (
        f'log_id("events") AND resource.labels.cluster_name="{place.cluster}" AND '
        f'jsonPayload.involvedObject.kind="JobSet" AND jsonPayload.involvedObject.namespace="{place.team.name}" AND '
        f'jsonPayload.involvedObject.name="{run}"'
    )
    ends = [entry for entry in log.entries(query) if _event(entry).get("reason") in _ENDS]
    if not ends:
        return None
    event, ended = _event(ends[-1]), str(ends[-1]["timestamp"])
    return Run(
        name=run,
        job=job_of(run),
        team=place.team.name,
        target="gke",
        place=place.key,
        identity=run,
        state=_ENDS[event["reason"]],
        created="",
        reason=str(event.get("message") or event["reason"]),
        ended=ended,
        gone=True,
    )


def _event(entry: Json) -> Json:
    return dict(entry.get("jsonPayload") or {})


def _replica(entry: Json, trials: Mapping[str, str]) -> str:
    """Return which replica wrote a line, after its trial if it is of one."""
    labels = (entry.get("resource") or {}).get("labels") or {}
    trial = (entry.get("labels") or {}).get(_TRIAL_LABEL) or trials.get(str(labels.get("job_id")))
    task = str(labels.get("task_name") or "service")
    return f"trial-{trial} {task}" if trial else task


def _text(entry: Json) -> str:
    payload = entry.get("jsonPayload") or {}
    return str(entry.get("textPayload") or payload.get("message") or "").rstrip("\n")
