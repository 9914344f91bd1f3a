"""The last lines of a check of stacks or jobs: what was checked, the number of findings, and how to read more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Literal, NamedTuple

from training_platform.config.reading.finding import Finding, Severity

VerdictState = Literal["clean", "findings", "unchecked"]


class Conclusion(NamedTuple):
    """The result of a whole check; ``checked`` is like ``3 stacks``, ``counts`` are like ``2 errors``.

    ``losses`` is what a change takes from whom, acknowledged or not: where there is any, nothing is clean.
    """

    state: VerdictState
    checked: str
    counts: str
    losses: str = ""

    def __str__(self) -> str:
        """Return the conclusion as one line."""
        counts = ", ".join(part for part in ("clean" if self.state == "clean" else "", self.counts) if part)
        return f"{self.checked}: {'; '.join(part for part in (self.losses, counts) if part)}"


def of_severities(findings: Collection[Finding]) -> list[str]:
    """Return the number of findings of each severity, such as ``2 errors``."""
    counts = Counter(finding.severity for finding in findings)
    order: tuple[Severity, ...] = ("error", "warning", "note")
    return [counted(counts[severity], severity) for severity in order if counts[severity]]


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def more_about(finding: Finding) -> str:
    """Return the command that explains a finding's rule: its meaning and reason, how to fix and how to exempt it."""
    return f"More about it: training-platform explain {finding.rule}"
