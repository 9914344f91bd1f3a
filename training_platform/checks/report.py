"""What a check found, as plain data; each format of a report is made from this alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Literal, NamedTuple

from training_platform.checks.cost import Cost
from training_platform.config.expansion.pools import flavor_name, pools
from training_platform.config.reading.finding import Finding
from training_platform.config.spec.environment import Environment
from training_platform.config.spec.stack import Stack
from training_platform.quota.ledger import CapacityLine, ProjectLedger
from training_platform.rules.exemptions import Exempted

if TYPE_CHECKING:  # a check of the model alone loads no Pulumi
    from training_platform.checks.comparison.comparison import Comparison
    from training_platform.checks.planning.recorder import Plan
    from training_platform.resources.planned import Planned

StackKind = Literal["environment", "team", "rejected"]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A part of a stack: a component with how many resources of each kind it holds, all levels down."""

    name: str
    kinds: dict[str, int]

    @property
    def count(self) -> int:
        """Resources that a provider makes; components are not counted."""
        return sum(self.kinds.values())


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A planned resource or component and what is made below it; ``kind`` is the short name of its type."""

    name: str
    kind: str
    custom: bool
    protected: bool
    children: tuple[Resource, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AcceleratorRow:
    """Chips or GPUs of one flavor in one region, at the fewest and the most machines."""

    region: str
    flavor: str
    unit: str
    least: int
    most: int


class Known(NamedTuple):
    """A finding that does not count, since it was there before; ``why`` says where it is known from."""

    finding: Finding
    why: str

    def __str__(self) -> str:
        """Return why it does not count, as reports say it below the finding."""
        return f"known: {self.why}"


@dataclass(frozen=True, kw_only=True)
class StackReport:
    """One stack: what it would create, what that holds and costs, and what is wrong with it.

    ``branches`` and ``resources`` are empty where the stack was not planned: ``fast``, or its file was rejected.
    ``findings`` count, ``exempted`` and ``known`` ones do not.
    """

    name: str
    kind: StackKind
    file: str
    project: str | None = None
    environment: str | None = None
    planned: bool = False
    branches: tuple[Branch, ...] = ()
    resources: tuple[Resource, ...] = ()
    accelerators: tuple[AcceleratorRow, ...] = ()
    cost: Cost = field(default_factory=Cost)
    findings: tuple[Finding, ...] = ()
    exempted: tuple[Exempted, ...] = ()
    known: tuple[Known, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole check. ``failures`` are sentences about what could not be checked at all; any of them means exit 2."""

    today: date
    stacks: tuple[StackReport, ...] = ()
    ledgers: tuple[ProjectLedger, ...] = ()
    capacity: tuple[CapacityLine, ...] = ()
    findings: tuple[Finding, ...] = field(default=())  # about no single stack
    known: tuple[Known, ...] = ()  # of those
    known_stacks: frozenset[str] = frozenset()  # every stack that has a file, checked or not
    failures: tuple[str, ...] = ()
    comparison: Comparison | None = None

    def all_findings(self) -> list[Finding]:
        """Return every finding that counts, of stacks first."""
        return [*(finding for stack in self.stacks for finding in stack.findings), *self.findings]

    def all_exempted(self) -> list[Exempted]:
        """Return every finding that an exemption covers."""
        return [exempted for stack in self.stacks for exempted in stack.exempted]

    def all_known(self) -> list[Known]:
        """Return every finding that does not count since it was there before."""
        return [*(known for stack in self.stacks for known in stack.known), *self.known]

    def exit_code(self, *, strict: bool = False) -> int:
        """Return 0 for clean, 1 for findings (warnings only where ``strict``), 2 where something was not checked."""
        if self.failures:
            return 2
        severities = {"error", "warning"} if strict else {"error"}
        return int(any(finding.severity in severities for finding in self.all_findings()))


def branches(plan: Plan) -> tuple[Branch, ...]:
    """Return a plan's top-level parts by name, each with its resources counted by kind.

    By name, since the order of registration differs from run to run.
    """
    parents = {resource.key: resource.parent for resource in plan.resources}
    kinds: dict[str, Counter[str]] = {}
    for resource in plan.resources:
        top = resource.key
        while (above := parents.get(top)) is not None:
            top = above
        name = top[1] if top != resource.key or not resource.custom else "(stack)"
        counter = kinds.setdefault(name, Counter())
        if resource.custom:
            counter[kind_of(resource.type)] += 1
    return tuple(Branch(name=name, kinds=dict(sorted(kinds[name].items()))) for name in sorted(kinds) if kinds[name])


def resource_tree(plan: Plan) -> tuple[Resource, ...]:
    """Return a plan's resources, each below its parent, in the order of the program."""
    below: dict[tuple[str, str] | None, list[Planned]] = {}
    known = {resource.key for resource in plan.resources}
    for resource in plan.resources:
        below.setdefault(resource.parent if resource.parent in known else None, []).append(resource)
    return _children(below, None)


def _children(
    below: Mapping[tuple[str, str] | None, list[Planned]], key: tuple[str, str] | None
) -> tuple[Resource, ...]:
    return tuple(
        Resource(
            name=each.name,
            kind=kind_of(each.type),
            custom=each.custom,
            protected=bool(each.options.get("protect")),
            children=_children(below, each.key),
        )
        for each in below.get(key, ())
    )


def kind_of(resource_type: str) -> str:
    """Return the short name of a resource type, a Kubernetes provider's said to be one."""
    if resource_type.startswith("pulumi:providers:"):
        return f"Provider ({resource_type.rpartition(':')[2]})"
    return resource_type.rpartition(":")[2]


def accelerator_rows(environment: Environment) -> tuple[AcceleratorRow, ...]:
    """Return an environment's chips and GPUs by region and flavor."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for pool in pools(environment):
        unit = "chips" if pool.machine.kind == "tpu" else "GPUs"
        counts = sums.setdefault((pool.region, flavor_name(pool), unit), [0, 0])
        counts[0] += pool.min_nodes * pool.machine.chips
        counts[1] += pool.max_chips
    return tuple(
        AcceleratorRow(region=region, flavor=flavor, unit=unit, least=least, most=most)
        for (region, flavor, unit), (least, most) in sorted(sums.items())
    )


def stack_kind(stack: Stack) -> StackKind:
    """Return what a stack is, ``rejected`` where the model does not take its file."""
    return "environment" if stack.environment else "team" if stack.team else "rejected"


def ordered(findings: Iterable[Finding]) -> Sequence[Finding]:
    """Return findings as people want them: by place in the file, errors before warnings at the same place."""
    ranks = {"error": 0, "warning": 1, "note": 2}
    return sorted(
        findings, key=lambda each: (each.file or "", each.position or (0, 0), ranks[each.severity], each.rule)
    )
