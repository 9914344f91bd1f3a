"""Tables of rule tests: for a rule, changes of a view or program that pass, and changes with a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.training_platform.rules.builders import check, example
from training_platform.config.reading.finding import Severity
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules import RULES, View

Changes = Mapping[str, Any]


class Found(NamedTuple):
    """A change with a finding of the rule, and what is compared of the finding unless it is None."""

    changes: Changes
    nearest: str | None = None
    path: str | None = None  # below the section of the view
    severity: Severity | None = None
    times: int = 1


class Case(NamedTuple):
    """One rule over one changed view or program, and its expected findings."""

    rule: str
    of: Callable[..., View | list[View]]
    expected: Found
    notes: bool = False  # a value is not known, and the rule says so
    number: int = 0

    def __str__(self) -> str:
        return f"{self.rule}-{self.number}"

    def holds(self) -> None:
        """Assert the rule's findings; an unknown value in place of the spoiled one is a note, never an error."""
        changes, nearest, path, severity, times = self.expected
        findings = check(self.rule, *_views(self.of, changes))
        if self.notes:
            assert {finding.severity for finding in findings} == {"note"}
            return
        assert [finding.rule for finding in findings] == [self.rule] * times
        assert {finding.severity for finding in findings} <= (
            {severity} if severity else {RULES[self.rule].severity, "warning"}
        )
        assert all(finding.allowed for finding in findings)
        assert nearest is None or [finding.nearest for finding in findings] == [nearest]
        assert path is None or [finding.path for finding in findings] == [f"section.{path}".rstrip(".")]
        if times and self.of is not example:
            undecided = check(self.rule, *_views(self.of, dict.fromkeys(changes, UNKNOWN)))
            assert {finding.severity for finding in undecided} <= {"note"}


class Rule(NamedTuple):
    """A rule, the builder of its views, and changes that pass, are found, or have an unknown value."""

    rule: str
    of: Callable[..., View | list[View]]
    passes: Sequence[Changes]
    finds: Sequence[Changes | Found]
    notes: Sequence[Changes] = ()


def cases(table: Iterable[Rule]) -> list[Case]:
    """Return a case for each change of a table."""
    table_cases = []
    for rule, of, passes, finds, notes in table:
        table_cases += [Case(rule, of, Found(changes, times=0)) for changes in passes]
        table_cases += [Case(rule, of, change if isinstance(change, Found) else Found(change)) for change in finds]
        table_cases += [Case(rule, of, Found(changes), notes=True) for changes in notes]
    return [case._replace(number=number) for number, case in enumerate(table_cases)]


def _views(of: Callable[..., View | list[View]], changes: Changes) -> list[View]:
    views = of(**changes)
    return views if isinstance(views, list) else [views]
