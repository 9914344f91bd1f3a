"""Submitting a job: what ``check`` refuses is never sent, and nothing is left half submitted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from training_platform.clients.kubernetes_api import JOBSETS, LOCAL_QUEUES, ClusterApi, ClusterError
from training_platform.clients.vertex_ai import VertexJobs
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace
from training_platform.jobs.gke.jobset import QUEUE_LABEL, jobset
from training_platform.jobs.render import RenderError, chosen_target, judge
from training_platform.jobs.resolve import ResolvedJob, read_job
from training_platform.jobs.runs.naming import as_run, new_run
from training_platform.jobs.runs.places import Place, place_of
from training_platform.jobs.spec.job import Target
from training_platform.jobs.vertex.custom_job import custom_job


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run that is ready to be submitted; ``body`` is empty where findings stand in its way."""

    job: ResolvedJob | None = None
    place: Place | None = None
    body: dict[str, Any]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether a finding is an error."""
        return any(finding.severity == "error" for finding in self.findings)


def prepare(path: Path, root: Path, target: Target | None, today: date, run: str | None = None) -> Prepared:
    """Return a job file's next run, judged as ``job check`` does. Raises UnreadableError and RenderError.

    ``run`` is its name; None makes one up.
    """
    job, findings = read_job(path, root, read_workspace(root))
    if job is None:
        return Prepared(body={}, findings=tuple(findings))
    chosen = chosen_target(job, target)
    named = as_run(job, run or new_run(job.name))
    verdict = judge(named, chosen, today)
    if verdict.failed:
        return Prepared(job=named, body={}, findings=verdict.findings)
    body = jobset(named) if chosen == "gke" else custom_job(named)
    return Prepared(job=named, place=place_of(named, chosen), body=body, findings=verdict.findings, notes=verdict.notes)


def submit_to_gke(prepared: Prepared, cluster: ClusterApi) -> str:
    """Create the JobSet after the API server and all webhooks have taken it in a dry run; return the run's name.

    Raises ClusterError: for a queue that is not there (Kueue would leave the job suspended without a word), a
    namesake, and whatever the server refuses.
    """
    about = prepared.body["metadata"]
    namespace, queue = about["namespace"], about["labels"][QUEUE_LABEL]
    if cluster.get(LOCAL_QUEUES, namespace, queue) is None:
        raise ClusterError(
            f"Cluster {cluster.name} has no LocalQueue {queue} in namespace {namespace}: the job would wait there for "
            f"ever. Deploy the team's stack first."
        )
    for dry_run in (True, False):
        try:
            cluster.create(JOBSETS, namespace, prepared.body, dry_run=dry_run)
        except ClusterError as error:
            if error.status == 409:
                raise ClusterError(
                    f"Cluster {cluster.name} has a run {about['name']} already; leave --run out for a new name.", 409
                ) from error
            raise
    return str(about["name"])


def submit_to_vertex(prepared: Prepared, vertex: VertexJobs) -> str:
    """Create the custom job and return the run's name. Raises VertexError, also where the job has no account.

    Without an account of its own it would run as the project's custom code agent, with rights on the whole project.
    """
    if not prepared.body["jobSpec"].get("serviceAccount"):
        raise RenderError("The job has no service account of its team, and is never submitted without.")
    vertex.create(prepared.body)
    return str(prepared.body["displayName"])
