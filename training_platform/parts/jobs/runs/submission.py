"""Submits jobs. A job that ``check`` refuses is not sent, and no job is submitted partially.

A submission also uploads source to its bucket, fills values that are known only after a deployment into the bodies, and
writes a record of the run.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, partial
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import Json
from training_platform.clients.failures import ApiError
from training_platform.clients.google_api import GoogleError
from training_platform.clients.google_services import CloudStorage, VertexJobs, filestore_address, lustre_address
from training_platform.clients.kubernetes_api import JOBSETS, LOCAL_QUEUES, WORKLOADS, ClusterApi, ClusterError
from training_platform.clients.registries import Registries, image_name
from training_platform.config.reading.declaration import Draft, finding, located
from training_platform.config.reading.finding import Finding, UserError
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.container import image, output_uri
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.job_checks import chosen_target, judge
from training_platform.parts.jobs.job_model import Target
from training_platform.parts.jobs.job_rules import job_rule
from training_platform.parts.jobs.naming import as_run, new_run, point_runs
from training_platform.parts.jobs.resolve import ResolvedJob, read_job
from training_platform.parts.jobs.runs.on_gke import USER_ANNOTATION, workload_of
from training_platform.parts.jobs.runs.places import RunPlace, place_of
from training_platform.parts.jobs.runs.watching import is_withheld, withheld
from training_platform.parts.jobs.source_archive import archive_uri, source_archive, source_files
from training_platform.parts.jobs.submission_rights import rights_findings
from training_platform.parts.jobs.vertex.custom_job import Collection, job_spec, vertex_body
from training_platform.parts.jobs.vertex.worker_pools import Deployed, filled
from training_platform.resources.environment_outputs import EnvironmentOutputs
from training_platform.resources.kueue import PODS_READY_MINUTES, QUEUE_LABEL

_DELETION_SECONDS = 300  # most pods of a deactivated run are gone


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A prepared run. ``bodies`` are sent to the platform's API; there is none if findings prevent the submission.

    A grid on GKE has a body for each of its points, every other run has one. ``collection`` is the collection in Vertex
    AI that the body is sent to.
    """

    job: ResolvedJob | None = None
    place: RunPlace | None = None
    bodies: tuple[dict[str, Any], ...] = ()
    collection: Collection = "customJobs"
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    program: str = ""

    @property
    def refused(self) -> bool:
        """Whether one of the findings is an error."""
        return any(finding.severity == "error" for finding in self.findings)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Differences between a run and its job file. With ``hold_minutes``, its pods wait for a shell."""

    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    nodes: int | None = None
    hold_minutes: int = 0

    def applied(self, value: Any, target: Target | None) -> Any:
        """Return a job file's values with the changes. A file that is not a mapping is returned, and rejected later."""
        if not isinstance(value, dict):
            return value
        changed = {**value}
        if self.args:
            changed["args"] = [*(value.get("args") or ()), *self.args]
        if self.env:
            changed["env"] = {**(value.get("env") or {}), **dict(self.env)}
        for section, count in (("gke", "nodes"), ("vertex", "replicas")):
            if self.nodes is None or target not in (None, section):
                continue
            if isinstance(value.get(section), dict):
                if value[section].get("slices"):
                    raise UserError("--nodes counts VMs with GPUs or CPUs, but the job has slices: edit gke.slices.")
                changed[section] = {**value[section], count: self.nodes}
            elif isinstance(value.get(section), list):
                rows = (row if isinstance(row, dict) else {} for row in value[section])
                changed[section] = [{**row, count: self.nodes} for row in rows]
        return changed

    def held(self, job: ResolvedJob) -> ResolvedJob:
        """Return the job with a command that only waits and ends by itself, instead of its program and sweep.

        Kueue's time limit also ends the job, whatever a user does in its shell. This limit includes the time that the
        VMs need to start.
        """
        if not self.hold_minutes:
            return job
        wait = ("sleep", str(self.hold_minutes * 60))
        update: dict[str, Any] = {"command": wait, "args": (), "retries": 0, "notify": None, "sweep": None}
        if job.spec.gke and job.flavor:
            hours = ceil((self.hold_minutes + PODS_READY_MINUTES[job.flavor.capacity]) / 60)
            limit = {"max_run_hours": min(hours, job.spec.gke.max_run_hours or hours)}
            update["gke"] = job.spec.gke.model_copy(update=limit)
        return replace(job, spec=job.spec.model_copy(update=update))


