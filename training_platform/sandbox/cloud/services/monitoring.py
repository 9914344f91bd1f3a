"""Cloud Monitoring: alert policies, notification channels and dashboards, which the server names."""

from __future__ import annotations

from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

_KEPT_MUTATIONS: Final = 10  # how many Google keeps is unverified
_LAYOUTS: Final = frozenset({"columnLayout", "gridLayout", "mosaicLayout", "rowLayout"})
_NEEDED: Final = {"email": "email_address", "slack": "channel_name", "pubsub": "topic", "webhook_tokenauth": "url"}


def _dated(cloud: Cloud, record: Record, old: Json, schema: str) -> None:
    who = {"mutateTime": cloud.time(), "mutatedBy": "sandbox@example.com"}
    if schema == "channel":
        before = old.get("mutationRecords", [])[: _KEPT_MUTATIONS - 1]
        record.body["mutationRecords"] = [{"mutateTime": who["mutateTime"]}, *before]
        record.body["creationRecord"] = old.get("creationRecord", {"mutateTime": who["mutateTime"]})
    else:
        record.body["mutationRecord"] = who
        record.body["creationRecord"] = old.get("creationRecord", who)


def _channel(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    kind = body.get("type", "")
    needed = _NEEDED.get(kind)
    if not kind or (needed and needed not in body.get("labels", {})):
        raise ApiError(
            400, f"Field \"notification_channel.labels\" lacks '{needed}'" if kind else "A channel has a type"
        )
    _dated(cloud, record, old, "channel")


def _policy(cloud: Cloud, _call: Call, record: Record, old: Json) -> None:
    body = record.body
    if not body.get("conditions"):
        raise ApiError(400, "Field alert_policy.conditions had an invalid value: there must be at least one condition.")
    for channel in body.get("notificationChannels", ()):
        cloud.existing(f"monitoring/{channel}")
    for condition in body["conditions"]:
        if not condition.get("name", "").startswith(body["name"]):
            condition["name"] = f"{body['name']}/conditions/{cloud.number()}"
    _dated(cloud, record, old, "policy")


def _dashboard(_cloud: Cloud, _call: Call, record: Record, _old: Json) -> None:
    """Refuse a dashboard with several layouts. Source: the document's Dashboard, read 2026-11-22."""
    body = record.body
    if not body.get("displayName"):
        raise ApiError(400, "Field dashboard.displayName is required.")
    if len(layouts := _LAYOUTS & body.keys()) > 1:
        raise ApiError(400, f"A dashboard has one layout, not {', '.join(sorted(layouts))}.")


def _unused(cloud: Cloud, call: Call, record: Record) -> None:
    if call.parameters.get("force"):
        return
    users = [
        each
        for each in cloud.store.all(record.project)
        if record.body["name"] in each.body.get("notificationChannels", ())
    ]
    if users:
        raise ApiError(
            400, f"Cannot delete channel {record.body['name']}: policies use it.", status="FAILED_PRECONDITION"
        )


SERVICE = Service(
    name="monitoring",
    kinds=(
        Kind(
            collection="notificationChannels", schema="NotificationChannel", id_in="", fill=_channel, removable=_unused
        ),
        Kind(collection="alertPolicies", schema="AlertPolicy", id_in="", fill=_policy),
        Kind(collection="dashboards", schema="Dashboard", id_in="", fill=_dashboard, etag="etag"),
    ),
)
