"""The fields of stack files that a change modifies, and which of them causes the change of a resource.

Two fields can have the same new value, so comparing values does not show which field is the cause. A trial plan shows
it: the work tree is planned with the old value of one field, and whatever then does not change depends on this field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

from training_platform.checks.change_report import InputChange, ResourceChange
from training_platform.checks.comparison.changes import resource_changes
from training_platform.checks.outcome import FlatResource, flat_resource
from training_platform.config.model.stack import Stack, parse_stack
from training_platform.config.reading.finding import Path
from training_platform.config.reading.source import value_at
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.plan import PlanError
from training_platform.resources.stack_plan import plannable, stack_plan

_MOST_FIELDS = 50
_MOST_PLANNED = 6_000
"""The maximum number of resources in all trial plans. In a larger change, a resource's whole section is the cause."""
_ITEM = re.compile(r"\[[^\]]*\]")
_Plan = tuple[FlatResource, ...]
_Changes = Mapping[tuple[str, str], ResourceChange]


class FieldChange(NamedTuple):
    """A field of a stack file with its old and new value; a value is None if the field does not exist on that side."""

    path: Path
    was: Any
    now: Any


def changed_fields(new: Stack, old: Stack, section: Path = ()) -> Iterator[FieldChange]:
    """Yield the fields that differ below a section; a part that was added or removed as a whole is one field."""
    before = written(old, section)
    after = written(new, section)
    while len(section) > 1 and (before is None) != (after is None):
        shorter = written(old, section[:-1]), written(new, section[:-1])
        if None not in shorter:
            break
        section = section[:-1]
        before, after = shorter
    yield from _differing(before, after, section)


def written(stack: Stack, section: Path) -> Any:
    """Return the content of a section in a stack's file."""
    return value_at(stack.source.value, (*stack.below, *section))


def value_in_model(stack: Stack, path: Path, in_file: Any) -> Any:
    """Return a switch or a number as in the model, which fills in defaults; return any other value as in the file."""
    value: Any = stack.section
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, str(part), None)
    return value if isinstance(value, int) else in_file


def _differing(before: Any, after: Any, path: Path) -> Iterator[FieldChange]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*after, *before)):
            yield from _differing(before.get(key), after.get(key), (*path, key))
    elif before != after:
        yield FieldChange(path=path, was=before, now=after)


class FieldTrials:
    """Trial plans of the work tree, each with the old value of one field. All plans are cached."""

    def __init__(self, head: Workspace) -> None:
        self._head = head
        self._planned = 0
        self._plans: dict[str, _Plan | None] = {}
        self._workspaces: dict[tuple[str, Path], Workspace | None] = {}
        self._changes: dict[tuple[str, str, Path], _Changes | None] = {}

    def decides(
        self, field: FieldChange, owner: Stack, stack: str, resource: ResourceChange, changed: InputChange | None
    ) -> bool | None:
        """Return whether a field of ``owner``'s file causes a change in a stack; None if no plan can show it."""
        key = (stack, owner.name, field.path)
        if key not in self._changes:
            self._changes[key] = self._without(field, owner, stack)
        changes = self._changes[key]
        if changes is None:
            return None
        change = changes.get((resource.type, resource.name))
        if change is None:
            return False
        if changed is None:
            return change.kind == resource.kind
        if change.kind == "added":  # under another name before, of which nothing can be compared
            return None
        return any(_same(row, changed) for row in change.inputs)

    def with_old_value(self, field: FieldChange, owner: Stack) -> Workspace | None:
        """Return the work tree's files with the old value of one field.

        The result is None if these files are rejected or if the limit of trials is reached.
        """
        key = (owner.name, field.path)
        if key not in self._workspaces:
            if len(self._workspaces) == _MOST_FIELDS:
                return None
            stack = _with_old_value(owner, field)
            stacks = {**self._head.stacks, owner.name: stack}
            workspace = cross_check(Workspace(self._head.root, stacks, unreadable=self._head.unreadable))
            self._workspaces[key] = None if workspace.stacks[owner.name].findings else workspace
        return self._workspaces[key]

    def _without(self, field: FieldChange, owner: Stack, stack: str) -> _Changes | None:
        if stack not in self._plans:
            self._plans[stack] = self._plan(self._head, stack)
        after = self._plans[stack]
        workspace = self.with_old_value(field, owner) if after and self._planned < _MOST_PLANNED else None
        before = self._plan(workspace, stack) if workspace else None
        if before is None or after is None:
            return None
        return {(change.type, change.name): change for change in resource_changes(before, after)}

    def _plan(self, workspace: Workspace, name: str) -> _Plan | None:
        if name not in {stack.name for stack in plannable(workspace, [name])}:
            return None
        try:
            plan = stack_plan(workspace.stacks[name], workspace)
        except PlanError:  # the old value does not go with the other new ones
            return None
        resources = tuple(flat_resource(resource) for resource in plan.planned() if resource.custom) if plan else ()
        self._planned += len(resources)
        return resources


def _with_old_value(stack: Stack, field: FieldChange) -> Stack:
    value = deepcopy(stack.source.value)
    path = (*stack.below, *field.path)
    key = path[-1]
    section = value_at(value, path[:-1])
    if field.was is None:
        del section[key]
    else:
        section[key] = field.was
    return parse_stack(stack.name, replace(stack.source, value=value))


def _same(trial: InputChange, changed: InputChange) -> bool:
    """Return True if two changes are of the same input. Positions in lists are ignored if the new values are equal."""
    if trial.path == changed.path:
        return True
    return trial.new == changed.new and _ITEM.sub("", trial.path) == _ITEM.sub("", changed.path)
