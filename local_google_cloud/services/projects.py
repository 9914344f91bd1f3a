"""Projects with their policies, enabled APIs and quotas, and the budgets of billing accounts.

No project is created or deleted here. The quota limits come from the ``Judge``, since Cloud Quotas has no discovery
document. Preferences (requests for other limits) are stored, but do not change a limit, since Google decides on them
later. As in the real API, they cannot be deleted. The formats follow the reference of Cloud Quotas v1 (general
knowledge).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from local_google_cloud.requests.errors import (
    Refusal,
    already_exists,
    conflict,
    failed_precondition,
    invalid,
    not_found,
)
from local_google_cloud.resources import lists
from local_google_cloud.resources.actions import (
    caller_permissions,
    etag,
    read_policy,
    start_operation,
    write_policy,
)
from local_google_cloud.resources.resource_kinds import Call, ResourceKind, Service
from local_google_cloud.state.authorization import Caller, authorize
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.questions import Access, QuotaLimit
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json
from training_platform.rules.documents.api_defaults import fill_in

# Cloud Resource Manager


def _get_project(cloud: Cloud, call: Call) -> Json:
    project = call.project
    created = _project(cloud, call).body["createTime"]
    if call.api.version == "v1":
        return {
            "projectNumber": cloud.judge.project_number(project),
            "projectId": project,
            "lifecycleState": "ACTIVE",
            "name": project,
            "createTime": created,
        }
    return {
        "name": f"projects/{cloud.judge.project_number(project)}",
        "projectId": project,
        "state": "ACTIVE",
        "displayName": project,
        "createTime": created,
    }


def _project(cloud: Cloud, call: Call) -> Record:
    """Return the record of a project, which also holds the project's IAM policy."""
    name = f"cloudresourcemanager/projects/{call.project}"
    record = cloud.store.get(name)
    if record is None:
        record = Record(name=name, project=call.project, body={"createTime": cloud.time()})
        cloud.store.put(record)
    return record


RESOURCE_MANAGER: Final = Service(
    name="cloudresourcemanager",
    needs_enabling=False,  # the provider reads a project before it enables APIs there
    handlers={
        "projects.get": _get_project,
        "projects.getIamPolicy": lambda cloud, call: read_policy(_project(cloud, call)),
        "projects.setIamPolicy": lambda cloud, call: write_policy(
            cloud, _project(cloud, call), call.body.get("policy", {})
        ),
        "projects.testIamPermissions": caller_permissions,
    },
)

# Service Usage: a project's enabled APIs, and the accounts of Google's services in it

# The domains of service agents differ from the APIs' names. Source: service agents, Google's IAM reference,
# general knowledge.
_AGENTS: Final = {
    "container": "container-engine-robot",
    "compute": "compute-system",
    "file": "cloud-filer",
    "cloudservices": "cloudservices",
}
_HOST: Final = re.compile(r"[a-z][a-z0-9.-]*\.googleapis\.com\Z")
_BATCH: Final = 20  # the most services that a batchEnable takes


def _enable(cloud: Cloud, call: Call) -> Json:
    return _start(cloud, call, {"service": _enable_api(cloud, call, _api(call))}, "EnableServiceResponse")


def _batch_enable(cloud: Cloud, call: Call) -> Json:
    apis = call.body.get("serviceIds", [])
    if not 0 < len(apis) <= _BATCH:
        raise invalid(f"service_ids has {len(apis)} services; allowed: 1 to {_BATCH}", field="service_ids")
    services = [_enable_api(cloud, call, api) for api in apis]
    return _start(cloud, call, {"services": services}, "BatchEnableServicesResponse")


def _enable_api(cloud: Cloud, call: Call, api: str) -> Json:
    """Enable an API, and return the body of its service."""
    if not _HOST.match(api):
        raise invalid(f"Service {api} is not found or permission denied.")
    name = f"serviceusage/projects/{call.project}/services/{api}"
    record = Record(name=name, project=call.project, body=_service(cloud, call, api, "ENABLED"))
    if name not in cloud.store:
        cloud.store.put(record)
    return record.body


