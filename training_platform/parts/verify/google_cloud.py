"""Probes of a project by its APIs: states, limits, series of alerts, refusals.

All but two only read, as a viewer may: ``vertex_jobs`` and ``monitoring_page``, which are chosen by name, create what
they then delete. ``refusals.yaml`` has requests that every project refuses for free.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from training_platform.catalog.operations import principals
from training_platform.catalog.permissions import permissions, permissions_of
from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.clients.google_api import GoogleError
from training_platform.clients.kubernetes_api import ApiKind
from training_platform.clients.project_contents import POLICY
from training_platform.clients.quota_pull import CloudQuotas
from training_platform.parts.adopt.matches import Match
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.probes import Answer, Platform, is_stockout, proven, refuted, undecided
from training_platform.quota.charges import QuotaKey, shown
from training_platform.resources import resource_types
from training_platform.resources.gke import ADMIN_ROLE, FURTHER_ADMIN_ROLES
from training_platform.resources.monitoring import alert_rules
from training_platform.resources.resource_types import RESOURCE_TYPES
from training_platform.resources.stack_resource import StackResource

_STATES: Final[Mapping[str, tuple[str, str]]] = {
    resource_types.CLUSTER: ("status", "RUNNING"),
    resource_types.NODE_POOL: ("status", "RUNNING"),
    resource_types.FILESTORE: ("state", "READY"),
    resource_types.LUSTRE: ("state", "ACTIVE"),
    resource_types.PERSISTENT_RESOURCE: ("state", "RUNNING"),
}


def ready(platform: Platform, kinds: Sequence[str]) -> Iterator[Answer]:
    """Answer for each planned resource of some kinds: whether it is there, and in the state in which it works.

    Its values are not compared with the plan: `pulumi preview --refresh` does that.
    """
    tokens = {RESOURCE_TYPES[token].kind: token for token in _STATES}
    for kind in kinds:
        planned_resources = [one for one in platform.resources if one.custom and one.type == tokens[kind]]
        for planned in planned_resources:
            match = platform.in_project.get((planned.stack, *planned.key))
            yield _missing(planned, platform) if match is None else _in_state(match)


def _in_state(match: Match) -> Answer:
    """Answer for the state of a resource that is there; a pool that waits for machines may run soon."""
    field, working = _STATES[match.planned.type]
    body, name = match.body or {}, f"{RESOURCE_TYPES[match.planned.type].kind} {match.planned.name}"
    state = body.get(field, working)
    if state == working:
        return proven(f"{name} is {working}", match.path)
    reason = str(body.get("statusMessage") or body.get("conditions") or "no reason is given")
    if is_stockout(reason):
        return undecided(f"{name} waits for machines, which the zone lacks now", reason)
    return refuted(f"{name} is {state}, not {working}", reason)


def _missing(planned: StackResource, platform: Platform) -> Answer:
    """Answer for a resource that no list shows."""
    name = f"{RESOURCE_TYPES[planned.type].kind} {planned.name}"
    if planned.type in platform.contents.unread:
        return undecided(f"{name} could not be looked for", platform.contents.unread[planned.type])
    return refuted(f"{name} is not there", "no list of the project has it")


def project_rights(platform: Platform) -> Iterator[Answer]:
    """Answer for the permissions that administrators' commands require and their roles hold, by IAM's own answer.

    Nobody impersonates people: who runs this is to be one of the environment's administrators.
    """
    methods = permissions().methods
    needs = {need.permission for method in principals()["admins"].methods for need in methods[method]}
    required = sorted(needs & {each for role in (ADMIN_ROLE, *FURTHER_ADMIN_ROLES) for each in permissions_of(role)})
    path = f"projects/{platform.contents.project}:testIamPermissions"
    held = platform.api("cloudresourcemanager").call("POST", path, {"permissions": required}).get("permissions") or []
    lacking = [permission for permission in required if permission not in held]
    if lacking:
        yield refuted(f"you lack {len(lacking)} of {len(required)} permissions of administrators", ", ".join(lacking))
    else:
        yield proven(f"you have the {len(required)} permissions of administrators")


def project_quotas(platform: Platform) -> Iterator[Answer]:
    """Answer for each limit: the demand of all stacks of the project against what Cloud Quotas says now."""
    quotas = CloudQuotas(platform.contents.project, platform.endpoint("cloudquotas"))
    for service in sorted({key.service for key in platform.demand}):
        limits = {info.quota_id: info for info in quotas.quotas(service)}
        if not limits:
            yield undecided(f"no limit of {service} is listed")
            continue
        enough = 0
        for key, amount in platform.demand.items():
            if key.service != service:
                continue
            if key.quota_id not in limits:
                yield refuted(f"{service} has no quota {key.quota_id}", f"the stacks need {shown(amount)} of it")
                continue
            limit = _limit(key, limits[key.quota_id].rows)
            if limit is not None and limit < amount:
                place = key.location or "all regions"
                yield refuted(f"{key.quota_id} in {place} is {limit:,}, and the stacks need {shown(amount)}", service)
            else:
                enough += 1
        if enough:
            yield proven(f"{enough} limits of {service} cover the stacks", "Cloud Quotas, quotaInfos")


def _limit(key: QuotaKey, rows: Any) -> int | None:
    """Return the limit of the row that is about most of a key's dimensions, 0 where none is, None for unlimited."""
    own = dict(key.dimensions)
    for row in sorted(rows, key=lambda row: -len(row.dimensions)):
        places = {value for name, value in row.dimensions.items() if name in ("region", "zone")}
        others = {name: value for name, value in row.dimensions.items() if name not in ("region", "zone")}
        if (not places or key.location in places) and others.items() <= own.items():
            return None if row.limit == -1 else row.limit
    return 0


