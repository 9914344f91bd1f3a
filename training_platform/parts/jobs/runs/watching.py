"""Reads the current runs from clusters and from Vertex AI, with one paged list for each kind of object."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from training_platform.catalog.types import Json
from training_platform.clients.google_api import GoogleError
from training_platform.clients.google_services import PIPELINES, VertexJobs
from training_platform.clients.kubernetes_api import (
    EVENTS,
    JOBSETS,
    LOCAL_QUEUES,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    WORKLOADS,
    ClusterApi,
    ClusterError,
)
from training_platform.config.reading.finding import UserError
from training_platform.parts.jobs.gke.gke_job import GkeJob, on_gke
from training_platform.parts.jobs.gke.jobset import jobset as jobset_of
from training_platform.parts.jobs.gke.pods import CONTAINER
from training_platform.parts.jobs.gke.team_quota import reach
from training_platform.parts.jobs.naming import point_runs
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.runs.on_gke import (
    JOBSET_LABEL,
    flavors_of,
    gke_run,
    holds,
    with_wait,
    workload_of,
)
from training_platform.parts.jobs.runs.on_vertex import (
    ENVIRONMENT_LABEL,
    TEAM_LABEL,
    log_ids,
    vertex_run,
    why_on_vertex,
    working_job,
)
from training_platform.parts.jobs.runs.places import RunPlace
from training_platform.parts.jobs.runs.state import Run
from training_platform.parts.jobs.runs.why_on_gke import Seen, why
from training_platform.parts.jobs.submission_rights import members_may_not
from training_platform.resources.kueue import QUEUE_LABEL

_POLL_SECONDS = 5.0


def gke_runs(cluster: ClusterApi, place: RunPlace) -> Iterator[Run]:
    """Yield the runs of a team in a cluster, oldest first. Raises ClusterError."""
    namespace = place.team.name
    workloads = list(cluster.objects(WORKLOADS, namespace))
    jobsets = cluster.objects(JOBSETS, namespace)
    oldest_first = sorted(jobsets, key=lambda jobset: str(jobset["metadata"].get("creationTimestamp")))
    runs = [gke_run(jobset, workload_of(jobset, workloads), place.key) for jobset in oldest_first]
    yield from _with_waits(cluster, namespace, runs)


def gke_now(cluster: ClusterApi, place: RunPlace, name: str) -> Run | None:
    """Return the current state of a run in a cluster, or None. Raises ClusterError."""
    namespace = place.team.name
    jobset = cluster.get(JOBSETS, namespace, name)
    if jobset is None:
        return None
    run = gke_run(jobset, workload_of(jobset, cluster.objects(WORKLOADS, namespace)), place.key)
    return _with_waits(cluster, namespace, [run])[0]


def _with_waits(cluster: ClusterApi, namespace: str, runs: list[Run]) -> list[Run]:
    """Return the runs. For each starting run, add the reason why its containers wait."""
    if not any(run.state == "starting" for run in runs):
        return runs
    pods_of_runs: dict[str, list[Json]] = {}
    for pod in cluster.objects(PODS, namespace, JOBSET_LABEL, fields="status.phase=Pending"):
        pods_of_runs.setdefault(pod["metadata"]["labels"][JOBSET_LABEL], []).append(pod)
    return [with_wait(run, pods_of_runs.get(run.name, ())) for run in runs]


def vertex_runs(vertex: VertexJobs, place: RunPlace) -> Iterator[Run]:
    """Yield the runs of a team in a region, newest first. Raises GoogleError."""
    labels = {ENVIRONMENT_LABEL: place.team.environment, TEAM_LABEL: place.team.name}
    bodies = list(vertex.jobs(" AND ".join(f'labels.{name}="{value}"' for name, value in labels.items())))
    by_name = {str(body["name"]): body for body in bodies}
    working = set(map(working_job, bodies))
    for body in bodies:
        if body["name"] not in working:  # a pipeline's job is not a separate run
            yield vertex_run(body, by_name.get(working_job(body)))


def is_withheld(error: GoogleError, place: RunPlace) -> bool:
    """Return True if Vertex AI refuses a call because members have no role, as in a project of several teams."""
    refused = error.status == HTTPStatus.FORBIDDEN and re.search(r"aiplatform\.\w+\.(list|create)\b", error.reason)
    return place.target == "vertex" and not place.team.vertex.members_submit and bool(refused)


def withheld(error: UserError, place: RunPlace) -> UserError:
    """Return an error of Vertex AI, with the names of those who may start and list jobs in the project."""
    sentence = members_may_not(place.team, place.environment, place.scope.project)
    return UserError(f"{error} {sentence[0].upper()}{sentence[1:]}.")


def vertex_named(vertex: VertexJobs, place: RunPlace, name: str) -> Run | None:
    """Return a team's run in a region, given its name, or None. Raises GoogleError."""
    run = next((run for run in vertex_runs(vertex, place) if run.name == name), None)
    # A list shows a pipeline's job only if it has the team's labels.
    return vertex_now(vertex, run.identity) if run and PIPELINES in run.identity else run


