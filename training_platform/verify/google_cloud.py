"""Probes that read a project by the lists of its APIs: the plan against what is there, limits, series of alerts.

All of them only read, as a viewer may. ``refusals.yaml`` has requests that every project refuses for free.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from training_platform.adopt.comparison import differences
from training_platform.adopt.matches import Match
from training_platform.catalog.reading import table
from training_platform.clients.google_api import GoogleError
from training_platform.clients.project_contents import POLICY
from training_platform.clients.quota_pull import CloudQuotas
from training_platform.quota.charges import QuotaKey, shown
from training_platform.resources import register
from training_platform.resources.monitoring import alert_rules
from training_platform.resources.planned import UNKNOWN, Planned
from training_platform.resources.register import REGISTER
from training_platform.verify.probes import Answer, Platform, probe, proven, refuted, undecided

READER: Final = ("roles/viewer", "roles/iam.securityReviewer")
_STATES: Final[Mapping[str, tuple[str, str]]] = {
    register.CLUSTER: ("status", "RUNNING"),
    register.NODE_POOL: ("status", "RUNNING"),
    register.FILESTORE: ("state", "READY"),
    register.LUSTRE: ("state", "ACTIVE"),
    register.PERSISTENT_RESOURCE: ("state", "RUNNING"),
}
_STOCKOUT: Final = ("GCE_STOCKOUT", "ZONE_RESOURCE_POOL_EXHAUSTED", "does not have enough resources available")
_SHOWN: Final = 6  # names in an answer


def as_planned(platform: Platform, *types: str) -> Iterator[Answer]:
    """Answer for each planned resource of some types: whether it is there, ready, and has the values of the plan.

    Values that no stack file names are not compared. What is as planned is one answer by kind.
    """
    for token in types:
        wanted = [one for one in platform.resources if one.custom and one.type == token]
        good: list[str] = []
        for planned in wanted:
            match = platform.in_project.get((planned.stack, *planned.key))
            wrong = list(_wrong(planned, match, platform))
            yield from wrong
            if not wrong and match is not None:
                good.append(match.path)
        if good:
            kind = REGISTER[token].kind
            yield proven(f"{len(good)} of {len(wanted)}: {kind} is there as planned", _names(good))


def _wrong(planned: Planned, match: Match | None, platform: Platform) -> Iterator[Answer]:
    kind, token = REGISTER[planned.type].kind, planned.type
    if match is None:
        yield from _missing(planned, platform)
        return
    for difference in differences(match.planned, match.body) if match.body is not None else ():
        if difference.planned is not None:
            yield refuted(f"{kind} {planned.name} is not as planned: {difference}", match.path)
    field, ready = _STATES.get(token, ("", ""))
    body = match.body or {}
    state = body.get(field, ready)
    if state != ready:
        reason = str(body.get("statusMessage") or body.get("conditions") or "no reason is given")
        if any(word in reason for word in _STOCKOUT):
            yield undecided(f"{kind} {planned.name} waits for machines, which the zone lacks now", reason)
        else:
            yield refuted(f"{kind} {planned.name} is {state}, not {ready}", reason)


def _missing(planned: Planned, platform: Platform) -> Iterator[Answer]:
    """Answer for a resource that no list shows; Google's own agents are known by their form."""
    kind, token = REGISTER[planned.type].kind, planned.type
    if token in platform.contents.unread:
        yield undecided(f"{kind} {planned.name} could not be looked for", platform.contents.unread[token])
    elif REGISTER[token].listed is None and token not in _TOLD_ELSEWHERE:
        yield undecided(f"{kind} {planned.name} could not be looked for", "no list of the project has its kind")
    elif planned.inputs.get("member") is not UNKNOWN or not _of_agent(planned):
        yield refuted(f"{kind} {planned.name} is not there", _told(planned))
    elif not _has_agent(planned, platform):
        yield refuted(f"no service agent has {planned.inputs['role']}", _told(planned))


_TOLD_ELSEWHERE: Final = {
    register.NODE_POOL, register.SERVICE, register.IAM_MEMBER, register.ROUTER_NAT, register.SERVICE_CONNECTION
}  # fmt: skip
"""Kinds without a list of their own which the answer of another list tells of."""