def vertex_refusals(platform: Platform) -> Iterator[Answer]:
    """Answer for requests that create nothing even if they were let in, by the code of the refusal.

    Each is about a resource that is not there, or has a field that the API's document does not have.
    """
    yield from _refused(platform, [row for row in _REFUSALS if not _is_dry(row)])


def monitoring_refusals(platform: Platform) -> Iterator[Answer]:
    """Answer for dry runs, by the code of the refusal: of what every environment has, only dashboards have them."""
    yield from _refused(platform, [row for row in _REFUSALS if _is_dry(row)])


_REFUSALS: Final[Sequence[Json]] = table(__file__, "refusals.yaml")


def _is_dry(row: Json) -> bool:
    return "validateOnly" in row.get("query", {})


def _refused(platform: Platform, rows: Sequence[Json]) -> Iterator[Answer]:
    same = 0
    names = {"project": platform.contents.project, "name": platform.maker.name("none"), **_region(platform)}
    for row in rows:
        api = platform.api(row["api"], names["region"])
        asked = f"{row['method']} {row['path']}"
        try:
            api.call(row["method"], row["path"].format(**names), row.get("body"), **row.get("query", {}))
        except GoogleError as error:
            if error.status == row["code"]:
                same += 1
            elif error.status is None or error.status in (401, 403, 429, 501):
                yield undecided(f"{row['says']}: could not be asked", f"{asked}: {error}")
            else:
                yield refuted(f"{row['says']}: {error.status}, expected {row['code']}", f"{asked}: {error}")
        else:
            yield refuted(f"{row['says']}: let in, expected {row['code']}", asked)
    if same:
        yield proven(f"{same} of {len(rows)} requests are refused with the same code")


def _region(platform: Platform) -> dict[str, str]:
    places = [match.path.split("/")[3] for match in platform.found(resource_types.CLUSTER)]
    place = places[0] if places else "us-central1"
    return {"region": place.rpartition("-")[0] if place.count("-") > 1 else place, "location": place}


def monitoring_series(platform: Platform) -> Iterator[Answer]:
    """Answer for each metric of the planned alerts: whether a series of it had a value within a day.

    A series of a source that has others may come with its first event, such as a failed job: that is undecided. A
    source without any series is refuted, since none of its alerts can ever fire.
    """
    api = platform.api("dashboards")  # version 1 of Cloud Monitoring, which evaluates PromQL
    arrived: dict[str, set[str]] = defaultdict(set)
    missing: dict[str, set[str]] = defaultdict(set)
    for planned in platform.resources:
        rule = (
            alert_rules().get(planned.name.partition("-")[2]) if planned.type == resource_types.ALERT_POLICY else None
        )
        if rule is None:
            continue
        query = planned.inputs["conditions"][0]["conditionPrometheusQueryLanguage"]["query"]
        for metric, labels in _SELECTOR.findall(query):
            selector = f"{metric}{{{','.join(_PLACE.findall(labels))}}}"
            if selector not in arrived[rule.needs] | missing[rule.needs]:
                there = _has_series(api, platform.contents.project, selector)
                (arrived if there else missing)[rule.needs].add(selector)
    for source in arrived.keys() | missing.keys():
        if not arrived[source]:
            yield refuted(f"no series of {source} arrived within a day", ", ".join(sorted(missing[source])))
            continue
        for selector in sorted(missing[source]):
            yield undecided(f"no series of {selector} arrived within a day; it may come with the first event", source)
        yield proven(f"{len(arrived[source])} metrics of {source} arrive", ", ".join(sorted(arrived[source])))


