"""The result of a check as plain data, from which every report format is rendered."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from training_platform.catalog.prices import Cost
from training_platform.checks.change_report import Comparison
from training_platform.checks.effect_kinds import EFFECT_KINDS, EFFECT_OF_RULE
from training_platform.checks.outcome import Branch, ResourceTree
from training_platform.config.expansion import flavor_name, pools
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import RULES
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import counted, listed
from training_platform.quota.ledger import CapacityLine, FileLine, ProjectLedger
from training_platform.resources.plan import OWN_RESOURCES
from training_platform.rules.exemptions import Exempted

_MOST_PLACES = 3  # that a finding names of those that follow from it
_MOST_STACKS = 4  # most stacks that a finding about the organisation's own code names
StackKind = Literal["environment", "team", "rejected"]


@dataclass(frozen=True, kw_only=True)
class AcceleratorRow:
    """The chips or GPUs of one flavor in one region, with the minimum and the maximum number of machines."""

    region: str
    flavor: str
    unit: str
    minimum: int
    maximum: int


class Known(NamedTuple):
    """A finding that does not count because it existed before; ``why`` says where this is recorded."""

    finding: Finding
    why: str

    def __str__(self) -> str:
        """Return the reason why the finding does not count, for the line below it."""
        return f"known: {self.why}"


@dataclass(frozen=True, kw_only=True)
class StackReport:
    """One stack: its resources, what they use of each limit, their cost, and its findings.

    ``branches`` and ``resources`` are empty if the stack has no plan because its file was rejected or the plan failed.
    ``findings`` count; ``exempted`` and ``known`` findings do not.
    """

    name: str
    kind: StackKind
    file: str
    project: str | None = None
    environment: str | None = None
    planned: bool = False
    branches: tuple[Branch, ...] = ()
    resources: tuple[ResourceTree, ...] = ()
    accelerators: tuple[AcceleratorRow, ...] = ()
    cost: Cost = field(default_factory=Cost)
    findings: tuple[Finding, ...] = ()
    exempted: tuple[Exempted, ...] = ()
    known: tuple[Known, ...] = ()  # readable: in the baseline or the base


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of a whole check. ``failures`` describe what could not be checked; any failure means exit code 2."""

    today: date
    stacks: tuple[StackReport, ...] = ()
    ledgers: tuple[ProjectLedger, ...] = ()
    capacity: tuple[CapacityLine, ...] = ()
    files: tuple[FileLine, ...] = ()
    findings: tuple[Finding, ...] = field(default=())  # not about a single stack
    known: tuple[Known, ...] = ()  # readable: of those
    known_stacks: frozenset[str] = frozenset()  # all stacks with a file, checked or not
    failures: tuple[str, ...] = ()
    comparison: Comparison | None = None
    commit: str = ""  # the commit of the checked files; empty if git knows none
    checked: datetime | None = None  # the time in UTC

    def all_findings(self) -> list[Finding]:
        """Return all findings that count, those of stacks first."""
        return [*(finding for stack in self.stacks for finding in stack.findings), *self.findings]

    def unjudged(self) -> Counter[str]:
        """Return how many things of each kind could not be evaluated, keyed by the noun for the kind.

        This includes the findings that do not count.
        """
        aside = [row.finding for row in self.all_exempted()] + [row.finding for row in self.all_known()]
        findings = (*self.all_findings(), *aside)
        return Counter(finding.unjudged for finding in findings if finding.unjudged)

    def all_exempted(self) -> list[Exempted]:
        """Return all exempt findings and all acknowledged losses."""
        acts = self.comparison.acts if self.comparison else ()
        acknowledged = [act.acknowledged for act in acts if act.acknowledged]
        return [*acknowledged, *(exempted for stack in self.stacks for exempted in stack.exempted)]

    def all_known(self) -> list[Known]:
        """Return all findings that do not count because they existed before."""
        return [*(row for stack in self.stacks for row in stack.known), *self.known]

    def exit_code(self, *, strict: bool = False) -> int:
        """Return 0 without findings, 1 with findings (warnings only if ``strict``), 2 if something was not checked."""
        if self.failures:
            return 2
        severities = {"error", "warning"} if strict else {"error"}
        return int(any(finding.severity in severities for finding in self.all_findings()))