UNCHANGED = Changes()


def prepare(
    path: Path,
    root: Path,
    target: Target | None,
    today: date,
    run: str | None = None,
    *,
    changes: Changes = UNCHANGED,
    index: int = 0,
) -> Prepared:
    """Return a job file's next run, with the findings of ``job check``. Raises UnreadableError or UserError.

    ``run`` is its name; None generates one. ``index`` selects one of the places in the file.
    """
    job, findings = read_job(path, root, read_workspace(root), partial(changes.applied, target=target), index)
    if job is None:
        return Prepared(findings=tuple(findings))
    chosen = chosen_target(job, target)
    program = shlex.join([*job.spec.command, *job.spec.args])
    job = changes.held(job)
    if run and run != job.name and not run.startswith(f"{job.name}-"):
        why = "does not begin with the job's name and a dash; other commands need this prefix to find the run"
        raise UserError(f"--run {run!r} {why}. Nearest: {job.name}-{run}.")
    run = run or new_run(job.name)
    named = as_run(job, run)
    verdict = judge(named, chosen, today)
    verdict = replace(verdict, findings=(*verdict.findings, *rights_findings(named, chosen)))
    if verdict.failed:
        return Prepared(job=named, findings=verdict.findings)
    place = place_of(named, chosen)
    prepared = Prepared(job=named, place=place, findings=verdict.findings, notes=verdict.notes, program=program)
    if chosen == "gke":
        return replace(prepared, bodies=tuple(jobset(point) for point in point_runs(job, run)))
    collection, body = vertex_body(named)
    return replace(prepared, bodies=(body,), collection=collection)


def image_findings(job: ResolvedJob, registries: Registries) -> list[Finding]:
    """Find an image that is not in its registry. If the registry does not answer, return a warning.

    Pods whose image does not exist would keep machines until a time-out.
    """
    return located(_of_image(job, registries))


JOB_IMAGE_MISSING = job_rule(
    "job-image-missing",
    "When a job is submitted, find an image that its registry does not have.",
)


JOB_IMAGE_UNCHECKED = job_rule(
    "job-image-unchecked",
    "When a job is submitted, find an image whose registry cannot be reached.",
    severity="warning",
)


def _of_image(job: ResolvedJob, registries: Registries) -> Iterator[Draft]:
    name = image(job)
    path = ("source", "image") if job.spec.source else ("image",)
    try:
        if registries.has(name):
            return
    except ApiError as error:
        message = f"could not be looked up: {str(error).rstrip('.')}"
        yield finding(job, path, message, rule=JOB_IMAGE_UNCHECKED, allowed="an image that can be pulled")
        return
    nearest = None
    with suppress(ApiError):
        tag = image_name(name).reference
        nearest = find_nearest(tag, registries.tags(name))
    message = f"{name} is not in its registry"
    yield finding(job, path, message, rule=JOB_IMAGE_MISSING, allowed="an image that was pushed", nearest=nearest)


