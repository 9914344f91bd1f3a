"""Probes of a project through its APIs: states, limits, time series of alerts, refusals.

All of them only read, with a viewer's permissions, except ``monitoring_page``. That one runs only if a user names it,
and deletes the objects that it creates. ``refusals.yaml`` has requests that every project refuses without cost.
"""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from training_platform.catalog.locations import region_of
from training_platform.catalog.operations import principals
from training_platform.catalog.permissions import permissions, permissions_of
from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.clients.google_api import GoogleApi, GoogleError
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


def ready(platform: Platform, types: Sequence[str]) -> Iterator[Answer]:
    """Yield a verdict on each planned resource of some types: whether it exists and is in its working state.

    Its values are not compared with the plan, since `pulumi preview --refresh` does that.
    """
    for resource_type in types:
        for planned in platform.resources:
            if not planned.custom or planned.type != resource_type:
                continue
            match = platform.in_project.get((planned.stack, *planned.key))
            if match is None:
                yield _missing_answer(planned, platform)
            else:
                yield _state_answer(match)


def _state_answer(match: Match) -> Answer:
    """Return a verdict on the state of an existing resource. A pool that waits for machines may run later."""
    field, working_state = _STATES[match.planned.type]
    name = _shown_name(match.planned)
    body = match.body or {}
    state = body.get(field, working_state)
    if state == working_state:
        return proven(f"{name} is {working_state}", match.path)
    reason = str(body.get("statusMessage") or body.get("conditions") or "no reason is given")
    if is_stockout(reason):
        return undecided(f"{name} waits for machines that the zone does not have now", reason)
    return refuted(f"{name} is {state}, not {working_state}", reason)


def _missing_answer(planned: StackResource, platform: Platform) -> Answer:
    """Return a verdict on a planned resource that the project's lists do not contain."""
    name = _shown_name(planned)
    if planned.type in platform.contents.unread:
        return undecided(f"{name} could not be listed", platform.contents.unread[planned.type])
    return refuted(f"{name} does not exist", "no list of the project contains it")


def _shown_name(planned: StackResource) -> str:
    return f"{RESOURCE_TYPES[planned.type].kind} {planned.name}"