def accelerator_rows(environment: Environment) -> tuple[AcceleratorRow, ...]:
    """Return an environment's chips and GPUs, one row for each region and flavor."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for pool in pools(environment):
        unit = "chips" if pool.machine.kind == "tpu" else "GPUs"
        counts = sums.setdefault((pool.region, flavor_name(pool), unit), [0, 0])
        counts[0] += pool.min_nodes * pool.machine.chips
        counts[1] += pool.max_chips
    return tuple(
        AcceleratorRow(region=region, flavor=flavor, unit=unit, minimum=minimum, maximum=maximum)
        for (region, flavor, unit), (minimum, maximum) in sorted(sums.items())
    )


def stack_kind(stack: Stack) -> StackKind:
    """Return the kind of a stack, or ``rejected`` if the model rejects its file."""
    if stack.environment:
        return "environment"
    return "team" if stack.team else "rejected"


def ordered(findings: Iterable[Finding]) -> Sequence[Finding]:
    """Return findings in order: refused changes, losses by effect, others. Consequences come after their cause."""
    ranks = {"error": 0, "warning": 1, "note": 2}

    def key(finding: Finding) -> tuple[int, str, tuple[int, int], int, str]:
        file = finding.file or ""
        position = finding.position or (0, 0)
        return effect_rank(finding), file, position, ranks[finding.severity], finding.rule

    findings = list(findings)
    causes = _Causes(findings)
    return sorted(findings, key=lambda row: (key(causes.of(row) or row), bool(row.follows), key(row)))


class _Causes:
    """Findings that are causes, not consequences, keyed by fingerprint; and the first one at each place."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._by_mark: dict[str, Finding] = {}
        self._by_place: dict[str, Finding] = {}
        for finding in findings:
            if not finding.follows:
                self._by_mark.setdefault(finding.mark, finding)
                self._by_place.setdefault(finding.place, finding)

    def of(self, finding: Finding) -> Finding | None:
        """Return the finding that this one follows from; None if there is none or if it is not in the report."""
        if not finding.follows:
            return None
        return self._by_mark.get(finding.root) or self._by_place.get(finding.follows)


def effect_rank(finding: Finding) -> int:
    """Return a finding's position in a report: -1 for a refused change, losses by effect from 0, then all others."""
    kind = EFFECT_OF_RULE.get(finding.rule)
    if kind is not None:
        return EFFECT_KINDS.index(kind)
    rule = RULES.get(finding.rule)
    if rule and rule.ruleset == "changes" and rule.excuse is None and finding.severity == "error":
        return -1
    return len(EFFECT_KINDS)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in order. Those about one line of the organisation's own code become one, with all stacks."""
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for finding in ordered(findings):
        key: tuple[object, ...] = (id(finding),)
        if finding.file == OWN_RESOURCES:
            key = (finding.rule, finding.severity, finding.position, finding.path, finding.message, finding.resource)
        alike.setdefault(key, []).append(finding)
    return [_in_stacks(rows) for rows in alike.values()]


def _in_stacks(findings: Sequence[Finding]) -> Finding:
    """Return equal findings of several stacks as one finding, with the advice that all of them have in common."""
    first = findings[0]
    stacks = list(dict.fromkeys(finding.stack or "" for finding in findings))
    if len(stacks) < 2:
        return first
    message = f"{first.message} (in {len(stacks)} stacks: {listed(stacks, _MOST_STACKS)})"
    if len({finding.advice for finding in findings}) > 1:
        return replace(first, message=message, allowed=None, nearest=None)
    return replace(first, message=message)


def folded(findings: Iterable[Finding]) -> list[tuple[Finding, tuple[Finding, ...]]]:
    """Return findings in order, each with its consequences. A consequence without its cause is listed separately."""
    findings = merged(findings)
    causes = _Causes(findings)
    following: dict[str, list[Finding]] = {}
    first: list[Finding] = []
    for finding in findings:
        if cause := causes.of(finding):
            following.setdefault(cause.mark, []).append(finding)
        else:
            first.append(finding)
    return [(finding, tuple(following.pop(finding.mark, ()))) for finding in first]


