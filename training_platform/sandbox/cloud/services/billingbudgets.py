"""Cloud Billing budgets of an account."""

from __future__ import annotations

from uuid import UUID

from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.defaults import fill_in
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record


def _fill(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    body = record.body
    if not old:
        unique = str(UUID(int=cloud.store.serial() * 2**64 + 2**126))
        record.name = f"{call.name}/{unique}"
        body["name"] = f"{call.path}/{unique}"
    if "amount" not in body:
        raise ApiError(400, "Request contains an invalid argument: a budget has an amount.")
    if not body["budgetFilter"].get("customPeriod"):
        body["budgetFilter"].setdefault("calendarPeriod", "MONTH")
    for rule in body.get("thresholdRules", ()):
        fill_in(rule, "budget.thresholdRule")


SERVICE = Service(
    name="billingbudgets",
    kinds=(Kind(collection="budgets", schema="Budget", id_in="", fill=_fill, etag="etag"),),
)