def _of_agent(planned: Planned) -> bool:
    sources = planned.inputs_from.get("member", ())
    return not any(token == register.SERVICE_ACCOUNT for token, _ in sources)


def _has_agent(planned: Planned, platform: Platform) -> bool:
    """Whether one of Google's own accounts has a role; a stack file cannot tell its number."""
    policy = platform.contents.of(POLICY).get(platform.contents.project, {})
    members = (
        name for row in policy.get("bindings", ()) if row["role"] == planned.inputs["role"] for name in row["members"]
    )
    return any(name.startswith("serviceAccount:service-") for name in members)


def _told(planned: Planned) -> str:
    named = (planned.inputs.get(key) for key in ("name", "service", "role", "displayName", "accountId"))
    return ", ".join(value for value in named if isinstance(value, str))


def _names(paths: list[str]) -> str:
    names = [path.rpartition("/")[2] for path in paths]
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


@probe(
    "project-apis", stage="project", proves="The APIs that the stacks need are enabled.",
    roles=("roles/serviceusage.serviceUsageViewer",),
)  # fmt: skip
def project_apis(platform: Platform) -> Iterator[Answer]:
    """Answer for the enabled APIs."""
    yield from as_planned(platform, register.SERVICE)


@probe(
    "project-accounts", stage="project", proves="Accounts and custom roles are there; members have their roles.",
    roles=READER,
)  # fmt: skip
def project_accounts(platform: Platform) -> Iterator[Answer]:
    """Answer for accounts and roles, and for accounts that somebody has disabled."""
    yield from as_planned(platform, register.SERVICE_ACCOUNT, register.CUSTOM_ROLE, register.IAM_MEMBER)
    for match in platform.found(register.SERVICE_ACCOUNT):
        if (match.body or {}).get("disabled"):
            yield refuted(f"service account {match.planned.name} is disabled", match.path)


@probe(
    "project-quotas", stage="project", proves="The project's limits cover the stacks at the autoscaling maximum.",
    roles=("roles/cloudquotas.viewer",),
)  # fmt: skip
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


@probe("network-as-planned", stage="network", proves="Networks, subnets, NAT, addresses and firewalls are as planned.",
       roles=("roles/compute.networkViewer",))  # fmt: skip
def network_as_planned(platform: Platform) -> Iterator[Answer]:
    """Answer for the resources of networks."""
    yield from as_planned(
        platform, register.NETWORK, register.SUBNETWORK, register.ROUTER, register.ROUTER_NAT, register.ADDRESS,
        register.GLOBAL_ADDRESS, register.FIREWALL, register.SERVICE_CONNECTION, register.NETWORK_ATTACHMENT,
    )  # fmt: skip


@probe("network-names", stage="network", proves="Private zones answer for Google's APIs as planned.",
       roles=("roles/dns.reader",))  # fmt: skip
def network_names(platform: Platform) -> Iterator[Answer]:
    """Answer for DNS zones and their records."""
    yield from as_planned(platform, register.MANAGED_ZONE, register.RECORD_SET)


@probe("cluster-as-planned", stage="cluster", proves="Clusters run as planned, at private addresses.",
       roles=("roles/container.clusterViewer",), after=("project-apis",))  # fmt: skip
def cluster_as_planned(platform: Platform) -> Iterator[Answer]:
    """Answer for clusters, and for addresses that the internet could reach."""
    yield from as_planned(platform, register.CLUSTER)
    for match in platform.found(register.CLUSTER):
        endpoints = ((match.body or {}).get("controlPlaneEndpointsConfig") or {}).get("ipEndpointsConfig") or {}
        if endpoints.get("enabled") and endpoints.get("publicEndpoint"):
            yield refuted(f"the control plane of {match.planned.name} answers at a public address", match.path)


@probe("pools-as-planned", stage="pools", proves="Node pools run with the machines and labels of the plan.",
       roles=("roles/container.clusterViewer",), after=("cluster-as-planned",))  # fmt: skip
