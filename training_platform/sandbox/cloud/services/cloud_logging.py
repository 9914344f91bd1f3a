"""Cloud Logging: entries are written and listed; training jobs of Vertex AI write when they begin, run and end.

No program runs here, so what a job writes are Vertex AI's own lines, those of task ``service`` (inferred), and whatever
somebody writes by ``entries.write``. A training pipeline has no lines: those of its job are under the job's id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.model import Call, Json, Service
from training_platform.sandbox.cloud.services.vertex.job_states import JOB_KINDS
from training_platform.sandbox.cloud.services.vertex.pipelines import PIPELINES
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

_FOLDER: Final = "logging/entries"
_VALUES: Final = r'"[^"]*"|\("[^"]*"(?: OR "[^"]*")*\)'
_TERM: Final = re.compile(rf"(?:(?P<path>[\w.]+)\s*(?P<operator>=~|>=|=|:)|log_id(?=\())\s*(?P<values>{_VALUES})")
_VALUE: Final = re.compile(r'"([^"]*)"')
_OPERATORS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": lambda value, wanted: value == wanted,
    ":": lambda value, wanted: wanted in value,
    ">=": lambda value, wanted: value >= wanted,
    "=~": lambda value, wanted: re.search(wanted, value) is not None,
}
_LINES: Final = (
    ("createTime", "Waiting for job to be provisioned."),
    ("startTime", "Job is running."),
    ("endTime", "Job has ended."),
)
_PAGE: Final = 50


def _write(cloud: Cloud, call: Call) -> Json:
    for given in call.body.get("entries", ()):
        entry = {
            "logName": call.body.get("logName", ""), "resource": call.body.get("resource", {"type": "global"}),
            "timestamp": cloud.time(), "insertId": cloud.number(), **given,
        }  # fmt: skip
        if not entry["logName"].startswith("projects/"):
            raise ApiError(400, "An entry needs a log_name, projects/[PROJECT_ID]/logs/[LOG_ID].")
        project = cloud.projects.resolve(entry["logName"].split("/")[1])
        cloud.store.put(Record(name=f"{_FOLDER}/{entry['insertId']}", project=project, body=entry))
    return {}


def _list(cloud: Cloud, call: Call) -> Json:
    projects = {cloud.projects.resolve(name.partition("/")[2]) for name in call.body.get("resourceNames", ())}
    terms = list(_terms(call.body.get("filter", "")))
    found = [entry for entry in _entries(cloud, projects) if all(fits(entry) for fits in terms)]
    found.sort(key=lambda entry: str(entry["timestamp"]), reverse=call.body.get("orderBy") == "timestamp desc")
    start, size = int(call.body.get("pageToken") or 0), int(call.body.get("pageSize") or _PAGE)
    more = {"nextPageToken": str(start + size)} if start + size < len(found) else {}
    return {"entries": found[start : start + size], **more}


def _entries(cloud: Cloud, projects: set[str]) -> Iterator[Json]:
    for record in cloud.store.all():
        if record.project not in projects:
            continue
        if record.name.startswith(f"{_FOLDER}/"):
            yield record.body
        elif record.name.split("/")[-2] in JOB_KINDS and PIPELINES not in record.name:
            yield from _of_job(record)


def _of_job(record: Record) -> Iterator[Json]:
    log = f"projects/{record.project}/logs/ml.googleapis.com%2F{record.id}"
    labels = {"job_id": record.id, "task_name": "service", "project_id": record.project}
    for field, text in _LINES:
        if field in record.body:
            yield {
                "logName": log, "resource": {"type": "ml_job", "labels": labels}, "timestamp": record.body[field],
                "insertId": f"{record.id}-{field}", "severity": "INFO", "jsonPayload": {"message": text},
            }  # fmt: skip


def _terms(text: str) -> Iterator[Callable[[Json], bool]]:
    """Yield the comparisons of a filter, which AND joins, each with a value or several in brackets, which OR joins.

    Raises ApiError for anything else of Logging's language.
    """
    for part in text.split(" AND ") if text else ():
        found = _TERM.fullmatch(part.strip())
        if found is None:
            raise ApiError(400, f"Unparseable filter: {part}")
        values = _VALUE.findall(found["values"])
        if found["path"]:
            yield _comparison(found["path"], _OPERATORS[found["operator"]], values)
        else:
            yield _comparison("logName", lambda value, wanted: value.endswith(f"/logs/{wanted}"), values)


def _comparison(path: str, fits: Callable[[str, str], bool], values: list[str]) -> Callable[[Json], bool]:
    """Return what compares a field with values, of which any may fit."""

    def compare(entry: Any) -> bool:
        for part in path.split("."):
            entry = entry.get(part) if isinstance(entry, dict) else None
        return entry is not None and any(fits(str(entry), wanted) for wanted in values)

    return compare


SERVICE = Service(name="logging", handlers={"entries.write": _write, "entries.list": _list})
