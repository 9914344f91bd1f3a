"""The fewest requests for larger limits that make all stacks fit, and how a stack file takes one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from training_platform.catalog.locations import is_zone
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.reading.finding import Path, UserError
from training_platform.config.reading.source import Source, UnreadableError, parse_source, value_at
from training_platform.config.workspace import Workspace
from training_platform.quota.alternatives import Alternatives
from training_platform.quota.charges import QuotaKey, short_quota_id, shown
from training_platform.quota.ledger import Line, ProjectLedger
from training_platform.quota.requests import asked

LONGEST_NAME = 57  # of a request's key
MOST_HOLDERS = 3  # that a justification names
_NO_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, kw_only=True)
class NeededRequest:
    """One request: a limit that all stacks of a project together exceed, and the lowest that holds them all.

    ``name`` is its key under ``quota_requests``: that of the request for this limit that the file has already, else a
    new one. ``instead`` says what would fit today's limits for the largest holder of each stack.
    """

    name: str
    line: Line
    value: int
    instead: tuple[str, ...]

    @property
    def dimensions(self) -> dict[str, str]:
        """The dimensions to ask for, place included."""
        return dimensions_of(self.line.key)


@dataclass(frozen=True, kw_only=True)
class ProjectPlan:
    """What one project has to ask for.

    ``stack`` is the environment whose file takes the requests, None where no environment has the project. ``waiting``
    is asked for already, and enough. Of ``unknown`` the snapshot says nothing, so nobody can tell.
    """

    ledger: ProjectLedger
    stack: Stack | None
    environment: Environment | None
    needed: tuple[NeededRequest, ...]
    waiting: tuple[Line, ...]
    unknown: tuple[Line, ...]


def plan_requests(ledgers: Iterable[ProjectLedger], workspace: Workspace) -> list[ProjectPlan]:
    """Return a plan for every project; one that has nothing to ask for has an empty one."""
    return [_project_plan(ledger, workspace) for ledger in ledgers]


def dimensions_of(key: QuotaKey) -> dict[str, str]:
    """Return a key's dimensions as the Cloud Quotas API names them, the place first."""
    place = {"zone" if is_zone(key.location) else "region": key.location} if key.location else {}
    return place | dict(key.dimensions)


def request_lines(plan: ProjectPlan) -> list[str]:
    """Return the lines of YAML for a stack file, without the indentation of its section; none where all fits."""
    if not plan.needed or plan.environment is None:
        return []
    contact = contact_of(plan.environment) or '""  # whom Google may ask'
    entries = (entry_lines(need, contact=contact) for need in plan.needed)
    return ["quota_requests:", *(f"  {line}" for entry in entries for line in entry)]


def contact_of(environment: Environment) -> str | None:
    """Return whom Google may ask about an environment's limits: the first who gets its alerts."""
    return next(iter(environment.alerts.emails), None)


def entry_lines(need: NeededRequest, *, contact: str, justification: str | None = None) -> list[str]:
    """Return one request as lines of YAML, from its name on; without another justification it names who holds what."""
    lines = [f"{need.name}:", f"  service: {need.line.key.service}", f"  quota_id: {need.line.key.quota_id}"]
    if need.dimensions:
        pairs = ", ".join(f"{name}: {value}" for name, value in need.dimensions.items())
        lines.append(f"  dimensions: {{{pairs}}}")
    why = json.dumps(justification or _justification(need), ensure_ascii=False)  # a text in YAML too, whatever is in it
    return [*lines, f"  value: {need.value}", f"  justification: {why}", f"  contact: {contact}"]


def _project_plan(ledger: ProjectLedger, workspace: Workspace) -> ProjectPlan:
    home = next(((s, e) for s, e in workspace.environments() if e.project == ledger.project), None)
    names = {each.key: each.name for each in asked(workspace)}
    others = Alternatives(ledger, workspace)
    short = [line for line in ledger.lines if line.over]
    waiting = tuple(line for line in short if line.requested is not None and line.requested >= line.used)
    taken = {each.name for each in asked(workspace) if home and each.stack is home[0]}
    needed = []
    for line in short:
        if line in waiting:
            continue
        name = names.get(line.key) or _new_name(line.key, taken)
        taken.add(name)
        value = math.ceil(line.used)
        needed.append(NeededRequest(name=name, line=line, value=value, instead=tuple(_instead(line, others))))
    return ProjectPlan(
        ledger=ledger,
        stack=home[0] if home else None,
        environment=home[1] if home else None,
        needed=tuple(needed),
        waiting=waiting,
        unknown=tuple(line for line in ledger.lines if line.limit is None),
    )


def _instead(line: Line, others: Alternatives) -> Iterator[str]:
    stacks: set[str] = set()
    for held in line.holders:
        if held.holder.stack not in stacks:
            stacks.add(held.holder.stack)
            for way in others.today(line, held):
                yield f"{held.holder.stack}/{held.holder.label}: {way}"