def _get_service(cloud: Cloud, call: Call) -> Json:
    record = cloud.store.get(call.name)
    return record.body if record else _service(cloud, call, _api(call), "DISABLED")


def _list_services(cloud: Cloud, call: Call) -> Json:
    services = [record.body for record in cloud.store.children(call.name)]
    return lists.page(call, services, "GoogleApiServiceusageV1Service")


def _batch_get(cloud: Cloud, call: Call) -> Json:
    apis = [name.rpartition("/")[2] for name in call.parameters.get("names", [])]
    enabled = {record.id for record in cloud.store.children(call.name)}
    return {"services": [_service(cloud, call, api, "ENABLED" if api in enabled else "DISABLED") for api in apis]}


def _generate_identity(cloud: Cloud, call: Call) -> Json:
    api = _api(call)
    if cloud.settings.check_services and call.name not in cloud.store:
        raise failed_precondition(f"Service {api} is not enabled in project {call.project}.")
    short = api.partition(".")[0]
    domain = _AGENTS.get(short, f"gcp-sa-{short}")
    email = f"service-{cloud.judge.project_number(call.project)}@{domain}.iam.gserviceaccount.com"
    unique = int.from_bytes(email.encode()[-8:], "big")
    return _start(cloud, call, {"email": email, "uniqueId": f"1{unique:020d}"[:21]}, "ServiceIdentity")


def _api(call: Call) -> str:
    return call.path.rpartition("/")[2]


def _service(cloud: Cloud, call: Call, api: str, state: str) -> Json:
    """Return a service in the format of the API."""
    parent = f"projects/{cloud.judge.project_number(call.project)}"
    return {"name": f"{parent}/services/{api}", "config": {"name": api, "title": api}, "state": state, "parent": parent}


def _start(cloud: Cloud, call: Call, response: Json, schema: str) -> Json:
    package = f"google.api.serviceusage.{call.api.version}"
    metadata = {"@type": f"type.googleapis.com/{package}.OperationMetadata", "resourceNames": [call.path]}
    return start_operation(
        cloud, call, "services", response=response, schema=f"{package}.{schema}", where="", metadata=metadata
    )


SERVICE_USAGE: Final = Service(
    name="serviceusage",
    needs_enabling=False,  # always enabled, since it enables the others
    handlers={
        "services.enable": _enable,
        "services.batchEnable": _batch_enable,
        "services.get": _get_service,
        "services.list": _list_services,
        "services.batchGet": _batch_get,
        "services.generateServiceIdentity": _generate_identity,
    },
)

# Budgets of a billing account


def _fill_budget(cloud: Cloud, call: Call, record: Record, old: Json) -> None:
    body = record.body
    if not old:
        unique = str(UUID(int=cloud.store.serial() * 2**64 + 2**126))
        record.name = f"{call.name}/{unique}"
        body["name"] = f"{call.path}/{unique}"
    if "amount" not in body:
        raise Refusal(400, "Request contains an invalid argument: a budget needs an amount.")
    if not body["budgetFilter"].get("customPeriod"):
        body["budgetFilter"].setdefault("calendarPeriod", "MONTH")
    for rule in body.get("thresholdRules", ()):
        fill_in(rule, "budget.thresholdRule")


BILLING_BUDGETS: Final = Service(
    name="billingbudgets",
    kinds=(ResourceKind(collection="budgets", schema="Budget", id_in="", fill=_fill_budget, etag="etag"),),
)

# Cloud Quotas

_PATH: Final = re.compile(r"v1(?:beta)?/(projects/([^/]+)/locations/global/(.+))")
_INFOS: Final = re.compile(r"services/([^/]+)/quotaInfos(?:/([^/]+))?")
_PREFERENCES: Final = re.compile(r"quotaPreferences(?:/([^/]+))?")
_FIELDS: Final = frozenset(
    {"name", "dimensions", "quotaConfig", "etag", "service", "quotaId", "justification", "contactEmail"}
)


