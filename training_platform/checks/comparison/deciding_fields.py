"""Finds the field of a stack file that causes a change of a resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from training_platform.checks.change_report import InputChange, ResourceChange, StackChange
from training_platform.checks.comparison.acknowledged_values import AcknowledgedValue, as_acknowledged
from training_platform.checks.comparison.changed_fields import FieldChange, FieldTrials, changed_fields
from training_platform.checks.comparison.changes import REPLACED_SOURCE
from training_platform.config.model.environment import Environment, RetiredSpec
from training_platform.config.model.stack import Stack
from training_platform.config.model.team import Team
from training_platform.config.names import Locator
from training_platform.config.reading.finding import Path
from training_platform.config.workspace import Workspace

REMOVED = "removed"
"""What an acknowledgement writes as the new value of a field or resource that is removed."""


_NO_VALUE = AcknowledgedValue("")


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The field of a stack file that causes a change, with its values on both sides.

    A removed field has no ``after``. If no field is known to be the cause, ``resource`` gives the type and name of the
    changed resource instead; then ``path`` is the section of the resource and ``before`` is empty.
    """

    stack: str
    path: Path = ()
    resource: str = ""
    before: AcknowledgedValue = _NO_VALUE
    after: AcknowledgedValue | None = None

    @property
    def becomes(self) -> str:
        """The new value as it is written in an acknowledgement."""
        return REMOVED if self.after is None else self.after.text


class ChangedField(NamedTuple):
    """A changed field that may be the cause of a change, and the stack in whose file it is."""

    stack: Stack
    change: FieldChange


class DecidingFields:
    """The changed fields in the files of both sides. Finds which of them cause the change of a resource."""

    def __init__(self, head: Workspace, base: Workspace) -> None:
        self._head = head
        self._base = base
        self.trials = FieldTrials(head)
        self._locators: dict[int, Locator] = {}
        self._differences: dict[tuple[str, Path], list[FieldChange]] = {}

    def causes(self, change: StackChange, resource: ResourceChange) -> tuple[Cause, ...]:
        """Return the distinct fields that force a replacement, or that have the same effect without a replacement."""
        effect = resource.forcing[0].effect
        rows = [row for row in resource.inputs if not row.forces and row.effect.kind == effect.kind]
        return tuple(dict.fromkeys(self.cause(change, resource, row) for row in (*resource.forcing, *rows)))

    def cause(self, change: StackChange, resource: ResourceChange, changed: InputChange | None) -> Cause:
        """Return the field that causes a change, or the resource itself if not the file changed but the code."""
        if source := _replaced_source(change, changed):
            return self.cause(change, source, source.forcing[0])
        new = change.head
        old = change.base
        itself = Cause(stack=change.name, resource=f"{resource.type} {resource.name}", after=_becomes(resource))
        if new is None or new.section is None:
            return itself
        if resource.at_end and new.retired is not None:
            return Cause(stack=new.name, path=("retired",), after=AcknowledgedValue(_end(new.retired)))
        side = old.section if resource.kind == "removed" and old and old.section else new.section
        section = self.section(side, resource.name)
        candidates = self._candidates(new, old, section)
        near = [row for row in candidates if section and row.stack is new and _overlap(row.change.path, section)]
        if cause := self._deciding_field(change, resource, changed, candidates, near):
            return cause
        kept = self.changed(new, old, ("retired", "keeps")) if old and new.retired else []
        if kept and changed and changed.path == "retainOnDelete":
            return cause_of(new, kept[0])
        if change.kind == "renamed" and resource.kind != "changed":
            return Cause(stack=new.name, path=("renamed_from",), after=as_acknowledged(change.was))
        return replace(itself, path=section)

    def _deciding_field(
        self,
        change: StackChange,
        resource: ResourceChange,
        changed: InputChange | None,
        candidates: Sequence[ChangedField],
        near: Sequence[ChangedField],
    ) -> Cause | None:
        """Return the field whose old value makes the change of a resource disappear.

        If no trial plan shows it, return the first of the ``near`` fields, or the only candidate.
        """
        untold = []
        for field in candidates:
            decides = self.trials.decides(field.change, field.stack, change.name, resource, changed)
            if decides:
                return cause_of(*field)
            if decides is None:
                untold.append(field)
        likely = [field for field in near if field in untold]
        if len(candidates) == 1:
            likely += untold
        return cause_of(*likely[0]) if likely else None

    def _candidates(self, new: Stack, old: Stack | None, section: Path) -> list[ChangedField]:
        """Return the changed fields that can cause a change, first those in its section, then file, environment."""
        fields: dict[tuple[str, Path], ChangedField] = {}
        for stack, was, path in self._homes(new, old, section):
            for change in self.changed(stack, was, path):
                fields.setdefault((stack.name, change.path), ChangedField(stack, change))
        return list(fields.values())

    def _homes(self, new: Stack, old: Stack | None, section: Path) -> Iterator[tuple[Stack, Stack, Path]]:
        """Yield where to look for the cause of a change: its section, the whole file, and the environment's file."""
        if old is None or old.section is None:
            return
        yield new, old, section
        if section:
            yield new, old, ()
        home = self._head.stacks.get(new.environment_name)
        old_home = self._base.stacks.get(old.environment_name)
        same = new.environment_name == old.environment_name
        if new.team and same and home and old_home and home.section and old_home.section:
            yield home, old_home, ()

    def changed(self, new: Stack, old: Stack, section: Path = ()) -> list[FieldChange]:
        """Return the changed fields below a section of a file; cached, since a change affects many resources."""
        key = (new.name, section)
        if key not in self._differences:
            self._differences[key] = list(changed_fields(new, old, section))
        return self._differences[key]

    def section(self, declaring: Environment | Team, name: str) -> Path:
        """Return the section of a file that declares a resource."""
        locator = self._locators.get(id(declaring))
        if locator is None:
            locator = self._locators[id(declaring)] = Locator(declaring)
        return locator.path(name)


def cause_of(stack: Stack, row: FieldChange) -> Cause:
    """Return a changed field of a stack file as a cause."""
    after = None if row.now is None else as_acknowledged(row.now)
    return Cause(stack=stack.name, path=row.path, before=as_acknowledged(row.was), after=after)


def _becomes(resource: ResourceChange) -> AcknowledgedValue | None:
    """Return a resource's new value: the inputs that change, or all inputs if it is added; None if it is removed."""
    if resource.kind == "removed":
        return None
    changed = {row.path: REMOVED if row.new is None else row.new for row in resource.inputs}
    return as_acknowledged(changed or resource.planned)


def _end(retired: RetiredSpec) -> str:
    """Return how an acknowledgement writes a stack's retirement. It no longer applies once the stack keeps less."""
    return f"{retired.since}, keeps {', '.join(sorted(retired.keeps)) or 'nothing'}"


def _replaced_source(change: StackChange, changed: InputChange | None) -> ResourceChange | None:
    """Return the replaced resource to which an input refers, if its replacement is why the input changes."""
    if changed is None or changed.new != REPLACED_SOURCE:
        return None
    sources = (other for other in change.resources if other.kind == "replaced" and other.name == changed.old)
    return next(sources, None)


def _overlap(path: Path, section: Path) -> bool:
    """Return True if a field is in a section, or contains the section."""
    shorter = min(len(path), len(section))
    return path[:shorter] == section[:shorter]
