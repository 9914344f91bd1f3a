"""Cloud Monitoring (alert policies, notification channels, dashboards), and Cloud Logging.

Vertex AI's training jobs have log entries for their creation, start and end. No job runs a program here, so these are
only the entries that Vertex AI itself writes, from the task ``service`` (inferred). All other entries are written by
``entries.write``. A training pipeline has no entries of its own; the entries of its job have the job's id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from local_google_cloud.requests.errors import Refusal, failed_precondition
from local_google_cloud.resources.actions import create
from local_google_cloud.resources.resource_kinds import Call, ResourceKind, Service
from local_google_cloud.services.vertex_jobs import JOB_KINDS, PIPELINES
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json

# Cloud Monitoring

_KEPT_MUTATIONS: Final = 10  # how many Google keeps is unverified
_LAYOUTS: Final = frozenset({"columnLayout", "gridLayout", "mosaicLayout", "rowLayout"})
_MOST_COLUMNS: Final = 48
_LABELS: Final = {"email": "email_address", "slack": "channel_name", "pubsub": "topic", "webhook_tokenauth": "url"}
"""The required label of each type of notification channel."""


def _fill_channel(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    label = _LABELS.get(body.get("type", ""))
    if not body.get("type"):
        raise Refusal(400, "Field notification_channel.type is required.")
    if label and label not in body.get("labels", {}):
        raise Refusal(400, f"Field \"notification_channel.labels\" lacks '{label}'")
    changed = {"mutateTime": cloud.time()}
    body["mutationRecords"] = [changed, *old.get("mutationRecords", [])[: _KEPT_MUTATIONS - 1]]
    body["creationRecord"] = old.get("creationRecord", dict(changed))


def _check_channel_unused(cloud: Cloud, call: Call, record: Record) -> None:
    name = record.body["name"]
    users = (user for user in cloud.store.all(record.project) if name in user.body.get("notificationChannels", ()))
    if not call.parameters.get("force") and any(users):
        raise failed_precondition(f"Cannot delete channel {name}: policies use it.")


def _fill_alert_policy(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if not body.get("conditions"):
        raise Refusal(400, "Field alert_policy.conditions had an invalid value: there must be at least one condition.")
    for channel in body.get("notificationChannels", ()):
        cloud.existing(f"monitoring/{channel}")
    for condition in body["conditions"]:
        if not condition.get("name", "").startswith(body["name"]):
            condition["name"] = f"{body['name']}/conditions/{cloud.number()}"
    changed = {"mutateTime": cloud.time(), "mutatedBy": "sandbox@example.com"}
    body["mutationRecord"] = changed
    body["creationRecord"] = old.get("creationRecord", changed)


def _check_dashboard(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    """Refuse a dashboard with several layouts, or with tiles outside its grid. Source: Dashboard, read 2026-11-23."""
    if not record.body.get("displayName"):
        raise Refusal(400, "Field dashboard.displayName is required.")
    if len(layouts := _LAYOUTS & record.body.keys()) > 1:
        raise Refusal(400, f"A dashboard has one layout, not {', '.join(sorted(layouts))}.")
    if (grid := record.body.get("mosaicLayout")) is None:
        return
    columns = grid.get("columns", 0)
    if not 1 <= columns <= _MOST_COLUMNS:
        raise Refusal(400, f"Field mosaicLayout.columns is {columns}: it must be from 1 to {_MOST_COLUMNS}.")
    for number, tile in enumerate(grid.get("tiles", ())):
        column = tile.get("xPos", 0)
        if column < 0 or column + tile.get("width", 0) > columns:
            raise Refusal(400, f"Field mosaicLayout.tiles[{number}] is not within {columns} columns.")


MONITORING: Final = Service(
    name="monitoring",
    kinds=(
        ResourceKind(
            collection="notificationChannels",
            schema="NotificationChannel",
            id_in="",
            fill=_fill_channel,
            check_delete=_check_channel_unused,
        ),
        ResourceKind(collection="alertPolicies", schema="AlertPolicy", id_in="", fill=_fill_alert_policy),
        ResourceKind(collection="dashboards", schema="Dashboard", id_in="", fill=_check_dashboard, etag="etag"),
    ),
)

# Cloud Logging

_FOLDER: Final = "logging/entries"
_SINKS: Final = "logging/projects"
_DEFAULT: Final = "/buckets/_Default"
_VALUES: Final = r'"[^"]*"|\("[^"]*"(?: OR "[^"]*")*\)'
_TERM: Final = re.compile(rf"(?:(?P<path>[\w.]+)\s*(?P<operator>=~|>=|<=|=|:)|log_id(?=\())\s*(?P<values>{_VALUES})")
_VALUE: Final = re.compile(r'"([^"]*)"')
_OPERATORS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": lambda value, operand: value == operand,
    ":": lambda value, operand: operand in value,
    ">=": lambda value, operand: value >= operand,
    "<=": lambda value, operand: value <= operand,
    "=~": lambda value, operand: re.search(operand, value) is not None,
}
_LINES: Final = (
    ("createTime", "Waiting for job to be provisioned."),
    ("startTime", "Job is running."),
    ("endTime", "Job has ended."),
)
_PAGE: Final = 50


def _write_entries(cloud: Cloud, call: Call) -> Json:
    for written in call.body.get("entries", ()):
        entry = {
            "logName": call.body.get("logName", ""),
            "resource": call.body.get("resource", {"type": "global"}),
            "timestamp": cloud.time(),
            "insertId": cloud.number(),
            **written,
        }
        if not entry["logName"].startswith("projects/"):
            raise Refusal(400, "An entry needs a log_name, projects/[PROJECT_ID]/logs/[LOG_ID].")
        project = cloud.projects.resolve(entry["logName"].split("/")[1])
        cloud.store.put(Record(name=f"{_FOLDER}/{entry['insertId']}", project=project, body=entry))
    return {}


def _list_entries(cloud: Cloud, call: Call) -> Json:
    terms = list(_read_filter(call.body.get("filter", "")))
    sources = [_entries_of(cloud, name) for name in call.body.get("resourceNames", ())]
    entries = [entry for source in sources for entry in source if all(matches(entry) for matches in terms)]
    entries.sort(key=lambda entry: str(entry["timestamp"]), reverse=call.body.get("orderBy") == "timestamp desc")
    start = int(call.body.get("pageToken") or 0)
    end = start + int(call.body.get("pageSize") or _PAGE)
    page: Json = {"entries": entries[start:end]}
    if end < len(entries):
        page["nextPageToken"] = str(end)
    return page


def _entries_of(cloud: Cloud, name: str) -> Iterator[Json]:
    """Yield the log entries of a project or a log view. Raises Refusal.

    A view contains the entries that sinks route to its bucket. The bucket ``_Default`` contains all entries, and a view
    of it contains those that match its filter.
    """
    project = cloud.projects.resolve(name.split("/")[1])
    if "/views/" not in name:
        yield from _entries(cloud, project)
        return
    view = cloud.existing(f"logging/{name}")
    bucket = name.partition("/views/")[0]
    if bucket.endswith(_DEFAULT):
        terms = list(_read_filter(view.body.get("filter", "")))
        yield from (entry for entry in _entries(cloud, project) if all(matches(entry) for matches in terms))
        return
    destination = f"logging.googleapis.com/{bucket}"
    sinks = (record.body for record in cloud.store.all(project) if record.name.startswith(f"{_SINKS}/{project}/sinks/"))
    filters = [list(_read_filter(sink.get("filter", ""))) for sink in sinks if sink["destination"] == destination]
    for entry in _entries(cloud, project):
        if any(all(matches(entry) for matches in terms) for terms in filters):
            yield entry


def _entries(cloud: Cloud, project: str) -> Iterator[Json]:
    for record in cloud.store.all(project):
        if record.name.startswith(f"{_FOLDER}/"):
            yield record.body
        elif record.name.split("/")[-2] in JOB_KINDS and PIPELINES not in record.name:
            yield from _entries_of_job(record)


def _entries_of_job(record: Record) -> Iterator[Json]:
    log = f"projects/{record.project}/logs/ml.googleapis.com%2F{record.id}"
    labels = {"job_id": record.id, "task_name": "service", "project_id": record.project}
    for field, text in _LINES:
        if field in record.body:
            yield {
                "logName": log,
                "resource": {"type": "ml_job", "labels": labels},
                "timestamp": record.body[field],
                "insertId": f"{record.id}-{field}",
                "severity": "INFO",
                "jsonPayload": {"message": text},
            }


def _read_filter(text: str) -> Iterator[Callable[[Json], bool]]:
    """Yield the comparisons of a filter, which are joined by AND. Values in brackets, joined by OR, are supported.

    Raises Refusal for any other syntax of Logging's query language.
    """
    if not text:
        return
    for part in text.split(" AND "):
        match = _TERM.fullmatch(part.strip())
        if match is None:
            raise Refusal(400, f"Unparseable filter: {part}")
        values = _VALUE.findall(match["values"])
        if match["path"]:
            yield _comparison(match["path"], _OPERATORS[match["operator"]], values)
        else:
            yield _comparison("logName", lambda value, operand: value.endswith(f"/logs/{operand}"), values)


def _comparison(path: str, matches: Callable[[str, str], bool], values: list[str]) -> Callable[[Json], bool]:
    """Return a function that compares a field with values. It returns True if any of them matches."""

    def compare(entry: Any) -> bool:
        for part in path.split("."):
            entry = entry.get(part) if isinstance(entry, dict) else None
        return entry is not None and any(matches(str(entry), value) for value in values)

    return compare


def _name_by_path(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if not old:
        record.body |= {"name": record.name.removeprefix("logging/"), "createTime": cloud.time()}


def _fill_bucket(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    _name_by_path(cloud, call, record, old)
    record.body.setdefault("retentionDays", 30)
    record.body["lifecycleState"] = "ACTIVE"


def _create_bucket(cloud: Cloud, call: Call) -> Json:
    """Create a log bucket with an operation, the method that the provider uses. The operation ends immediately."""
    bucket = create(cloud, _BUCKETS, call)
    location = call.path.partition("/buckets")[0]
    return {"name": f"{location}/operations/{cloud.number()}", "done": True, "response": bucket}


def _create_view(cloud: Cloud, call: Call) -> Json:
    """Create a log view. A project always has the bucket ``_Default``."""
    bucket = f"logging/{call.path.partition('/views')[0]}"
    if bucket.endswith(_DEFAULT) and cloud.store.get(bucket) is None:
        body = {"name": bucket.removeprefix("logging/"), "retentionDays": 30, "lifecycleState": "ACTIVE"}
        cloud.store.put(Record(name=bucket, project=call.project, body=body))
    return create(cloud, _VIEWS, call)


def _fill_sink(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if not old:
        record.body |= {"createTime": cloud.time(), "writerIdentity": ""}  # none for a bucket of the same project


_BUCKETS: Final = ResourceKind(collection="buckets", schema="LogBucket", id_in="bucketId", fill=_fill_bucket)
_VIEWS: Final = ResourceKind(collection="views", schema="LogView", id_in="viewId", parent=True, fill=_name_by_path)
LOGGING: Final = Service(
    name="logging",
    needs_enabling=False,  # every project has it enabled by default
    kinds=(
        _BUCKETS,
        _VIEWS,
        ResourceKind(collection="sinks", schema="LogSink", fill=_fill_sink),
    ),
    handlers={
        "entries.write": _write_entries,
        "entries.list": _list_entries,
        "buckets.createAsync": _create_bucket,
        "views.create": _create_view,
    },
)