def answer_cloud_quotas(
    cloud: Cloud, verb: str, path: str, query: Mapping[str, str], body: Any, *, caller: Caller | None
) -> Json:
    """Return the response to a request below ``/cloudquotas/``. Raises Refusal."""
    match = _PATH.fullmatch(path)
    if match is not None:
        project = cloud.projects.resolve(match[2])
        infos = _INFOS.fullmatch(match[3])
        preferences = _PREFERENCES.fullmatch(match[3])
        collection = "services.quotaInfos" if infos else "quotaPreferences"
        action = {"GET": "list" if infos else "get", "POST": "create", "PATCH": "patch"}.get(verb, "")
        method = f"cloudquotas.projects.locations.{collection}.{action}"
        if infos or preferences:
            authorize(cloud, caller, Access("cloudquotas", method, resource=f"projects/{project}", request={}))
        if infos and verb == "GET":
            return _quota_infos(cloud, project, infos[1], infos[2])
        if preferences and verb == "GET":
            return _get_preferences(cloud, project, preferences[1])
        if preferences and verb in ("POST", "PATCH"):
            name = preferences[1] or query.get("quotaPreferenceId") or cloud.number()
            return _write_preference(
                cloud, project, name, body, new=verb == "POST", create=query.get("allowMissing") == "true"
            )
    raise Refusal(404, f"Method not found: {verb} /cloudquotas/{path}.")


def _quota_infos(cloud: Cloud, project: str, service: str, quota_id: str | None) -> Json:
    rows = cloud.judge.limits(project, service)
    infos = [_quota_info(project, service, name, limits) for name, limits in rows.items() if quota_id in (None, name)]
    if quota_id is None:
        return {"quotaInfos": infos}
    if not infos:
        raise not_found(f"projects/{project}/locations/global/services/{service}/quotaInfos/{quota_id}")
    return infos[0]


def _quota_info(project: str, service: str, quota_id: str, limits: Sequence[QuotaLimit]) -> Json:
    return {
        "name": f"projects/{project}/locations/global/services/{service}/quotaInfos/{quota_id}",
        "quotaId": quota_id,
        "service": service,
        "metric": f"{service}/{quota_id.partition('-per-project')[0].lower().replace('-', '_')}",
        "isPrecise": True,
        "containerType": "PROJECT",
        "dimensions": sorted({name for limit in limits for name, _ in limit.dimensions}),
        "dimensionsInfos": [
            {
                "dimensions": dict(limit.dimensions),
                "details": {"value": str(limit.amount)},
                "applicableLocations": [limit.location or "global"],
            }
            for limit in limits
        ],
    }


def _get_preferences(cloud: Cloud, project: str, name: str | None) -> Json:
    collection = f"cloudquotas/projects/{project}/locations/global/quotaPreferences"
    if name is not None:
        return cloud.existing(f"{collection}/{name}").body
    return {"quotaPreferences": [record.body for record in cloud.store.children(collection)]}


def _write_preference(cloud: Cloud, project: str, name: str, body: Any, *, new: bool, create: bool) -> Json:
    path = f"projects/{project}/locations/global/quotaPreferences/{name}"
    current = cloud.store.get(f"cloudquotas/{path}")
    if current is not None and new:
        raise already_exists(path)
    if current is None and not (new or create):
        raise not_found(path)
    old = current.body if current else {}
    if not isinstance(body, dict) or not isinstance(body.get("quotaConfig"), dict):
        raise Refusal(400, "quota_config is required")
    unknown = sorted(set(body) - _FIELDS)
    if unknown:
        raise Refusal(400, f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.')
    if old and body.get("etag", old["etag"]) != old["etag"]:
        raise conflict("The etag is stale.")
    value = str(body["quotaConfig"].get("preferredValue", ""))
    if not re.fullmatch(r"-?[0-9]{1,18}", value):
        field = "quota_preference.quota_config.preferred_value"
        raise Refusal(400, f"Invalid value at '{field}' (TYPE_INT64), \"{value}\"")
    written = {
        **old,
        **body,
        "name": path,
        "quotaConfig": {**body["quotaConfig"], "preferredValue": value, "stateDetail": "under review"},
        "etag": etag(cloud),
        "reconciling": True,
        "createTime": old.get("createTime", cloud.time()),
        "updateTime": cloud.time(),
    }
    cloud.store.put(Record(name=f"cloudquotas/{path}", project=project, body=written))
    return written