def vertex_now(vertex: VertexJobs, name: str) -> Run:
    """Return the current state of a run, given the full name of its job or pipeline. Raises GoogleError."""
    return vertex_run(*vertex_bodies(vertex, name))


def vertex_log_ids(vertex: VertexJobs, name: str) -> dict[str, str]:
    """Return the ids of a run's log lines, each with its trial. Raises GoogleError."""
    body, working = vertex_bodies(vertex, name)
    return log_ids([body, working] if working else [body])


def vertex_bodies(vertex: VertexJobs, name: str) -> tuple[Json, Json | None]:
    """Return a job, or a pipeline and its job. Raises GoogleError."""
    body = vertex.get(name)
    try:
        return body, vertex.get(job) if (job := working_job(body)) else None
    except GoogleError as error:
        if error.status == HTTPStatus.NOT_FOUND:  # somebody deleted only the job
            return body, None
        raise


def why_gke(
    cluster: ClusterApi,
    place: RunPlace,
    run: Run,
    job: ResolvedJob | None,
    vms: Callable[[GkeJob], Iterable[str]] = lambda _: (),
) -> list[str]:
    """Return the reasons why a run on GKE waits or failed. Raises ClusterError.

    ``job`` is the job in its file, if it still targets GKE. ``vms`` returns sentences about the recent activity of the
    node pools. ``vms`` is called if an admitted run waits for VMs.
    """
    namespace = place.team.name
    jobset = cluster.get(JOBSETS, namespace, run.name)
    if jobset is None:
        return [f"{run.name} no longer exists."]
    workloads = list(cluster.objects(WORKLOADS, namespace))
    workload = workload_of(jobset, workloads)
    queue = str(jobset["metadata"].get("labels", {}).get(QUEUE_LABEL, ""))
    names = {run.name}
    if workload:
        names.add(workload["metadata"]["name"])
    pods = list(cluster.objects(PODS, namespace, f"{JOBSET_LABEL}={run.name}"))
    names.update(pod["metadata"]["name"] for pod in pods)
    changed = job is not None and job.spec.gke is not None and has_changed(job, jobset)
    unchanged_job = on_gke(job) if job and job.spec.gke and not changed else None
    starting = holds(workload, "Admitted") and not holds(workload, "PodsReady")
    holders, ahead = _beside(run, place, unchanged_job, list(cluster.objects(JOBSETS, namespace)), workloads)
    seen = Seen(
        jobset=jobset,
        workload=workload,
        queue=cluster.get(LOCAL_QUEUES, namespace, queue) if queue else None,
        queue_name=queue,
        pending=cluster.pending(namespace, queue) if queue else None,
        requests=_requests(cluster, namespace, workload),
        pods=pods,
        events=[
            event
            for event in cluster.objects(EVENTS, namespace)
            if str((event.get("involvedObject") or {}).get("name")) in names
        ],
        vms=list(vms(unchanged_job)) if unchanged_job and starting else (),
        nodes=_nodes(cluster, pods),
        holders=holders,
        ahead=ahead,
        **_demand_and_share(unchanged_job),
    )
    file = job.source.file if job else ""
    differs = (
        f"{file} differs from the submitted {run.name}: the file was changed, or the run was submitted with options."
    )
    note = [differs] if changed else []
    return [*why(run, seen), *note]


def _nodes(cluster: ClusterApi, pods: Iterable[Json]) -> list[Json]:
    """Return the nodes of pods, or none if the caller may not read nodes, as is the case for members of a team."""
    names = {pod.get("spec", {}).get("nodeName") for pod in pods} - {None}
    try:
        return [node for node in cluster.objects(NODES, "") if node["metadata"]["name"] in names] if names else []
    except ClusterError as error:
        if error.status == 403:
            return []
        raise