def pools_as_planned(platform: Platform) -> Iterator[Answer]:
    """Answer for node pools; one that waits for machines is undecided."""
    yield from as_planned(platform, register.NODE_POOL, register.RESOURCE_POLICY)


@probe("storage-as-planned", stage="storage", proves="Filestore, Lustre, buckets and secrets are as planned and ready.",
       after=("project-apis",))  # fmt: skip
def storage_as_planned(platform: Platform) -> Iterator[Answer]:
    """Answer for whatever keeps data; the content of a bucket is never listed."""
    yield from as_planned(
        platform, register.FILESTORE, register.LUSTRE, register.BUCKET, register.REPOSITORY, register.SECRET
    )


@probe("vertex-as-planned", stage="vertex", proves="Persistent resources and TensorBoards are as planned.",
       roles=("roles/aiplatform.viewer",))  # fmt: skip
def vertex_as_planned(platform: Platform) -> Iterator[Answer]:
    """Answer for Vertex AI's resources."""
    yield from as_planned(platform, register.PERSISTENT_RESOURCE, register.TENSORBOARD, register.METADATA_STORE)


@probe("vertex-refusals", stage="vertex", proves="Google refuses what the local cloud of the sandbox refuses.",
       roles=("roles/viewer",), after=("project-apis",))  # fmt: skip
def vertex_refusals(platform: Platform) -> Iterator[Answer]:
    """Answer for requests that create nothing even if they were let in, by the code of the refusal.

    Each is about a resource that is not there, or has a field that the API's document does not have.
    """
    same = 0
    names = {"project": platform.contents.project, "name": platform.maker.name("none"), **_region(platform)}
    rows = table(__file__, "refusals.yaml")
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
    places = [match.path.split("/")[3] for match in platform.found(register.CLUSTER)]
    place = places[0] if places else "us-central1"
    return {"region": place.rpartition("-")[0] if place.count("-") > 1 else place, "location": place}


@probe("monitoring-as-planned", stage="monitoring", proves="Alerts, their channels and dashboards are as planned.",
       roles=("roles/monitoring.viewer",))  # fmt: skip
def monitoring_as_planned(platform: Platform) -> Iterator[Answer]:
    """Answer for alerts and dashboards, and for policies and channels that somebody has turned off."""
    yield from as_planned(platform, register.ALERT_POLICY, register.NOTIFICATION_CHANNEL, register.DASHBOARD)
    for token in (register.ALERT_POLICY, register.NOTIFICATION_CHANNEL):
        for match in platform.found(token):
            if (match.body or {}).get("enabled") is False:
                yield refuted(f"{REGISTER[token].kind} {match.planned.name} is turned off", match.path)


@probe("monitoring-series", stage="monitoring", proves="The series that each alert is about arrive.",
       roles=("roles/monitoring.viewer",), after=("monitoring-as-planned", "cluster-as-planned"))  # fmt: skip
def monitoring_series(platform: Platform) -> Iterator[Answer]:
    """Answer for each metric of the planned alerts: whether a series of it had a value within a day.

    A series of a source that has others may come with its first event, such as a failed job: that is undecided. A
    source without any series is refuted, since none of its alerts can ever fire.
    """
    api = platform.api("dashboards")  # version 1 of Cloud Monitoring, which evaluates PromQL
    arrived: dict[str, set[str]] = defaultdict(set)
    missing: dict[str, set[str]] = defaultdict(set)
    for planned in platform.resources:
        rule = alert_rules().get(planned.name.partition("-")[2]) if planned.type == register.ALERT_POLICY else None
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


@probe("tenancy-accounts", stage="tenancy", proves="The accounts of jobs can be used by their own team's pods alone.",
       roles=("roles/iam.securityReviewer",), after=("project-accounts",))  # fmt: skip
def tenancy_accounts(platform: Platform) -> Iterator[Answer]:
    """Answer for each account that jobs of a team run as: who may act as it, against the plan."""
    policies = platform.contents.of(POLICY)
    planned: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for one in platform.resources:
        if one.type == register.SERVICE_ACCOUNT_MEMBER and isinstance(one.inputs.get("member"), str):
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