def following(findings: Sequence[Finding]) -> str:
    """Return a finding's consequences as text: their places, or what they are about if the place is the same.

    A place with several consequences also shows their number. The text is empty if there are no consequences.
    """
    subjects = (identity(row)[-1] if row.place == row.follows else row.place for row in findings)
    counts = Counter(subject or row.message for subject, row in zip(subjects, findings, strict=True))
    places = [f"{place} ({count} findings)" if count > 1 else place for place, count in counts.items()]
    if not findings:
        return ""
    return f"Causes {counted(len(findings), 'more finding')}: {listed(places, max_names=_MOST_PLACES)}"


class FindingGroup(NamedTuple):
    """A finding that follows from no other finding, with its consequences and its fingerprint."""

    finding: Finding
    more: tuple[Finding, ...]
    fingerprint: str


def finding_groups(findings: Sequence[Finding]) -> list[FindingGroup]:
    """Return a group for each finding that follows from no other finding, in order of position."""
    findings = merged(findings)
    more = dict(folded(findings))
    return [
        FindingGroup(finding, more[finding], fingerprint=mark)
        for finding, mark in fingerprinted(findings)
        if finding in more
    ]


def fingerprinted(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Yield findings in order of position, each with a unique fingerprint of 64 hexadecimal digits.

    The fingerprint depends on rule, file, path and resource. A moved line or a changed amount therefore does not make a
    finding new. If findings are equal in all of these, their order makes their fingerprints different.
    """
    findings = ordered(findings)
    yield from zip(findings, fingerprints(map(identity, findings)), strict=True)


def fingerprints(identities: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a fingerprint for each identity; equal identities get different ones."""
    seen: Counter[tuple[str, ...]] = Counter()
    for parts in identities:
        seen[parts] += 1
        yield hashlib.sha256("\0".join((*parts, str(seen[parts]))).encode()).hexdigest()


def identity(finding: Finding) -> tuple[str, ...]:
    """Return what identifies a finding: its rule, file or stack, path, resource, and subject."""
    place = finding.file or finding.stack or ""
    if finding.file == OWN_RESOURCES:  # one line has a resource in each of several stacks
        place = f"{place} {finding.stack}"
    return (finding.rule, place, finding.path, finding.resource or "", finding.about)


def without_old_exempt(report: Report, marks: Container[str], why: str) -> Report:
    """Return the report in which exempt findings with these fingerprints count as known from before."""
    every = [row.finding for stack in report.stacks for row in stack.exempted]
    old = {id(finding) for finding, mark in fingerprinted(every) if mark in marks}

    def split(stack: StackReport) -> StackReport:
        formerly_exempt = tuple(Known(row.finding, f"{why}, {row}") for row in stack.exempted if id(row.finding) in old)
        exempted = tuple(row for row in stack.exempted if id(row.finding) not in old)
        return replace(stack, exempted=exempted, known=(*stack.known, *formerly_exempt))

    return replace(report, stacks=tuple(map(split, report.stacks)))


def set_aside(report: Report, reason_by_mark: Mapping[str, str]) -> Report:
    """Return the report in which findings with these fingerprints do not count, for the reasons in the mapping."""
    marked = fingerprinted(report.all_findings())
    reasons = {id(finding): reason_by_mark[mark] for finding, mark in marked if mark in reason_by_mark}

    def split(findings: Iterable[Finding], before: tuple[Known, ...]) -> dict[str, Any]:
        aside = [Known(finding, reasons[id(finding)]) for finding in findings if id(finding) in reasons]
        remaining = tuple(finding for finding in findings if id(finding) not in reasons)
        return {"findings": remaining, "known": (*before, *aside)}

    stacks = tuple(replace(stack, **split(stack.findings, stack.known)) for stack in report.stacks)
    return replace(report, stacks=stacks, **split(report.findings, report.known))
