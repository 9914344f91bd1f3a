"""What is written beside a run's results: the file that was submitted, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from training_platform.clients.google_services import CloudStorage
from training_platform.jobs.outputs import output_uri
from training_platform.jobs.runs.submission import Prepared

NAME = "run.json"


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
    uri = f"{folder}/{NAME}"
    CloudStorage(endpoint).put(uri, json.dumps(record, indent=2).encode(), "application/json")
    return uri
