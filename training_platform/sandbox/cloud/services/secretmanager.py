"""Secret Manager: secrets and their policies; versions are not kept, so that no value is."""

from __future__ import annotations

from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.projects import number
from training_platform.sandbox.cloud.state.store import Record


def _fill(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    if not old:
        name = f"projects/{number(record.project)}/secrets/{record.id}"
        record.body |= {"name": name, "createTime": cloud.time()}


SERVICE = Service(
    name="secretmanager",
    kinds=(Kind(collection="secrets", schema="Secret", id_in="secretId", fill=_fill, etag="etag"),),
)
