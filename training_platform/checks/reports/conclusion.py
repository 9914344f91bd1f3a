"""The last lines of a check of stacks or jobs: what was checked, the number of findings, and how to get details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from training_platform.config.reading.finding import Finding, Severity
from training_platform.config.reading.section import counted

VerdictState = Literal["clean", "findings", "partial", "unchecked"]
"""The overall result; ``partial`` means that no error was found, but something could not be evaluated."""


class Conclusion(NamedTuple):
    """The result of a whole check. ``checked`` is text such as ``3 stacks``, ``counts`` are texts such as ``2 errors``.

    ``losses`` describes the losses of a change, acknowledged or not. A change that takes something from somebody is
    never reported as clean. ``unjudged`` says how many things of each kind could not be evaluated.
    """

    state: VerdictState
    checked: str
    counts: str
    losses: str = ""
    unjudged: str = ""

    def __str__(self) -> str:
        """Return the conclusion as one line."""
        counts = ", ".join(part for part in ("clean" if self.state == "clean" else "", self.counts) if part)
        if self.state == "partial" and not counts:
            counts = "no findings"
        unjudged = f"not judged: {self.unjudged}" if self.unjudged else ""
        return f"{self.checked}: {'; '.join(part for part in (self.losses, counts, unjudged) if part)}"


def of_severities(findings: Collection[Finding]) -> list[str]:
    """Return the number of findings of each severity as text, such as ``2 errors``."""
    counts = Counter(finding.severity for finding in findings)
    order: tuple[Severity, ...] = ("error", "warning", "note")
    return [counted(counts[severity], severity) for severity in order if counts[severity]]


def counted_kinds(counts: Mapping[str, int]) -> str:
    """Return numbers with their nouns. A noun may be followed by other words: ``2 changes of a stack``."""
    parts = []
    for kind, count in sorted(counts.items()):
        noun, space, detail = kind.partition(" ")
        parts.append(f"{counted(count, noun)}{space}{detail}")
    return ", ".join(parts)


def more_about(finding: Finding) -> str:
    """Return the command that explains a finding's rule: what it means, its reason, how to fix it or exempt it."""
    return f"More about it: training-platform explain {finding.rule}"
