"""What goes before a submission: the source to its bucket, and what only a deployment knows into the bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from training_platform.clients.google_services import CloudStorage, filestore_address, lustre_address
from training_platform.clients.vertex_ai import VertexJobs
from training_platform.jobs.runs.submission import Prepared
from training_platform.jobs.sdist import package_uri, sdist
from training_platform.jobs.vertex.deployed import Deployed, filled

Endpoint = Callable[[str], str | None]


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
