"""``submit``: the command ``job submit`` as a Python function, for notebooks and other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from training_platform.clients.google_api import local_endpoint
from training_platform.clients.google_services import VertexJobs
from training_platform.clients.kubernetes_api import ClusterApi, connect
from training_platform.clients.stack_outputs import environment_outputs
from training_platform.config.reading.clock import today
from training_platform.config.reading.finding import UserError
from training_platform.parts.jobs.job_model import Target
from training_platform.parts.jobs.runs.submission import Changes, prepare, submit_run
from training_platform.resources.environment_outputs import EnvironmentOutputs


def submit(
    file: Path | str,
    *,
    target: Target | None = None,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    nodes: int | None = None,
    kubeconfig: str | None = None,
    local_cloud: str | None = None,
) -> list[str]:
    """Submit a job file of a repository, ``jobs/<team>/<job>.yaml``, and return the names of its runs.

    There is one run, or on GKE one for each point of a sweep. ``args``, ``env`` and ``nodes`` change only this run.
    Unlike the command, this function does not check that the image is in its registry. Raises UserError with every
    error of ``job check``. Raises subclasses of UserError for files that cannot be read, and for requests that Google
    Cloud or the cluster refuses.
    """
    path = Path(file).resolve()
    root = path.parents[2]
    changes = Changes(args=tuple(args), env=tuple((env or {}).items()), nodes=nodes)
    prepared = prepare(path, root, target, today(root, None), changes=changes)
    if prepared.refused or prepared.job is None or prepared.place is None:
        errors = [finding for finding in prepared.findings if finding.severity == "error"]
        raise UserError("\n".join(map(str, errors)))
    place = prepared.place
    environment = prepared.job.spec.environment

    def outputs() -> EnvironmentOutputs | None:
        return None if local_cloud else environment_outputs(root, environment)

    endpoint = partial(local_endpoint, local_cloud)

    def connected() -> ClusterApi | VertexJobs:
        if place.target == "vertex":
            return VertexJobs(place.scope.project, place.key, endpoint("aiplatform"))
        return connect(place.key, contexts=place.contexts, kubeconfig=kubeconfig, log_in=place.log_in)

    return submit_run(prepared, connected, endpoint, outputs).names
