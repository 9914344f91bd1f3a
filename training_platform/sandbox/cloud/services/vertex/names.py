"""What every resource of Vertex AI is called, and when it was written."""

from __future__ import annotations

from training_platform.sandbox.cloud.resources.model import Json
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.projects import number
from training_platform.sandbox.cloud.state.store import Record


def name_and_date(cloud: Cloud, record: Record, old: Json) -> None:
    """Name a resource by its project's number, as the API answers it, and date it."""
    body, now = record.body, cloud.time()
    if not old:
        path = record.name.partition("/")[2]
        body["name"] = path.replace(f"projects/{record.project}/", f"projects/{number(record.project)}/", 1)
        body["createTime"] = now
    body["updateTime"] = now
