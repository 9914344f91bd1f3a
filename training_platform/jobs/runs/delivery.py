"""What goes around a submission: source to its bucket, what only a deployment knows into the bodies, and a record."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from training_platform.clients.google_services import CloudStorage, filestore_address, lustre_address
from training_platform.clients.vertex_ai import VertexJobs
from training_platform.jobs.outputs import output_uri
from training_platform.jobs.runs.submission import Prepared
from training_platform.jobs.sdist import package_uri, sdist
from training_platform.jobs.vertex.deployed import Deployed, filled

Endpoint = Callable[[str], str | None]
RECORD = "run.json"


def delivered(prepared: Prepared, endpoint: Endpoint) -> Prepared:
    """Upload a run's source, and return the run with everything filled in. Raises GoogleError.

    ``endpoint`` tells where a local cloud has a service, by its name in paths. What was uploaded stays where the
    submission then fails: the next one finds it there.
    """
    if (job := prepared.job) and (source := job.spec.source) and (uri := package_uri(job)):
        CloudStorage(endpoint("storage")).put(uri, sdist(source, job.workspace.root))
    bodies = tuple(filled(body, lambda thing: _look_up(thing, endpoint)) for body in prepared.bodies)
    return replace(prepared, bodies=bodies)


def _look_up(thing: Deployed, endpoint: Endpoint) -> str:
    if thing.kind == "tensorboard":
        return VertexJobs(thing.project, thing.location, endpoint("aiplatform")).tensorboard(thing.name)
    if thing.kind == "lustre":
        return lustre_address(thing.project, thing.location, thing.name, endpoint("lustre"))
    return filestore_address(thing.project, thing.location, thing.name, endpoint("file"))


def write_record(prepared: Prepared, runs: Sequence[str], endpoint: str | None, now: datetime) -> str | None:
    """Write ``run.json`` into the folder of a run's output; return where, None for a job without output.

    It outlives what a cluster keeps of a run. Raises GoogleError; the run is submitted all the same.
    """
    job, place = prepared.job, prepared.place
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
