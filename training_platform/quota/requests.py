"""Requests for larger limits: those that stack files make, what is wrong with them, and what they should say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.environment import QuotaRequest
from training_platform.config.model.stack import Stack
from training_platform.config.reading.finding import Finding, Path, Severity
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import QuotaKey, shown
from training_platform.quota.ledger import ProjectLedger
from training_platform.quota.quota_ids import KnownQuota, known_quotas
from training_platform.quota.snapshot import FOLDER, Snapshot

RULE = "quota-request"
LARGEST_DECREASE = 10  # percent of a limit, unless a safety check is ignored
"""Source: Cloud Quotas API v1 reference, QuotaSafetyCheck, read 2026-11-21."""
_CHECK = "QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"


class Asked(NamedTuple):
    """A request and where it stands."""

    stack: Stack
    name: str
    request: QuotaRequest
    key: QuotaKey

    @property
    def path(self) -> Path:
        """Its path below the environment's section."""
        return ("quota_requests", self.name)

    def finding(
        self, below: Path, message: str, allowed: str, nearest: str | None = None, severity: Severity = "error"
    ) -> Finding:
        """Return a finding about a part of the request."""
        path = (*self.path, *below)
        return self.stack.finding(RULE, path, message, severity=severity, allowed=allowed, nearest=nearest)


def asked(workspace: Workspace) -> Iterator[Asked]:
    """Yield every request of every environment."""
    for stack, environment in workspace.environments():
        for name, request in environment.quota_requests.items():
            yield Asked(stack, name, request, request_key(environment.project, request))


def request_key(project: str, request: QuotaRequest) -> QuotaKey:
    """Return the key of the limit that a request is for."""
    return QuotaKey(project, request.service, request.quota_id, request.place, request.other_dimensions)


def requested(workspace: Workspace) -> dict[QuotaKey, float]:
    """Return what is asked for, by key; ``inf`` is unlimited."""
    return {each.key: _value(each.request) for each in asked(workspace)}


def request_findings(ledgers: Iterable[ProjectLedger], workspace: Workspace) -> list[Finding]:
    """Return what is wrong with requests: for what nobody knows, twice, too little, or a decrease Google refuses."""
    by_project = {ledger.project: ledger for ledger in ledgers}
    found: list[Finding] = []
    seen: dict[QuotaKey, Asked] = {}
    for each in asked(workspace):
        first = seen.setdefault(each.key, each)
        if first is not each:
            where = f"{first.name} of {first.stack.name}" if first.stack is not each.stack else first.name
            message = f"asks for what {where} asks for: {each.key}"
            found.append(each.finding((), message, "one request for each limit"))
        ledger = by_project.get(each.key.project)
        snapshot = ledger.snapshot if ledger else None
        unknown = list(_unknown(each, snapshot))
        found += unknown or _amount(each, ledger, snapshot)
    return found


def _unknown(each: Asked, snapshot: Snapshot | None) -> Iterator[Finding]:
    request = each.request
    known = known_quotas().get((request.service, request.quota_id))
    listed = snapshot.limits.get(request.service, {}) if snapshot else {}
    if known is None and request.quota_id not in listed:
        names = {name for service, name in known_quotas() if service == request.service} | set(listed)
        message = f"{request.quota_id!r} is not a quota id of {request.service} in the snapshot or the catalogue"
        allowed = f"quota ids in {FOLDER}/{each.key.project}.yaml"
        yield each.finding(("quota_id",), message, allowed, find_nearest(request.quota_id, names))
    elif known is not None:
        yield from _wrong_dimensions(each, known)


def _wrong_dimensions(each: Asked, known: KnownQuota) -> Iterator[Finding]:
    place = () if known.per == "project" else (known.per,)
    wanted = (*place, *known.dimensions)
    given = each.request.dimensions
    for name in given:
        if name not in wanted:
            message = f"{name!r} is not a dimension of {each.request.quota_id}"
            allowed = enumeration(wanted) or "none: it is counted for the whole project"
            yield each.finding(("dimensions", name), message, allowed, find_nearest(name, wanted))
        elif (values := known.dimensions.get(name)) and given[name] not in values:
            message = f"{given[name]!r} is not a {name} of {each.request.quota_id} in the catalogue"
            nearest = find_nearest(given[name], values)
            yield each.finding(("dimensions", name), message, enumeration(values), nearest, "warning")
    for name in wanted:
        if name not in given:
            message = f"does not say which {name}: {each.request.quota_id} is counted by {' and '.join(wanted)}"
            yield each.finding(("dimensions",), message, f"{name}: NAME")


def _amount(each: Asked, ledger: ProjectLedger | None, snapshot: Snapshot | None) -> Iterator[Finding]:
    line = next((line for line in ledger.lines if line.key == each.key), None) if ledger else None
    limit = snapshot.limit(each.key) if snapshot else None
    value = _value(each.request)
    if line and value < line.used:
        needed = str(math.ceil(line.used))
        message = f"asks for {shown(value)} {line.unit}, and the stacks need {shown(line.used)}"
        yield each.finding(("value",), message, f"at least {needed}", needed)
    elif limit is not None and each.request.ignore_safety_check != _CHECK:
        yield from _decrease(each, value, limit)


def _decrease(each: Asked, value: float, limit: float) -> Iterator[Finding]:
    least = limit if math.isinf(limit) else limit * (100 - LARGEST_DECREASE) / 100
    if value < least:
        nearest = "-1" if math.isinf(least) else str(math.ceil(least))
        message = f"lowers the limit of {shown(limit)} by more than {LARGEST_DECREASE}%, which Google refuses"
        yield each.finding(("value",), message, f"at least {nearest}, or ignore_safety_check: {_CHECK}", nearest)


def _value(request: QuotaRequest) -> float:
    return math.inf if request.value == -1 else float(request.value)
