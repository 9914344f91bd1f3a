"""Puts needed requests into an environment's stack file, and changes nothing else of it."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any, NamedTuple

import yaml

from training_platform.config.reading.finding import Path, UserError
from training_platform.config.reading.source import Source, UnreadableError, parse_source, value_at
from training_platform.quota.plan import NeededRequest, ProjectPlan, contact_of, entry_lines

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