_SELECTOR: Final = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
_PLACE: Final = re.compile(r'(?:cluster|cluster_name|job|monitored_resource|project_id)=~?"[^"]*"')
"""The labels of a selector that say whose series are meant; others say which event, which may not have happened."""


def _has_series(api: Any, project: str, selector: str) -> bool:
    path = f"projects/{project}/location/global/prometheus/api/v1/query"
    answer = api.call("POST", path, {"query": f"count(last_over_time({selector}[1d]))"})
    return bool((answer.get("data") or {}).get("result"))


def monitoring_page(platform: Platform) -> Iterator[Answer]:
    """Answer for a policy that always fires, with the environment's channels: its alert opens, and its code is read.

    Only somebody who has the message can tell its code, so that is proof of the whole way. A series of one's own would
    leave a metric behind; a constant needs none (that Cloud Monitoring takes it as a condition is unverified). A list
    of alerts can be filtered by fields of alerts and their policies; that the filter takes this spelling is unverified.
    Source: discovery document of Cloud Monitoring v3, revision 20260129.
    """
    channels = [str((match.body or {})["name"]) for match in platform.found(resource_types.NOTIFICATION_CHANNEL)]
    if not channels:
        yield undecided("the environment's alerts have no address", "no notification channel is there")
        return
    project, code = platform.contents.project, f"{secrets.randbelow(10**6):06}"
    title = f"A test of training-platform ({platform.maker.name()}): nothing is wrong"
    query = {"query": "vector(1)", "duration": "0s", "evaluationInterval": "30s", "disableMetricValidation": True}
    body = {
        "displayName": title, "combiner": "OR", "severity": "WARNING", "notificationChannels": channels,
        "conditions": [{"displayName": title, "conditionPrometheusQueryLanguage": query}],
        "documentation": {"content": f"The code is {code}. This policy will be deleted.", "mimeType": "text/markdown"},
    }  # fmt: skip
    kind = ApiKind(f"projects/{project}/alertPolicies", "alertPolicies")
    policy = str(platform.maker.make_in_project("monitoring", "", kind, body, "userLabels")["name"])
    api, asked = platform.api("monitoring"), f'state = "OPEN" AND policy.name = "{policy}"'

    def opened() -> Json | None:
        rows = api.call("GET", f"projects/{project}/alerts", filter=asked).get("alerts") or ()
        return next((row for row in rows if (row.get("policy") or {}).get("name") == policy), None)

    alert = wait_for(opened, platform.seconds)
    if not alert:
        yield refuted("no alert opened on a condition that always holds", policy)
        return
    yield proven("an alert opens on a condition that always holds", f"at {alert.get('openTime')}")
    says = f"the alert reached an address of {len(channels)}"
    if platform.confirm is None:
        yield undecided(f"{says}: nobody was asked for the code in its message", "there is no terminal")
    elif (told := platform.confirm("The code in the message (nothing, if none came in ten minutes)")) == code:
        yield proven(says, "somebody read its code")
    else:
        yield refuted(f"{says}: its code was not read", "another code was given" if told else "none was given")


def tenancy_accounts(platform: Platform) -> Iterator[Answer]:
    """Answer for each account that jobs of a team run as: who may act as it, against the plan."""
    policies = platform.contents.of(POLICY)
    planned: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for one in platform.resources:
        if one.type == resource_types.SERVICE_ACCOUNT_MEMBER and isinstance(one.inputs.get("member"), str):
            source = one.inputs_from.get("serviceAccountId", ())
            keys = ((one.stack, *key) for key in source)
            path = next((platform.in_project[key].path for key in keys if key in platform.in_project), "")
            planned[path].add((str(one.inputs["role"]), str(one.inputs["member"])))
    for path, wanted in planned.items():
        name = path.rpartition("/")[2]
        if path not in policies:
            yield undecided(f"who may act as {name or 'an account'} could not be read", "no policy was listed")
            continue
        there = Counter(
            (row["role"], member) for row in policies[path].get("bindings", ()) for member in row["members"]
        )
        for role, member in sorted(there.keys() - wanted):
            yield refuted(f"{member} has {role} on {name}, which no stack file grants", path)
        for role, member in sorted(wanted - there.keys()):
            yield refuted(f"{member} lacks {role} on {name}", path)
        if there.keys() == wanted:
            yield proven(f"{name}: {len(wanted)} grants, as planned", path)
