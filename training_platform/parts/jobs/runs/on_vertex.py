"""Runs on Vertex AI, read from the bodies of its training jobs, and why they wait or failed. It sends no requests.

Source: Vertex AI v1, CustomJob and JobState of the discovery document that google-api-python-client ships, read
2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.attachments import of_vertex, vertex_gpu
from training_platform.catalog.types import Json, VertexSupport
from training_platform.parts.jobs.naming import job_of
from training_platform.parts.jobs.runs.state import ENDED, Run, State, quoted
from training_platform.parts.jobs.vertex.custom_job import job_spec

TEAM_LABEL = "team"
ENVIRONMENT_LABEL = "environment"
_STATES: Mapping[str, State] = {
    "QUEUED": "waiting",
    "PENDING": "waiting",
    "PAUSED": "waiting",
    "RUNNING": "running",
    "UPDATING": "running",
    "SUCCEEDED": "succeeded",
    "PARTIALLY_SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "EXPIRED": "failed",
    "CANCELLING": "cancelling",
    "CANCELLED": "cancelled",
}
_EXHAUSTED = 8  # google.rpc.Code
_UNAVAILABLE = 14


def working_job(pipeline: Json) -> str:
    """Return the full name of a training pipeline's job, or "" until it exists. If the body is a job's, return "".

    Source: google-cloud-aiplatform, training_jobs.py, and the discovery document, CustomJobMetadata and
    HyperparameterTuningJobMetadata, read 2026-11-22.
    """
    metadata = pipeline.get("trainingTaskMetadata") or {}
    return str(metadata.get("backingCustomJob") or metadata.get("backingHyperparameterTuningJob") or "")


def log_ids(bodies: Iterable[Json]) -> dict[str, str]:
    """Return the ids under which Cloud Logging may have lines of a run's jobs, each with its trial.

    ``gcloud ai hp-tuning-jobs stream-logs`` uses the tuning job's id. In addition, each trial names a custom job, whose
    id may be used for its lines.
    """
    ids: dict[str, str] = {}
    for body in bodies:
        rows = [{"customJob": body["name"], "id": ""}, *(body.get("trials") or ())]
        ids |= {row["customJob"].rpartition("/")[2]: str(row["id"]) for row in rows if "customJob" in row}
    return ids


def vertex_run(body: Json, working: Json | None = None) -> Run:
    """Return the run of a custom job, a tuning job or a training pipeline.

    ``working`` is the job that a pipeline created. The pipeline's own state is RUNNING even while this job waits.
    """
    _, _, _, region, _, _ = str(body["name"]).split("/")
    state = _STATES.get(_phase(body), "unknown")
    if working and state in ("waiting", "running"):
        job_state = _STATES.get(_phase(working), "unknown")
        state = "running" if job_state in ENDED else job_state
    error = body.get("error") or (working or {}).get("error") or {}
    name = str(body.get("displayName") or "")
    return Run(
        name=name,
        job=job_of(name),
        team=str((body.get("labels") or {}).get(TEAM_LABEL) or ""),
        target="vertex",
        place=region,
        identity=str(body["name"]),
        state=state,
        accelerators=sum(
            int(pool.get("replicaCount") or 1) * int((pool.get("machineSpec") or {}).get("acceleratorCount") or 0)
            for pool in job_spec(body).get("workerPoolSpecs") or ()
        ),
        created=str(body.get("createTime") or ""),
        reason=str(error.get("message") or ""),
        started=str((working or body).get("startTime") or ""),
        ended=str(body.get("endTime") or ""),
    )


def why_on_vertex(run: Run, body: Json, working: Json | None = None) -> Iterator[str]:
    """Yield sentences about a run, the cause first. If a pipeline's job has not ended, they are about that job."""
    if working and _phase(working) != "SUCCEEDED":
        body = working
    elif working and run.state == "running":
        yield "The training has ended, but the pipeline still runs, for example to upload the model."
    scheduling = job_spec(dict(body)).get("scheduling") or {}
    if run.reason:
        yield f"Vertex AI reports: {quoted(run.reason)}."
    if run.state == "waiting":
        yield from _waiting(run, body, scheduling)
    elif run.state == "failed":
        yield from _failed(run, body, scheduling)
    elif run.state == "succeeded":
        yield f"{run.name} has succeeded."
    elif run.state == "cancelled":
        yield f"{run.name} was cancelled{f' at {run.ended}' if run.ended else ''}; its output is kept."
    else:
        yield f"{run.name} is {run.state}{f' since {run.started}' if run.started else ''}."