def has_changed(job: ResolvedJob, jobset: Mapping[str, Any]) -> bool:
    """Return True if a JobSet differs from what the job's file would create now, in the fields that the file sets.

    Kueue and webhooks only add to a pod, and remove nothing.
    """
    run = str(jobset["metadata"]["name"])
    point = run.rpartition("-")[2]
    runs = point_runs(job, run.removesuffix(f"-{point}") if job.spec.sweep else run)
    return not any(_within(_decided(jobset_of(now)), _decided(jobset)) for now in runs if now.name == run)


def _decided(jobset: Mapping[str, Any]) -> dict[str, Any]:
    replicated = jobset["spec"]["replicatedJobs"]
    specs = [role["template"]["spec"] for role in replicated]
    pods = [spec["template"]["spec"] for spec in specs]
    (program,) = [container for pod in pods for container in pod["containers"] if container["name"] == CONTAINER]
    return {
        "layout": [
            (role.get("replicas"), spec.get("parallelism"), spec.get("completions"))
            for role, spec in zip(replicated, specs, strict=True)
        ],
        "nodes": {index: pod.get("nodeSelector") or {} for index, pod in enumerate(pods)},
        "container": {key: program.get(key) or [] for key in ("image", "command", "args")},
        "variables": {variable["name"]: variable.get("value", "") for variable in program.get("env") or ()},
    }


def _within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _within(part[key], whole[key]) for key in part)
    return bool(part == whole)


def why_vertex(vertex: VertexJobs, place: RunPlace, run: Run) -> list[str]:
    """Return the reasons why a run on Vertex AI waits or failed, and its team's other runs. Raises GoogleError."""
    sentences = list(why_on_vertex(run, *vertex_bodies(vertex, run.identity)))
    if run.state == "waiting":
        running_names = [other.name for other in vertex_runs(vertex, place) if other.state == "running"]
        if holding := sorted(name for name in running_names if name != run.name):
            sentences.append(f"Other runs of team {run.team} on it: {', '.join(holding)}.")
    return sentences


def wait(
    read: Callable[[], Run | None], *, seconds: float | None, changed: Callable[[Run], None], started: bool = False
) -> Run | None:
    """Wait until a run has ended or started, and return it, or its state at the timeout; None if it is gone."""
    deadline = None if seconds is None else time.monotonic() + seconds
    printed: tuple[str, bool] | None = None
    while True:
        run = read()
        if run is None or run.done or (started and run.state == "running"):
            return run
        if (run.state, bool(run.waiting_reason)) != printed:  # pulls of an image alternate between two reasons
            changed(run)
            printed = (run.state, bool(run.waiting_reason))
        pause_seconds = _POLL_SECONDS if deadline is None else min(_POLL_SECONDS, deadline - time.monotonic())
        if pause_seconds <= 0:
            return run
        time.sleep(pause_seconds)


def _requests(cluster: ClusterApi, namespace: str, workload: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return Kueue's ProvisioningRequests for a Workload, or none if the cluster does not show them."""
    if workload is None:
        return []
    uid = workload["metadata"]["uid"]
    try:
        requests = list(cluster.objects(PROVISIONING_REQUESTS, namespace))
    except ClusterError as error:
        if error.status in (403, 404):
            return []
        raise
    owners = [request["metadata"].get("ownerReferences", ()) for request in requests]
    return [request for request, rows in zip(requests, owners, strict=True) if uid in {row.get("uid") for row in rows}]


def _beside(
    run: Run, place: RunPlace, job: GkeJob | None, jobsets: list[Json], workloads: list[Json]
) -> tuple[list[Run], list[Run]]:
    """Return the team's runs that hold quota of a run's flavor, and those ahead of it in the queue."""
    flavor = job.flavor.name if job else None
    holders = []
    ahead = []
    for jobset in jobsets:
        workload = workload_of(jobset, workloads)
        other = gke_run(jobset, workload, place.key)
        if flavor in flavors_of(workload) and not other.done:
            holders.append(other)
        if other.state == "waiting" and other.created < run.created:
            ahead.append(other)
    return holders, ahead


def _demand_and_share(job: GkeJob | None) -> dict[str, Any]:
    """Return the job's demand and its team's share, keyed by field of ``Seen``."""
    if job is None or job.gke.pool:
        return {}
    nominal, reachable = reach(job)
    return {
        "flavor": job.flavor.name,
        "resource": job.flavor.accelerator.resource,
        "demand": job.demand,
        "unit": job.demand // job.units,
        "quota": nominal,
        "reachable": None if reachable == float("inf") else int(reachable),
    }
