"""Artifact Registry: repositories; their contents are not kept."""

from __future__ import annotations

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record


def _fill(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    body, now = record.body, cloud.time()
    if not old:
        if body.get("format", "FORMAT_UNSPECIFIED") == "FORMAT_UNSPECIFIED":
            raise ApiError(400, "a repository format must be specified")
        host = f"{call.location}-{body['format'].lower()}.pkg.dev"
        body["registryUri"] = f"{host}/{record.project}/{record.id}"
        body["satisfiesPzs"] = body["satisfiesPzi"] = False
        body["vulnerabilityScanningConfig"] = {
            **body.get("vulnerabilityScanningConfig", {}),
            "enablementState": "SCANNING_DISABLED",
            "enablementStateReason": "API containerscanning.googleapis.com is not enabled.",
        }
    elif body.get("format") != old.get("format"):
        raise ApiError(400, "The format of a repository cannot be changed")
    body["updateTime"] = now


def _metadata(_cloud: Cloud, call: Call, _kind: Kind, _record: Record) -> Json:
    return {"@type": f"type.googleapis.com/google.devtools.artifactregistry.{call.api.version}.OperationMetadata"}


SERVICE = Service(
    name="artifactregistry",
    package="google.devtools.artifactregistry",
    metadata=_metadata,
    kinds=(
        Kind(collection="repositories", schema="Repository", style="longrunning", id_in="repositoryId", fill=_fill),
    ),
)