def _new_name(key: QuotaKey, taken: set[str]) -> str:
    parts = (short_quota_id(key.quota_id), *(value for _, value in key.dimensions), key.location)
    name = _NO_NAME.sub("-", "-".join(parts).lower()).strip("-")[:LONGEST_NAME].rstrip("-")
    number = 2
    free = name
    while free in taken:
        free = f"{name[: LONGEST_NAME - 4].rstrip('-')}-{number}"
        number += 1
    return free


def _justification(need: NeededRequest) -> str:
    largest = need.line.holders[:MOST_HOLDERS]
    held = ", ".join(f"{each.holder.label} of {each.holder.stack} {shown(each.amount)}" for each in largest)
    rest = f" and {len(need.line.holders) - MOST_HOLDERS} more" if len(need.line.holders) > MOST_HOLDERS else ""
    return f"{need.line.unit} of the training platform: {held}{rest}."


_KEY = "quota_requests"
_VALUE = re.compile(r"""(["']?value["']?\s*:\s+)-?\d+""")


class _Edit(NamedTuple):
    """Lines that come before a line of the file, or instead of it; lines count from 0."""

    line: int
    instead: bool
    lines: list[str]


def with_requests(plan: ProjectPlan, text: str, *, contact: str | None = None, justification: str | None = None) -> str:
    """Return a stack file's text with a plan's requests: a new one each, or the value of the one that it has.

    ``contact`` and ``justification`` are for new ones; without them the environment's alerts say whom to ask, and the
    holders why. Raises UserError, also where the layout of the file leaves no place for whole lines.
    """
    if plan.stack is None or plan.environment is None:
        raise UserError(f"No environment stack has {plan.ledger.project}: ask for the limits in its console.")
    contact = contact or contact_of(plan.environment)
    if contact is None:
        raise UserError(f"{plan.stack.source.file} has no alerts.emails: say whom Google may ask, with --contact.")
    source = parse_source(text, plan.stack.source.file)
    path = (*plan.stack.below, _KEY)
    here = value_at(source.value, path)
    had = here if isinstance(here, dict) else {}
    new = [need for need in plan.needed if need.name not in had]
    entries = {need.name: entry_lines(need, contact=contact, justification=justification) for need in new}
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.removesuffix(newline).split(newline)
    edits = [_raised(need, source, (*path, need.name), lines) for need in plan.needed if need.name in had]
    if entries:
        edits.append(_added([line for entry in entries.values() for line in entry], source, path, had))
    written = _applied(edits, lines, newline)
    _verify(written, source, path, plan, entries)
    return written


def _raised(need: NeededRequest, source: Source, path: Path, lines: list[str]) -> _Edit:
    place = source.position((*path, "value"))
    line = lines[place.line - 1]
    start = place.column - 1
    return _Edit(place.line - 1, True, [line[:start] + _VALUE.sub(rf"\g<1>{need.value}", line[start:], count=1)])


def _added(entries: list[str], source: Source, path: Path, had: dict[str, Any]) -> _Edit:
    """Return the new requests: before those that the file has, or below the project."""
    if had:
        first = source.position((*path, next(iter(had))))
        return _Edit(first.line - 1, False, [" " * (first.column - 1) + line for line in entries])
    project = source.position((*path[:-1], "project"))
    margin = " " * (project.column - 1)
    return _Edit(project.line, False, [f"{margin}{_KEY}:", *(f"{margin}  {line}" for line in entries)])


def _applied(edits: list[_Edit], lines: list[str], newline: str) -> str:
    written = list(lines)
    for edit in sorted(edits, reverse=True):  # from the end, so that numbers of lines before stay right
        written[edit.line : edit.line + edit.instead] = edit.lines
    return "".join(f"{line}{newline}" for line in written)


def _verify(written: str, before: Source, path: Path, plan: ProjectPlan, entries: dict[str, list[str]]) -> None:
    """Raise UserError unless the text says what the file said, with the requests, and nothing else."""
    wanted = deepcopy(before.value)
    section = value_at(wanted, path[:-1])
    requests = section[_KEY] = section.get(_KEY) or {}
    for need in plan.needed:
        if need.name in entries:
            requests |= yaml.safe_load("\n".join(entries[need.name]))
        else:
            requests[need.name]["value"] = need.value
    try:
        after = parse_source(written, before.file)
    except UnreadableError:
        after = Source(before.file)
    if after.value != wanted or after.findings:  # such as of a key that stands there twice
        line = before.position(path).line
        raise UserError(
            f"{before.file}:{line}: is laid out so that no line of {_KEY} can be written: give each key a line of its "
            "own, or paste what `training-platform quota plan` prints."
        )