def _waiting(run: Run, body: Json, scheduling: Json) -> Iterator[str]:
    machine = _machine(body)
    resource = job_spec(dict(body)).get("persistentResourceId")
    if run.started:
        yield f"{run.name} started at {run.started}, lost its VMs, and waits for new ones, on which it starts again."
    else:
        yield f"{run.name} is {_phase(body)} in {run.place} since {run.created}: Vertex AI has not started it."
    if _phase(body) == "QUEUED":
        yield (
            "Vertex AI queues a job while the project's remaining custom training quota is too small. With flex-start, "
            "it also queues the job while no VMs are available."
        )
    if resource:
        yield f"It starts when persistent resource {resource} has enough free machines of the requested type."
    elif scheduling.get("strategy") == "FLEX_START":
        longest = scheduling.get("maxWaitDuration")
        ends = "for as long as it takes" if longest in (None, "0s") else f"for {longest} at most and then fails"
        yield f"With flex-start it waits for {machine} {ends}; it charges the preemptible quota."
    elif scheduling.get("strategy") == "SPOT":
        yield f"With spot it starts when {machine} is idle in {run.place}; it charges the preemptible quota."
    else:
        yield f"On demand it starts within minutes if {run.place} has {machine}; otherwise it fails after three tries."


def _failed(run: Run, body: Json, scheduling: Json) -> Iterator[str]:
    """Yield the cause of a job's failure, and how to avoid it."""
    machine = _machine(body)
    code = (body.get("error") or {}).get("code")
    strategy = scheduling.get("strategy")
    spec = _machine_spec(body)
    row = of_vertex(spec.get("machineType"), spec.get("acceleratorType"), spec.get("acceleratorCount"))
    support = row.accelerator.vertex if row and row.accelerator else None
    if _phase(body) == "EXPIRED":
        yield f"{run.name} was ended because it ran for longer than {scheduling.get('timeout', 'its timeout')}."
    elif code == _EXHAUSTED and strategy == "FLEX_START":
        yield (
            f"{run.name} waited {scheduling.get('maxWaitDuration', 'its maximum wait')} for {machine}, and {run.place} "
            f"did not have it. Set a longer max_wait{_elsewhere(support, run.place)}."
        )
    elif code == _EXHAUSTED:
        waits = "Vertex AI does not offer flex-start for this machine"
        if support and support.flex_start:
            waits = "A job with capacity: flex-start waits for the machine"
        yield f"{run.place} has no {machine} left. {waits}{_elsewhere(support, run.place)}."
    elif code == _UNAVAILABLE and strategy == "SPOT":
        yield (
            f"{run.name} lost its spot VMs and may not restart. With retries above 0 Vertex AI restarts it; Google "
            "does not preempt flex-start and on-demand VMs."
        )
    else:
        yield f"{run.name} has failed. To see its last lines: training-platform job logs {run.name}."


def _elsewhere(support: VertexSupport | None, region: str) -> str:
    """Return the end of a sentence with the other regions in which Vertex AI offers an accelerator."""
    if support is None:
        return ""
    other_regions = [other for other in support.regions if other != region]
    return f"; Vertex AI also offers the machine in {', '.join(other_regions)}" if other_regions else ""


def _machine(body: Json) -> str:
    """Return the first machine that a job requests, with its attached GPUs."""
    spec = _machine_spec(body)
    name = spec.get("machineType", "its machines")
    gpu = vertex_gpu(spec.get("acceleratorType"))
    built_in = MACHINE_TYPES[name].accelerator if name in MACHINE_TYPES else gpu
    return f"{name} with {spec.get('acceleratorCount')} {gpu.name}" if gpu and gpu is not built_in else str(name)


def _machine_spec(body: Json) -> Json:
    pools = job_spec(dict(body)).get("workerPoolSpecs") or [{}]
    return pools[0].get("machineSpec") or {}


def _phase(body: Json) -> str:
    """Return a state without its prefix, which is different for jobs and pipelines."""
    return str(body.get("state") or "unknown").partition("_STATE_")[2] or "unknown"
