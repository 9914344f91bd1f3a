"""The smallest requests for larger limits with which all stacks fit, and their YAML lines for the stack file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from training_platform.catalog.locations import is_zone
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.reading.editing import with_entry, with_number
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.source import parse_source, value_at
from training_platform.config.workspace import Workspace
from training_platform.quota.alternatives import Alternatives
from training_platform.quota.charges import QuotaKey, short_quota_id, shown
from training_platform.quota.ledger import Held, Line, ProjectLedger
from training_platform.quota.requests import stack_requests

LONGEST_NAME = 57  # of a request's key
MOST_HOLDERS = 3  # that a justification names
_KEY = "quota_requests"
_NO_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, kw_only=True)
class NeededRequest:
    """One request: a limit that all stacks of a project together exceed, and the lowest limit that is enough for all.

    ``name`` is the request's key under ``quota_requests``: the existing key if the file already has a request for this
    limit. ``instead`` is the alternative to a request. For the largest user in each stack, it says which value would
    fit today's limits.
    """

    name: str
    line: Line
    value: int
    instead: tuple[str, ...]

    @property
    def dimensions(self) -> dict[str, str]:
        """The dimensions with the names of the Cloud Quotas API, the location first."""
        key = self.line.key
        place = {"zone" if is_zone(key.location) else "region": key.location} if key.location else {}
        return place | dict(key.dimensions)


@dataclass(frozen=True, kw_only=True)
class ProjectRequests:
    """The requests that one project needs.

    - ``stack`` is the environment whose file contains the requests, None if no environment has the project.
    - ``waiting`` contains limits for which a sufficient request already exists.
    - ``unknown`` contains limits that are missing from the snapshot, so the need cannot be determined.
    """

    ledger: ProjectLedger
    stack: Stack | None
    environment: Environment | None
    needed: tuple[NeededRequest, ...]
    waiting: tuple[Line, ...]
    unknown: tuple[Line, ...]


def needed_requests(ledgers: Iterable[ProjectLedger], workspace: Workspace) -> list[ProjectRequests]:
    """Return the needed requests of every project; a project may need none."""
    return [_project_plan(ledger, workspace) for ledger in ledgers]


def _project_plan(ledger: ProjectLedger, workspace: Workspace) -> ProjectRequests:
    owners = (owner for owner in workspace.environments() if owner[1].project == ledger.project)
    stack, environment = next(owners, (None, None))
    requests = list(stack_requests(workspace))
    names = {request.key: request.name for request in requests}
    taken = {request.name for request in requests if request.stack is stack}
    alternatives = Alternatives(ledger, workspace)
    needed: list[NeededRequest] = []
    waiting: list[Line] = []
    for line in ledger.lines:
        if not line.over:
            continue
        if line.requested is not None and line.requested >= line.used:
            waiting.append(line)
            continue
        name = names.get(line.key) or _new_name(line.key, taken)
        taken.add(name)
        largest: dict[str, Held] = {}  # by stack
        for held in line.holders:
            largest.setdefault(held.holder.stack, held)
        instead = [
            f"{name}/{held.holder.label}: {way}"
            for name, held in largest.items()
            for way in alternatives.today(line, held)
        ]
        needed.append(NeededRequest(name=name, line=line, value=math.ceil(line.used), instead=tuple(instead)))
    return ProjectRequests(
        ledger=ledger,
        stack=stack,
        environment=environment,
        needed=tuple(needed),
        waiting=tuple(waiting),
        unknown=tuple(line for line in ledger.lines if line.limit is None),
    )


def _new_name(key: QuotaKey, taken: set[str]) -> str:
    parts = (short_quota_id(key.quota_id), *(value for _, value in key.dimensions), key.location)
    name = _NO_NAME.sub("-", "-".join(parts).lower()).strip("-")[:LONGEST_NAME].rstrip("-")
    numbered = (f"{name[: LONGEST_NAME - 4].rstrip('-')}-{number}" for number in count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def request_lines(plan: ProjectRequests) -> list[str]:
    """Return the YAML lines for a stack file, without the section's indentation; empty if all stacks fit."""
    if not plan.needed or plan.environment is None:
        return []
    contact = _contact(plan.environment) or '""  # whom Google may contact'
    entries = [line for need in plan.needed for line in _entry_lines(need, contact, None)]
    return [f"{_KEY}:", *(f"  {line}" for line in entries)]


def _contact(environment: Environment) -> str | None:
    """Return the contact for Google's questions about limits: the first recipient of the environment's alerts."""
    return next(iter(environment.alerts.emails), None)


def _entry_lines(need: NeededRequest, contact: str, justification: str | None) -> list[str]:
    """Return one request as YAML lines, starting with its name.

    The default justification names the pools and other items that need the quota.
    """
    key = need.line.key
    dimensions = need.dimensions
    lines = [f"{need.name}:", f"  service: {key.service}", f"  quota_id: {key.quota_id}"]
    if dimensions:
        lines.append(f"  dimensions: {{{', '.join(f'{name}: {value}' for name, value in dimensions.items())}}}")
    why = json.dumps(justification or _justification(need), ensure_ascii=False)  # JSON strings are valid YAML
    return [*lines, f"  value: {need.value}", f"  justification: {why}", f"  contact: {contact}"]


def _justification(need: NeededRequest) -> str:
    largest = need.line.holders[:MOST_HOLDERS]
    unnamed = need.line.holders[MOST_HOLDERS:]
    named = ", ".join(f"{held.holder.label} of {held.holder.stack} {shown(held.amount)}" for held in largest)
    return f"{need.line.unit} of the training platform: {named}{f' and {len(unnamed)} more' if unnamed else ''}."


def with_requests(
    plan: ProjectRequests, text: str, *, contact: str | None = None, justification: str | None = None
) -> str:
    """Return a stack file's text with the needed requests: new requests, and new values of existing ones.

    ``contact`` and ``justification`` apply to new requests. By default, the contact is the first recipient of the
    environment's alerts, and the justification names what needs the quota. Raises UserError, also if the layout of the
    file does not allow adding lines.
    """
    if plan.stack is None or plan.environment is None:
        raise UserError(
            f"No environment stack uses project {plan.ledger.project}: request the limits in the Google Cloud console."
        )
    contact = contact or _contact(plan.environment)
    if contact is None:
        raise UserError(
            f"{plan.stack.source.file} has no alerts.emails: give an address for Google's questions with --contact."
        )
    file = plan.stack.source.file
    path = (*plan.stack.below, _KEY)
    old = value_at(parse_source(text, file).value, path) or {}
    for need in plan.needed:
        if need.name in old:
            text = with_number(text, file, (*path, need.name, "value"), need.value)
        else:
            text = with_entry(text, file, path, _entry_lines(need, contact, justification))
    return text
