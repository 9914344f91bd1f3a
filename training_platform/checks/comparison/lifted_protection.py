"""Finds deletion protection that stack files lift and that can be turned on again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training_platform.checks.change_report import Comparison
from training_platform.checks.comparison.acknowledged_values import leaves
from training_platform.checks.comparison.changed_fields import value_in_model
from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.reading.declaration import Draft, declare, finding
from training_platform.config.reading.finding import Path
from training_platform.config.reading.source import value_at
from training_platform.config.workspace import Workspace

PROTECTION_LEFT_OFF = declare(
    "protection-left-off",
    "Find deletion protection that is off although no change needs that any more.",
    ruleset="changes",
    severity="warning",
)


def left_off(comparison: Comparison, head: Workspace) -> Iterator[Draft]:
    """Yield a finding for each protection that was lifted before this change and need not be lifted for this change."""
    for change in comparison.stacks:
        new = change.head
        old = change.base
        if new is None or old is None or new.section is None or old.section is None or change.unknown:
            continue
        home = head.environment_of(new)
        if home is None or not home.deletion_protection:
            continue
        needed = [
            Locator(stack.section).path(resource.name)
            for stack in (new, old)
            for resource in change.resources
            if resource.kind in ("replaced", "removed") and stack.section is not None
        ]
        for path in _lifted_sections(new.source.value, new.below):
            if protection(old, path) is False and path not in needed:
                yield finding(
                    new,
                    (*path, "deletion_protection"),
                    "is false, although nothing in this change requires that",
                    rule=PROTECTION_LEFT_OFF,
                    allowed="true, once this change is deployed",
                    nearest="true",
                )


def _lifted_sections(value: Any, below: Path) -> Iterator[Path]:
    """Yield the sections that contain ``deletion_protection: false``, including the top-level section."""
    for path, leaf in leaves(value_at(value, below)):
        if path[-1:] == ("deletion_protection",) and len(path) > 1 and leaf is False:
            yield path[:-1]


def protection(stack: Stack, path: Path) -> bool | None:
    """Return the value of a section's ``deletion_protection``, or None if it has no such field."""
    value = value_in_model(stack, (*path, "deletion_protection"), None)
    return value if path else None
