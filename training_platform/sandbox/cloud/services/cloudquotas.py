"""Cloud Quotas, by hand: Google ships no discovery document of it. Limits from the snapshot; preferences are kept.

A preference changes no limit here: Google grants in its own time. It cannot be deleted, as in the real API. Shapes:
the reference of Cloud Quotas v1 (general knowledge) and ``training_platform/quota/snapshot.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from training_platform.quota.snapshot_rows import Limit
from training_platform.sandbox.cloud.requests.errors import ApiError, already_exists, conflict, not_found
from training_platform.sandbox.cloud.resources.actions import etag
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record

Json = dict[str, Any]
_PATH: Final = re.compile(r"v1(?:beta)?/(projects/([^/]+)/locations/global/(.+))")
_INFOS: Final = re.compile(r"services/([^/]+)/quotaInfos(?:/([^/]+))?")
_PREFERENCES: Final = re.compile(r"quotaPreferences(?:/([^/]+))?")
_FIELDS: Final = frozenset(
    {"name", "dimensions", "quotaConfig", "etag", "service", "quotaId", "justification", "contactEmail"}
)


def answer(cloud: Cloud, verb: str, path: str, query: Mapping[str, str], body: Any) -> Json:
    """Answer a request below ``/cloudquotas/``. Raises ApiError."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise ApiError(404, f"Method not found: {verb} /cloudquotas/{path}.")
    project = cloud.projects.resolve(found[2])
    infos, preferences = _INFOS.fullmatch(found[3]), _PREFERENCES.fullmatch(found[3])
    if infos and verb == "GET":
        return _infos(cloud, project, infos[1], infos[2])
    if preferences and verb in ("GET", "POST", "PATCH"):
        return _preference(cloud, project, preferences[1], verb=verb, query=query, body=body)
    raise ApiError(404, f"Method not found: {verb} /cloudquotas/{path}.")


def _infos(cloud: Cloud, project: str, service: str, quota_id: str | None) -> Json:
    snapshot = cloud.projects.snapshots.get(project)
    rows = snapshot.limits.get(service, {}) if snapshot else {}
    infos = [_info(project, service, name, limits) for name, limits in rows.items() if quota_id in (None, name)]
    if quota_id is None:
        return {"quotaInfos": infos}
    if not infos:
        raise not_found(f"projects/{project}/locations/global/services/{service}/quotaInfos/{quota_id}")
    return infos[0]


def _info(project: str, service: str, quota_id: str, limits: Sequence[Limit]) -> Json:
    rows = [
        {
            "dimensions": dict(each.dimensions),
            "details": {"value": str(each.limit)},
            "applicableLocations": [each.place or "global"],
        }
        for each in limits
    ]
    return {
        "name": f"projects/{project}/locations/global/services/{service}/quotaInfos/{quota_id}",
        "quotaId": quota_id,
        "service": service,
        "metric": f"{service}/{quota_id.partition('-per-project')[0].lower().replace('-', '_')}",
        "isPrecise": True,
        "containerType": "PROJECT",
        "dimensions": sorted({name for each in limits for name, _ in each.dimensions}),
        "dimensionsInfos": rows,
    }


def _preference(
    cloud: Cloud, project: str, given: str | None, *, verb: str, query: Mapping[str, str], body: Any
) -> Json:
    collection = f"cloudquotas/projects/{project}/locations/global/quotaPreferences"
    if verb == "GET":
        if given is None:
            return {"quotaPreferences": [each.body for each in cloud.store.children(collection)]}
        return cloud.existing(f"{collection}/{given}").body
    name = f"{collection}/{given or query.get('quotaPreferenceId') or cloud.number()}"
    held = cloud.store.get(name)
    if verb == "POST" and held is not None:
        raise already_exists(name.partition("/")[2])
    if verb == "PATCH" and held is None and query.get("allowMissing") != "true":
        raise not_found(name.partition("/")[2])
    record = Record(name=name, project=project, body=_written(cloud, name, body, held.body if held else {}))
    cloud.store.put(record)
    return record.body


def _written(cloud: Cloud, name: str, body: Any, old: Json) -> Json:
    if not isinstance(body, dict) or not isinstance(body.get("quotaConfig"), dict):
        raise ApiError(400, "quota_config is required")
    unknown = sorted(set(body) - _FIELDS)
    if unknown:
        raise ApiError(400, f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.')
    if old and body.get("etag", old["etag"]) != old["etag"]:
        raise conflict("The etag is stale.")
    config = body["quotaConfig"]
    preferred = str(config.get("preferredValue", ""))
    if not re.fullmatch(r"-?[0-9]{1,18}", preferred):
        raise ApiError(
            400, f"Invalid value at 'quota_preference.quota_config.preferred_value' (TYPE_INT64), \"{preferred}\""
        )
    return {
        **old,
        **body,
        "name": name.partition("/")[2],
        "quotaConfig": {**config, "preferredValue": preferred, "stateDetail": "under review"},
        "etag": etag(cloud),
        "reconciling": True,
        "createTime": old.get("createTime", cloud.time()),
        "updateTime": cloud.time(),
    }