def submit_to_gke(prepared: Prepared, cluster: ClusterApi) -> list[str]:
    """Create the JobSets, and return the runs' names. The API server and webhooks first check them in a dry run.

    If one JobSet of a grid is refused nevertheless, those created before it are deleted.

    Raises ClusterError for a missing queue (Kueue would suspend the job without a message), for an existing run with
    the same name, and for anything that the server refuses.
    """
    metadata = prepared.bodies[0]["metadata"]
    namespace = metadata["namespace"]
    queue = metadata["labels"][QUEUE_LABEL]
    if cluster.get(LOCAL_QUEUES, namespace, queue) is None:
        raise ClusterError(
            f"Cluster {cluster.name} has no LocalQueue {queue} in namespace {namespace}: the job would wait there "
            f"forever. Deploy the team's stack first."
        )
    user = cluster.user()
    for body in prepared.bodies:
        if user:
            body["metadata"].setdefault("annotations", {})[USER_ANNOTATION] = user
        _create_run(body, cluster, dry_run=True)
    created_runs: list[str] = []
    for body in prepared.bodies:
        try:
            _create_run(body, cluster, dry_run=False)
        except ClusterError:
            for run in created_runs:
                cluster.delete(JOBSETS, namespace, run)
            raise
        created_runs.append(body["metadata"]["name"])
    return created_runs


def _create_run(body: Json, cluster: ClusterApi, *, dry_run: bool) -> None:
    """Create a JobSet, or let the server check it in a dry run. Raises ClusterError."""
    metadata = body["metadata"]
    try:
        cluster.create(JOBSETS, metadata["namespace"], body, dry_run=dry_run)
    except ClusterError as error:
        if error.status != 409:
            raise
        message = f"Cluster {cluster.name} has a run {metadata['name']} already; leave --run out for a new name."
        raise ClusterError(message, error.status) from error