def project_rights(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on the permissions that administrators' commands need and that their roles should contain.

    IAM tests the permissions of the caller, who should be one of the environment's administrators, since the probe does
    not impersonate anyone.
    """
    methods = permissions().methods
    used = {need.permission for method in principals()["admins"].methods for need in methods[method]}
    granted: set[str] = set()
    for role in (ADMIN_ROLE, *FURTHER_ADMIN_ROLES):
        granted.update(permissions_of(role))
    required = sorted(used & granted)
    path = f"projects/{platform.contents.project}:testIamPermissions"
    response = platform.api("cloudresourcemanager").call("POST", path, {"permissions": required})
    held = response.get("permissions") or []
    lacking = [permission for permission in required if permission not in held]
    if lacking:
        yield refuted(
            f"you do not have {len(lacking)} of {len(required)} permissions of administrators", ", ".join(lacking)
        )
    else:
        yield proven(f"you have the {len(required)} permissions of administrators")


def project_quotas(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on the limits in Cloud Quotas: whether they cover the demand of all stacks in the project."""
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
                location = key.location or "all regions"
                yield refuted(
                    f"{key.quota_id} in {location} is {limit:,}, but the stacks need {shown(amount)}", service
                )
            else:
                enough += 1
        if enough:
            yield proven(f"{enough} limits of {service} are sufficient for the stacks", "Cloud Quotas, quotaInfos")


def _limit(key: QuotaKey, rows: Any) -> int | None:
    """Return the limit in the most specific row for a key, 0 if no row applies, or None if it is unlimited."""
    key_dimensions = dict(key.dimensions)
    for row in sorted(rows, key=lambda row: -len(row.dimensions)):
        locations = {value for name, value in row.dimensions.items() if name in ("region", "zone")}
        other_dimensions = {name: value for name, value in row.dimensions.items() if name not in ("region", "zone")}
        in_location = not locations or key.location in locations
        if in_location and other_dimensions.items() <= key_dimensions.items():
            return None if row.limit == -1 else row.limit
    return 0


def vertex_refusals(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on requests that Vertex AI must refuse, from the error code of each refusal.

    If one were accepted, it would create nothing: it names a resource that does not exist, or has a field that is not
    in the API's document.
    """
    yield from _refused(platform, [row for row in _REFUSALS if not _is_dry(row)])


def monitoring_refusals(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on dry runs of dashboards, from the refusal's code. Only dashboards have dry runs everywhere."""
    yield from _refused(platform, [row for row in _REFUSALS if _is_dry(row)])


_REFUSALS: Final[Sequence[Json]] = table(__file__, "refusals.yaml")


def _is_dry(row: Json) -> bool:
    return "validateOnly" in row.get("query", {})


def _refused(platform: Platform, rows: Sequence[Json]) -> Iterator[Answer]:
    refused = 0
    location = _first_location(platform)
    region = region_of(location)
    names = {
        "project": platform.contents.project,
        "name": platform.maker.name("none"),
        "location": location,
        "region": region,
    }
    for row in rows:
        says = row["says"]
        request = f"{row['method']} {row['path']}"
        path = row["path"].format(**names)
        try:
            platform.api(row["api"], region).call(row["method"], path, row.get("body"), **row.get("query", {}))
        except GoogleError as error:
            if error.status == row["code"]:
                refused += 1
            elif error.status is None or error.status in (401, 403, 429, 501):
                yield undecided(f"{says}: no answer", f"{request}: {error}")
            else:
                yield refuted(f"{says}: {error.status}, expected {row['code']}", f"{request}: {error}")
        else:
            yield refuted(f"{says}: accepted, expected {row['code']}", request)
    if refused:
        yield proven(f"{refused} of {len(rows)} requests are refused with the same code")


def _first_location(platform: Platform) -> str:
    """Return the location of the first existing cluster, or a region that every project has."""
    for match in platform.existing(resource_types.CLUSTER):
        return match.path.split("/")[3]
    return "us-central1"


def monitoring_series(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on each metric in the planned alerts: whether one of its series had a value within a day.

    A missing series is undecided if its source has other series, since it may start with its first event, such as a
    failed job. A source without any series is refuted, since its alerts can never fire.
    """
    api = platform.api("dashboards")  # version 1 of Cloud Monitoring, which evaluates PromQL
    arrived: dict[str, set[str]] = defaultdict(set)
    missing: dict[str, set[str]] = defaultdict(set)
    for source, selector in _alert_selectors(platform):
        if selector in arrived[source] | missing[source]:
            continue
        if _has_series(api, platform.contents.project, selector):
            arrived[source].add(selector)
        else:
            missing[source].add(selector)
    for source in arrived.keys() | missing.keys():
        if not arrived[source]:
            yield refuted(f"no series of {source} arrived within a day", ", ".join(sorted(missing[source])))
            continue
        for selector in sorted(missing[source]):
            yield undecided(f"no series of {selector} arrived within a day; it may appear with the first event", source)
        yield proven(f"{len(arrived[source])} metrics of {source} arrive", ", ".join(sorted(arrived[source])))


def _alert_selectors(platform: Platform) -> Iterator[tuple[str, str]]:
    """Yield the source and the selector of each metric in the queries of the planned alerts."""
    rules = alert_rules()
    for planned in platform.resources:
        if planned.type != resource_types.ALERT_POLICY:
            continue
        rule = rules.get(planned.name.partition("-")[2])
        if rule is None:
            continue
        query = planned.inputs["conditions"][0]["conditionPrometheusQueryLanguage"]["query"]
        for metric, labels in _SELECTOR.findall(query):
            yield rule.needs, f"{metric}{{{','.join(_SOURCE_LABELS.findall(labels))}}}"


_SELECTOR: Final = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
_SOURCE_LABELS: Final = re.compile(r'(?:cluster|cluster_name|job|monitored_resource|project_id)=~?"[^"]*"')
"""The labels in a selector that name the source of a series. Others name events that may not have happened yet."""


def _has_series(api: GoogleApi, project: str, selector: str) -> bool:
    path = f"projects/{project}/location/global/prometheus/api/v1/query"
    response = api.call("POST", path, {"query": f"count(last_over_time({selector}[1d]))"})
    return bool((response.get("data") or {}).get("result"))


def monitoring_page(platform: Platform) -> Iterator[Answer]:
    """Create a policy that always fires, with the environment's channels. Test that its alert opens and arrives.

    The message has a code that is shown nowhere else, so a person who repeats it proves the whole delivery. The
    condition is a constant, since a metric that we create would remain; it is unverified that Cloud Monitoring accepts
    a constant. Its alerts are filtered by fields of alerts and their policies; it is unverified that the filter accepts
    this syntax. Source: discovery document of Cloud Monitoring v3, revision 20260129.
    """
    channels = [str((match.body or {})["name"]) for match in platform.existing(resource_types.NOTIFICATION_CHANNEL)]
    if not channels:
        yield undecided("the environment's alerts have no address", "no notification channel exists")
        return
    code = f"{secrets.randbelow(10**6):06}"
    policy = _create_firing_policy(platform, channels, code)
    alert = wait_for(lambda: _open_alert(platform, policy), platform.seconds)
    if not alert:
        yield refuted("no alert opened for a condition that is always true", policy)
        return
    yield proven("an alert opens for a condition that is always true", f"at {alert.get('openTime')}")
    says = f"the alert reached at least one of {len(channels)} addresses"
    if platform.confirm is None:
        yield undecided(f"{says}: nobody was asked for the code in its message", "there is no terminal")
        return
    reply = platform.confirm("The code in the message (nothing, if none came in ten minutes)")
    if reply == code:
        yield proven(says, "somebody read its code")
    elif reply:
        yield refuted(f"{says}: its code was not read", "a different code was entered")
    else:
        yield refuted(f"{says}: its code was not read", "no code was entered")


def _create_firing_policy(platform: Platform, channels: Sequence[str], code: str) -> str:
    """Create an alert policy that always fires and whose message has the code, and return its name."""
    title = f"A test of training-platform ({platform.maker.name()}): nothing is wrong"
    query = {"query": "vector(1)", "duration": "0s", "evaluationInterval": "30s", "disableMetricValidation": True}
    body = {
        "displayName": title,
        "combiner": "OR",
        "severity": "WARNING",
        "notificationChannels": channels,
        "conditions": [{"displayName": title, "conditionPrometheusQueryLanguage": query}],
        "documentation": {"content": f"The code is {code}. This policy will be deleted.", "mimeType": "text/markdown"},
    }
    kind = ApiKind(f"projects/{platform.contents.project}/alertPolicies", "alertPolicies")
    return str(platform.maker.make_in_project("monitoring", "", kind, body, "userLabels")["name"])


def _open_alert(platform: Platform, policy: str) -> Json | None:
    path = f"projects/{platform.contents.project}/alerts"
    response = platform.api("monitoring").call("GET", path, filter=f'state = "OPEN" AND policy.name = "{policy}"')
    alerts: list[Json] = response.get("alerts") or []
    for alert in alerts:
        if (alert.get("policy") or {}).get("name") == policy:
            return alert
    return None


def tenancy_accounts(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on each account of a team's jobs: whether only the planned members may act as this account."""
    policies = platform.contents.of(POLICY)
    for path, planned_grants in _planned_grants(platform).items():
        account = path.rpartition("/")[2]
        if path not in policies:
            yield undecided(f"the grants on {account or 'an account'} could not be read", "no policy was listed")
            continue
        actual_grants: set[tuple[str, str]] = set()
        for binding in policies[path].get("bindings", ()):
            actual_grants.update((binding["role"], member) for member in binding["members"])
        for role, member in sorted(actual_grants - planned_grants):
            yield refuted(f"{member} has {role} on {account}, which no stack file grants", path)
        for role, member in sorted(planned_grants - actual_grants):
            yield refuted(f"{member} does not have {role} on {account}", path)
        if actual_grants == planned_grants:
            yield proven(f"{account}: {len(planned_grants)} grants, as planned", path)


def _planned_grants(platform: Platform) -> dict[str, set[tuple[str, str]]]:
    """Return role and member of each planned grant on a service account, keyed by the account's path.

    The path is empty if the account does not exist in the project.
    """
    grants: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for planned in platform.resources:
        member = planned.inputs.get("member")
        if planned.type != resource_types.SERVICE_ACCOUNT_MEMBER or not isinstance(member, str):
            continue
        account_keys = [(planned.stack, *key) for key in planned.inputs_from.get("serviceAccountId", ())]
        paths = [platform.in_project[key].path for key in account_keys if key in platform.in_project]
        grants[paths[0] if paths else ""].add((str(planned.inputs["role"]), member))
    return grants
