"""The regions and zones that Compute Engine shows, with the limits and usage of each region's quotas."""

from __future__ import annotations

from typing import Final

from training_platform.sandbox.cloud.requests.errors import not_found
from training_platform.sandbox.cloud.requests.links import COMPUTE_LINK
from training_platform.sandbox.cloud.resources import lists
from training_platform.sandbox.cloud.resources.model import Call, Handler, Json
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.places import regions, zones
from training_platform.sandbox.cloud.state.quota import finite, metric


def _region(cloud: Cloud, call: Call, name: str) -> Json:
    if name not in regions():
        raise not_found(f"projects/{call.project}/regions/{name}")
    link = f"{COMPUTE_LINK}projects/{call.project}/"
    return {
        "kind": "compute#region", "name": name, "id": str(1000 + regions().index(name)), "status": "UP",
        "selfLink": f"{link}regions/{name}", "zones": [f"{link}zones/{zone}" for zone in zones(name)],
        "quotas": _quotas(cloud, call.project, name),
    }  # fmt: skip


def _quotas(cloud: Cloud, project: str, region: str) -> list[Json]:
    """Return a region's limits and usage, or those of the whole project for an empty region."""
    snapshot = cloud.projects.snapshots.get(project)
    rows = snapshot.limits.get("compute.googleapis.com", {}) if snapshot else {}
    used: dict[str, float] = {}
    for key, amount in cloud.quota.used(project).items():
        if key.service == "compute.googleapis.com" and key.location == region and not key.dimensions:
            used[key.quota_id] = used.get(key.quota_id, 0.0) + amount
    quotas = []
    for quota_id, limits in rows.items():
        fitting = [
            each for each in limits if (each.region or "") == region and not (each.__pydantic_extra__ or each.zone)
        ]
        for limit in fitting[:1]:
            most = finite(float(limit.limit)) if limit.limit >= 0 else 9e15
            quotas.append({"metric": metric(quota_id), "limit": most, "usage": used.get(quota_id, 0.0)})
    return quotas


def _get_region(cloud: Cloud, call: Call) -> Json:
    return _region(cloud, call, call.parameters["region"])


def _list_regions(cloud: Cloud, call: Call) -> Json:
    return lists.page(call, [_region(cloud, call, name) for name in regions()], "Region")


def _zone(call: Call, name: str) -> Json:
    region = name.rpartition("-")[0]
    if name not in zones(region):
        raise not_found(f"projects/{call.project}/zones/{name}")
    link = f"{COMPUTE_LINK}projects/{call.project}/"
    return {
        "kind": "compute#zone", "name": name, "id": str(2000 + len(name)), "status": "UP", "description": name,
        "selfLink": f"{link}zones/{name}", "region": f"{link}regions/{region}",
    }  # fmt: skip


def _get_zone(_cloud: Cloud, call: Call) -> Json:
    return _zone(call, call.parameters["zone"])


def _list_zones(_cloud: Cloud, call: Call) -> Json:
    return lists.page(call, [_zone(call, zone) for region in regions() for zone in zones(region)], "Zone")


def _project(cloud: Cloud, call: Call) -> Json:
    return {
        "kind": "compute#project", "name": call.project, "id": cloud.number(),
        "quotas": _quotas(cloud, call.project, ""),
        "selfLink": f"{COMPUTE_LINK}projects/{call.project}", "commonInstanceMetadata": {"kind": "compute#metadata"},
    }  # fmt: skip


HANDLERS: Final[dict[str, Handler]] = {
    "regions.get": _get_region,
    "regions.list": _list_regions,
    "zones.get": _get_zone,
    "zones.list": _list_zones,
    "projects.get": _project,
}