def requeue(run: str, team: str, cluster: ClusterApi, pause: Callable[[float], None] = time.sleep) -> None:
    """Delete a run's JobSet and create it again, so that Kueue queues it with reset counters.

    The JobSet is replaced because members may not write Workloads. Raises ClusterError if Kueue has not deactivated the
    run, or if the run cannot be created again.
    """
    held = cluster.get(JOBSETS, team, run)
    workload = workload_of(held, cluster.objects(WORKLOADS, team)) if held else None
    if held is None or workload is None or (workload.get("spec") or {}).get("active") is not False:
        raise ClusterError(f"Kueue has not deactivated {run}; training-platform job why {run} shows its state.")
    about = held["metadata"]
    kept = {key: about[key] for key in ("name", "namespace", "labels", "annotations") if key in about}
    body = {key: held[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": kept}
    cluster.delete(JOBSETS, team, run)
    for _ in range(_DELETION_SECONDS):
        if cluster.get(JOBSETS, team, run) is None:
            break
        pause(1)
    try:
        cluster.create(JOBSETS, team, body, dry_run=False)
    except ClusterError as error:
        message = f"{run} was deleted, but could not be created again: {error} Submit its file again with --run {run}."
        raise ClusterError(message, error.status) from error


def submit_to_vertex(prepared: Prepared, vertex: VertexJobs) -> list[str]:
    """Create the job and return the run's name.

    Raises GoogleError. Raises UserError for an existing run with the same name, which Vertex AI would accept, for a job
    without a service account, and for machines of a persistent resource that does not exist.

    Without its own account, the job would run as the project's custom code agent, with permissions on the whole
    project.
    """
    (body,) = prepared.bodies
    if not job_spec(body).get("serviceAccount"):
        raise UserError("The job does not have its team's service account, so it is not submitted.")
    name = str(body["displayName"])
    try:
        if any(vertex.jobs(f'display_name="{name}"')):
            raise UserError(f"Vertex AI has a run {name} in {vertex.parent} already; leave --run out for a new name.")
        vertex.create(body, prepared.collection)
    except GoogleError as error:
        if prepared.place and is_withheld(error, prepared.place):
            raise withheld(error, prepared.place) from error
        resource = job_spec(body).get("persistentResourceId")
        if error.status != 404 or not resource:
            raise
        message = f"There is no persistent resource {resource} in {vertex.parent}: deploy the team's stack first."
        raise UserError(message) from error
    return [name]


Endpoint = Callable[[str], str | None]
Outputs = Callable[[], EnvironmentOutputs | None]
RECORD = "run.json"
MOST_LISTED = 30


class Submitted(NamedTuple):
    """The names of the submitted runs. ``unrecorded`` is the reason if their output has no ``run.json``."""

    names: list[str]
    unrecorded: GoogleError | None = None


def submit_run(
    prepared: Prepared, connected: Callable[[], ClusterApi | VertexJobs], endpoint: Endpoint, outputs: Outputs
) -> Submitted:
    """Upload a run's source, submit the run to the API that ``connected`` returns, and write its record.

    ``endpoint`` and ``outputs`` are described in ``delivered``. Raises the errors of ``delivered`` and of both
    submissions.
    """
    complete = delivered(prepared, endpoint, outputs)
    api = connected()
    names = submit_to_vertex(complete, api) if isinstance(api, VertexJobs) else submit_to_gke(complete, api)
    try:
        write_record(complete, names, endpoint("storage"), datetime.now(UTC))
    except GoogleError as error:  # the run exists nevertheless
        return Submitted(names, error)
    return Submitted(names)


def listing(job: ResolvedJob) -> str:
    """Return a line about the uploaded files of a folder, or "" for a job without a folder."""
    folder = job.spec.source.folder if job.spec.source else None
    if folder is None:
        return ""
    root = job.workspace.root / folder
    files = source_files(root, git=True)
    size = sum(file.stat().st_size for file in files)
    names = [file.relative_to(root).as_posix() for file in files]
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"{len(files)} files of {folder}, {size:,} bytes: {', '.join(names[:MOST_LISTED])}{more}"


def delivered(prepared: Prepared, endpoint: Endpoint, outputs: Outputs = lambda: None) -> Prepared:
    """Upload a run's source, and return the run with all placeholders filled in. Raises GoogleError.

    ``endpoint`` returns the address of a service in a local cloud, given its name in paths. ``outputs`` returns the
    exports of the environment. Addresses that are not exported are requested from their services, which needs a role.
    If the submission fails later, the uploaded source is kept, and the next submission uses it.
    """
    addresses = cache(lambda: _exported(outputs()))
    archive = source_archive(prepared.job) if prepared.job else None
    if prepared.job and archive and (uri := archive_uri(prepared.job)):
        CloudStorage(endpoint("storage")).put(uri, archive.content)

    def look_up(thing: Deployed) -> str:
        if thing.kind == "tensorboard":
            return VertexJobs(thing.project, thing.location, endpoint("aiplatform")).tensorboard(thing.name)
        if thing.name in addresses():
            return addresses()[thing.name]
        if thing.kind == "lustre":
            return lustre_address(thing.project, thing.location, thing.name, endpoint("lustre"))
        return filestore_address(thing.project, thing.location, thing.name, endpoint("file"))

    return replace(prepared, bodies=tuple(filled(body, look_up) for body in prepared.bodies))


def _exported(outputs: EnvironmentOutputs | None) -> dict[str, str]:
    """Return the addresses of an environment's instances, keyed by their names in Google Cloud."""
    if outputs is None:
        return {}
    return {exported.instance: exported.ip for exported in (*outputs.filestore.values(), *outputs.lustre.values())}


def write_record(prepared: Prepared, runs: Sequence[str], endpoint: str | None, now: datetime) -> str | None:
    """Write ``run.json`` into the folder of a run's output, and return its address; None for a job without output.

    The file remains when the cluster has deleted the run. Raises GoogleError, although the run is submitted.
    """
    job = prepared.job
    place = prepared.place
    if job is None or place is None or (folder := output_uri(job)) is None:
        return None
    record = {
        "runs": list(runs),
        "team": place.team.name,
        "environment": place.team.environment,
        "target": place.target,
        "place": place.key,
        "file": job.source.file,
        "submitted": now.isoformat(timespec="seconds"),
        "bodies": list(prepared.bodies),
    }
    uri = f"{folder}/{RECORD}"
    CloudStorage(endpoint).put(uri, json.dumps(record, indent=2).encode(), "application/json")
    return uri
