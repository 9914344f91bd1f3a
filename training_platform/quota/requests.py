"""Requests for larger limits in stack files: reading them, checking them, and calculating correct values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.environment import QuotaRequest
from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import Draft, declare, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Path
from training_platform.config.reading.section import enumeration
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import QuotaKey, shown
from training_platform.quota.ledger import ProjectLedger
from training_platform.quota.quota_ids import KnownQuota, known_quotas
from training_platform.quota.snapshot import FOLDER, Snapshot

QUOTA_REQUEST = declare(
    "quota-request",
    "Find a quota request that Google would refuse or that is too low.",
    ruleset="quota",
    excuse="exemption",
)
LARGEST_DECREASE = 10  # percent of a limit, unless a safety check is ignored
"""The largest decrease that Google accepts, in percent.

Source: Cloud Quotas API v1 reference, QuotaSafetyCheck, read 2026-11-21.
"""
_CHECK = "QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"


class StackRequest(NamedTuple):
    """A request in an environment's stack file, with its name and its limit."""

    stack: Stack
    name: str
    request: QuotaRequest
    key: QuotaKey

    @property
    def value(self) -> float:
        """The requested limit; ``inf`` means unlimited."""
        return math.inf if self.request.value == -1 else float(self.request.value)

    def locate(self, field: Path) -> Anchor:
        """Return the position of a field of the request."""
        return self.stack.locate(("quota_requests", self.name, *field))


def stack_requests(workspace: Workspace) -> Iterator[StackRequest]:
    """Yield all requests of all environments."""
    for stack, environment in workspace.environments():
        for name, request in environment.quota_requests.items():
            dimensions = request.other_dimensions
            key = QuotaKey(
                environment.project,
                request.service,
                quota_id=request.quota_id,
                location=request.place,
                dimensions=dimensions,
            )
            yield StackRequest(stack, name, request=request, key=key)


def requested(workspace: Workspace) -> dict[QuotaKey, float]:
    """Return the requested limit of each quota; ``inf`` means unlimited."""
    return {request.key: request.value for request in stack_requests(workspace)}


def request_findings(ledgers: Iterable[ProjectLedger], workspace: Workspace) -> list[Finding]:
    """Return findings about quota requests that are unknown, repeated or too low, or that Google would refuse."""
    by_project = {ledger.project: ledger for ledger in ledgers}
    drafts: list[Draft] = []
    seen: dict[QuotaKey, StackRequest] = {}
    for request in stack_requests(workspace):
        first = seen.setdefault(request.key, request)
        if first is not request:
            where = first.name if first.stack is request.stack else f"{first.name} of {first.stack.name}"
            message = f"requests the same limit as {where}: {request.key}"
            drafts.append(finding(request, (), message, rule=QUOTA_REQUEST, allowed="one request for each limit"))
        ledger = by_project.get(request.key.project)
        snapshot = ledger.snapshot if ledger else None
        drafts += list(_unknown(request, snapshot)) or _amount(request, ledger, snapshot)
    return located(drafts)


def _unknown(request: StackRequest, snapshot: Snapshot | None) -> Iterator[Draft]:
    service = request.key.service
    quota_id = request.key.quota_id
    quota = known_quotas().get((service, quota_id))
    if quota is not None:
        yield from _wrong_dimensions(request, quota)
        return
    listed = snapshot.limits.get(service, {}) if snapshot else {}
    if quota_id not in listed:
        names = {name for other, name in known_quotas() if other == service} | set(listed)
        message = f"{quota_id!r} is not a quota id of {service} in the snapshot or the catalogue"
        allowed = f"quota ids in {FOLDER}/{request.key.project}.yaml"
        yield finding(
            request, ("quota_id",), message, rule=QUOTA_REQUEST, allowed=allowed, nearest=find_nearest(quota_id, names)
        )


def _wrong_dimensions(request: StackRequest, quota: KnownQuota) -> Iterator[Draft]:
    quota_id = request.key.quota_id
    names = list(quota.dimensions)
    if quota.per != "project":
        names.insert(0, quota.per)
    for name, value in request.request.dimensions.items():
        if name not in names:
            message = f"{name!r} is not a dimension of {quota_id}"
            allowed = enumeration(names) or "none: the quota is counted for the whole project"
            yield finding(
                request,
                ("dimensions", name),
                message,
                rule=QUOTA_REQUEST,
                allowed=allowed,
                nearest=find_nearest(name, names),
            )
        elif (values := quota.dimensions.get(name)) and value not in values:
            message = f"{value!r} is not a {name} of {quota_id} in the catalogue"
            nearest = find_nearest(value, values)
            yield finding(
                request,
                ("dimensions", name),
                message,
                rule=QUOTA_REQUEST,
                allowed=enumeration(values),
                nearest=nearest,
                severity="warning",
            )
    for name in names:
        if name not in request.request.dimensions:
            message = f"has no {name}: {quota_id} is counted per {' and '.join(names)}"
            yield finding(request, ("dimensions",), message, rule=QUOTA_REQUEST, allowed=f"{name}: NAME")


def _amount(request: StackRequest, ledger: ProjectLedger | None, snapshot: Snapshot | None) -> Iterator[Draft]:
    line = next((line for line in ledger.lines if line.key == request.key), None) if ledger else None
    limit = snapshot.limit(request.key) if snapshot else None
    if line and request.value < line.used:
        needed = str(math.ceil(line.used))
        message = f"requests {shown(request.value)} {line.unit}, but the stacks need {shown(line.used)}"
        yield finding(request, ("value",), message, rule=QUOTA_REQUEST, allowed=f"at least {needed}", nearest=needed)
    elif limit is not None and request.request.ignore_safety_check != _CHECK:
        minimum = limit if math.isinf(limit) else limit * (100 - LARGEST_DECREASE) / 100
        if request.value < minimum:
            nearest = "-1" if math.isinf(minimum) else str(math.ceil(minimum))
            message = f"lowers the limit of {shown(limit)} by more than {LARGEST_DECREASE}%, which Google refuses"
            allowed = f"at least {nearest}, or ignore_safety_check: {_CHECK}"
            yield finding(request, ("value",), message, rule=QUOTA_REQUEST, allowed=allowed, nearest=nearest)
