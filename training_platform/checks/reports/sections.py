"""Sections of a report: a title, columns and rows of strings, which each format renders in its own way.

To add a section, write a function here and a row in ``SECTIONS``: text, Markdown, HTML and JSON then contain it. A
format that presents a section in another way (as bars, as a tree, with stable JSON keys) refers to it by name.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from training_platform.catalog.prices import LEFT_OUT, Cost
from training_platform.checks.change_report import (
    KINDS,
    Act,
    Amount,
    Comparison,
    Consequence,
    InputChange,
    ResourceChange,
    StackChange,
)
from training_platform.checks.effect_kinds import EFFECT_KINDS, HEADLINES, LOSS_RULES
from training_platform.checks.outcome import kind_of
from training_platform.checks.report import Report, StackReport
from training_platform.checks.reports.tables import Fullness, ReportRow, ReportSection
from training_platform.checks.reports.wording import place, price, price_note
from training_platform.config.reading.section import counted, enumeration, listed
from training_platform.quota.charges import QuotaKey, short_quota_id, shown
from training_platform.quota.ledger import CapacityLine, FileLine, Line, ProjectLedger

NEARLY_FULL = 0.8
MOST_INPUTS = 12  # most changes of one resource that a report shows; the rest is counted
_LONGEST = 60  # characters of an input's value
_MOST_SUBJECTS = 4  # of one effect at one line


def quotas(report: Report) -> Iterator[ReportSection]:
    """Yield the quotas of each project, sorted by location."""
    for ledger in report.ledgers:
        yield ReportSection(
            title=f"quota of {ledger.project}",
            unit=taken(ledger),
            columns=("location", "quota", ">needs", ">limit", ">left", "held by"),
            rows=[
                quota_row(line) for line in sorted(ledger.lines, key=lambda line: (line.key.location or "~", line.key))
            ],
            subject=1,
            stressed=2,
            noted=True,
        )


def capacity(report: Report) -> Iterator[ReportSection]:
    """Yield how much of each flavor is promised, and to whom."""
    if report.capacity:
        rows = []
        for line in report.capacity:
            amounts = (f"{line.capacity:,}", shown(line.promised), shown(line.headroom))
            names = (line.environment, line.cluster, line.flavor.name)
            rows.append(ReportRow((*names, *amounts, shares_of(line)), "over" if line.over else "fits"))
        yield ReportSection(
            title="capacity of the clusters",
            unit="chips or GPUs of whole slices, with all pools at their maximum",
            columns=("environment", "cluster", "flavor", ">holds", ">promised", ">free", "teams"),
            rows=rows,
            subject=2,
            grouped=True,
            stressed=4,
            noted=True,
        )


def file_section(lines: Iterable[FileLine]) -> ReportSection:
    """Return how much of each Filestore instance is promised, and the size to which the instance can grow."""
    return ReportSection(
        title="file capacity",
        note="GiB, and MiB/s as estimated in the Filestore documentation on performance, read 2026-11-22",
        columns=("instance", ">holds", ">promised", ">free", ">up to", ">read/write", "held by"),
        rows=[
            ReportRow(
                (
                    f"{line.environment} {line.instance}, {line.tier.name if line.tier else '?'}",
                    *(shown(amount) for amount in (line.capacity, line.promised, line.headroom)),
                    "?" if line.grows_to is None else f"{line.grows_to:,}",
                    file_throughput(line) or "?",
                    shares_of(line),
                ),
                "over" if line.over else "fits",
            )
            for line in lines
        ],
        stressed=2,
        noted=True,
    )


def accelerators(stacks: Iterable[StackReport]) -> Iterator[ReportSection]:
    """Yield the chips and GPUs of each stack, with the minimum and the maximum number of machines."""
    rows = [
        ReportRow((stack.name, row.region, row.flavor, f"{row.minimum:,}", f"{row.maximum:,}", row.unit))
        for stack in stacks
        for row in stack.accelerators
    ]
    if rows:
        columns = ("stack", "region", "flavor", ">minimum", ">maximum", "unit")
        yield ReportSection(title="accelerators", columns=columns, rows=rows, subject=2, grouped=True)


def cost(report: Report) -> Iterator[ReportSection]:
    """Yield the cost of each stack, and their sum."""
    priced = [stack for stack in report.stacks if stack.cost.maximum or stack.cost.unpriced]
    rows = [
        ReportRow((stack.name, price(stack.cost) or "not known", price_note(stack.cost, report.today)))
        for stack in priced
    ]
    total = price(sum((stack.cost for stack in report.stacks), Cost()))
    if len(rows) > 1 and total:
        rows.append(ReportRow((f"{counted(len(rows), 'stack')} together", total, "")))
    if rows:
        note = f"Estimates from list prices, without {', '.join(LEFT_OUT)}."
        columns = ("stack", "cost", "what it rests on")
        yield ReportSection(title="cost", columns=columns, rows=rows, noted=True, note=note)


SECTIONS: Mapping[str, Callable[[Report], Iterator[ReportSection]]] = {
    "quotas": quotas,
    "capacity": capacity,
    "files": lambda report: iter([file_section(report.files)] if report.files else []),
    "accelerators": lambda report: accelerators(report.stacks),
    "cost": cost,
}
"""The sections of a whole check, keyed by their anchor in the HTML page, which is also the key in JSON."""


def full_quotas(report: Report, *, requested: bool) -> list[tuple[str, Line]]:
    """Return the quotas that are nearly full, each with its project; if ``requested``, also quotas with requests."""
    return [
        (ledger.project, line)
        for ledger in report.ledgers
        for line in ledger.lines
        if fullness(line) != "fits" or (requested and line.open_request is not None)
    ]


def parts(stack: StackReport) -> ReportSection:
    """Return the top-level parts of a stack, each with the number of its resources of each kind."""
    rows = []
    for branch in stack.branches:
        kinds = (kind if count == 1 else f"{count} {kind}" for kind, count in sorted(branch.kinds.items()))
        rows.append(ReportRow((branch.name, f"{branch.count:,}", ", ".join(kinds))))
    count = counted(sum(branch.count for branch in stack.branches), "resource")
    return ReportSection(title=f"{stack.name}: {count}", columns=("part", ">resources", "by kind"), rows=rows)


def amounts(comparison: Comparison, *, max_quotas: int | None = None) -> list[ReportSection]:
    """Return how a change affects quotas, capacity, accelerators and cost, without empty sections.

    If more than ``max_quotas`` quotas differ, those that are used less and those whose use is unknown on one side are
    only counted, in a note.
    """
    quotas = comparison.quotas
    notes = []
    if max_quotas is not None and len(quotas) > max_quotas:
        unknown = sum(change.used.delta is None for change in quotas)
        quotas = tuple(change for change in quotas if change.used.delta is not None and change.used.delta >= 0)
        less = len(comparison.quotas) - len(quotas) - unknown
        if less:
            notes.append(f"{counted(less, 'other quota')} with a lower need")
        if unknown:
            notes.append(f"{counted(unknown, 'quota')} not compared, because a value is not known")
    sections = [
        ReportSection(
            title="Quotas",
            columns=("project", "location", "quota", ">needs", ">limit"),
            subject=2,
            rows=[
                ReportRow((key.project, location(key), f"{quota_name(key)} ({unit})", amount(used), amount(limit)))
                for key, unit, used, limit in quotas
            ],
            note="; ".join(notes),
        ),
        ReportSection(
            title="Capacity",
            columns=("environment", "cluster", "flavor", ">holds", ">promised"),
            subject=2,
            rows=[
                ReportRow((line.environment, line.cluster, line.flavor, amount(line.capacity), amount(line.promised)))
                for line in comparison.capacity
            ],
        ),
        ReportSection(
            title="Accelerators",
            columns=("stack", "region", "flavor", ">maximum"),
            subject=2,
            rows=[
                ReportRow((stack.name, row.region, row.flavor, f"{amount(row.maximum)} {row.unit}"))
                for stack in comparison.stacks
                for row in stack.accelerators
            ],
        ),
        ReportSection(
            title="Cost in USD per hour, at least",
            columns=("stack", ">minimum", ">maximum"),
            rows=[
                ReportRow((_priced(stack), _usd(stack.least_usd), _usd(stack.most_usd)))
                for stack in comparison.stacks
                if any(usd.before != usd.after for usd in (stack.least_usd, stack.most_usd))
            ],
        ),
    ]
    return [section for section in sections if section.rows or section.note]


def _usd(value: Amount) -> str:
    return amount(value, "{:,.2f}".format)


def _priced(stack: StackChange) -> str:
    """Return a stack's name with the number of VMs that its cost does not include."""
    before, after = ("?" if number is None else shown(number) for number in stack.unpriced)
    if before != after:
        return f"{stack.name}, without VMs that have no price: {before} → {after}"
    vms = int(stack.unpriced.after or 0)
    return f"{stack.name}, without {counted(vms, 'VM')} that have no price" if vms else stack.name


def amount(value: Amount, show: Callable[[float], str] = shown) -> str:
    """Return a quantity before and after the change, and the difference: ``48 → 64 (+16)``."""
    before, after = ("?" if number is None else show(number) for number in (value.before, value.after))
    if value.before == value.after:
        return after
    sign = "+" if (value.delta or 0) > 0 else "-"
    difference = "" if value.delta is None else f" ({sign}{show(abs(value.delta))})"
    return f"{before} → {after}{difference}"


def change_summary(comparison: Comparison) -> str:
    """Return a summary of a change in one line."""
    counts = Counter(resource.kind for stack in comparison.stacks for resource in stack.resources)
    kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS if counts[kind]) or "no resource differs"
    left_behind = sum(stack.kind == "left" for stack in comparison.stacks)
    compared = sum(not stack.unknown for stack in comparison.stacks) - left_behind
    unplanned = len(comparison.stacks) - compared - left_behind
    differ = [f"{kinds} in {counted(compared, 'stack')}"] if compared else []
    if left_behind:
        differ.append(f"{counted(left_behind, 'stack')} left behind")
    if unplanned:
        differ.append(f"resources of {counted(unplanned, 'stack')} were not compared")
    unaffected = f"; {counted(comparison.other_stacks, 'other')} cannot be affected" if comparison.other_stacks else ""
    cost = _cost_change(comparison)
    since = f"Since {comparison.ref} ({comparison.commit[:12]})"
    if comparison.unknown:
        return f"{since}: what changed is not known"
    if not comparison.stacks:
        return f"{since}: no file changed that a stack depends on"
    return f"{since}: {'; '.join(differ)}{unaffected}" + (f"; {cost}" if cost else "")


def _cost_change(comparison: Comparison) -> str:
    """Return the change in hourly cost with all node pools scaled up; empty if the cost stays the same.

    The difference is unknown if the number of VMs without a price changes.
    """
    stacks = [stack for stack in comparison.stacks if stack.most_usd.delta is not None]
    if any(stack.unpriced.delta for stack in stacks):
        return "the difference in cost is not known, because the number of VMs without a price differs"
    usd = sum(stack.most_usd.delta or 0 for stack in stacks)
    if abs(usd) < 0.01:  # USD: less than a cent
        return ""
    return f"up to {abs(usd):,.2f} USD per hour {'more' if usd > 0 else 'less'}"


def stack_title(stack: StackChange) -> str:
    """Return a stack's name and how the change affects the stack as a whole."""
    if stack.kind == "renamed":
        return f"{stack.name}: was {stack.was}; rename the deployed stack before `pulumi up`"
    if stack.unknown:
        return f"{stack.name}: {stack.unknown}"
    if stack.kind == "left":
        return f"{stack.name}: the file is removed, but the stack is still deployed"
    if stack.kind == "retired":
        return f"{stack.name}: is retired; these resources are destroyed"
    return stack.name if stack.kind == "changed" else f"{stack.name}: {stack.kind}"


def effects(comparison: Comparison) -> Iterator[ReportSection]:
    """Yield the effects of a change, the most serious first. A note counts the changes that affect nobody."""
    rows = [
        ReportRow(
            (HEADLINES[row.kind], listed(row.subjects, _MOST_SUBJECTS), _line(act), _state(act, row)),
            "over" if row.kind in LOSS_RULES and not row.acknowledged else "fits",
        )
        for act in comparison.acts
        for row in act.consequences
    ]
    unknown = sum(change.effect.kind == "unknown" for change in _inputs(comparison))
    kept = [stack for stack in comparison.stacks if stack.kind not in ("removed", "left")]
    unfelt = sum(not is_felt(resource) for stack in kept for resource in stack.resources)
    notes = [f"Compared with {_basis(comparison)}."]
    if unfelt:
        verb = "changes" if unfelt == 1 else "change"
        if rows:  # what an effect takes along is not without effect by itself
            notes.append(f"{counted(unfelt, 'more resource')} {verb}.")
        else:
            notes.append(f"{counted(unfelt, 'resource')} {verb} without effect on people.")
    if unknown:
        notes.append(f"Effect unknown: {counted(unknown, 'input')}.")
    if comparison.stacks and (rows or unfelt or unknown):
        columns = ("effect", "on what", "line", "status")
        yield ReportSection(title="What the change does", columns=columns, rows=rows, stressed=0, note=" ".join(notes))


def _line(act: Act) -> str:
    position = place(act.finding)
    return f"{position.file}:{position.line}" if act.finding.position else position.file


def _state(act: Act, consequence: Consequence) -> str:
    if consequence.kind not in LOSS_RULES:
        return ""
    if act.acknowledged:
        return str(act.acknowledged)
    return "acknowledged" if consequence.acknowledged else "not acknowledged"


def _basis(comparison: Comparison) -> str:
    git = (
        f"{comparison.ref} in git, which may differ from the deployed state; use --state FILE to compare with that "
        f"state"
    )
    if not comparison.deployed:
        return git
    state = f"the deployed state of {enumeration(comparison.deployed)}"
    some_from_git = any(stack.name not in comparison.deployed for stack in comparison.stacks)
    return f"{state}, and for other stacks with {git}" if some_from_git else state


def _inputs(comparison: Comparison) -> Iterator[InputChange]:
    for stack in comparison.stacks:
        for resource in stack.resources:
            yield from resource.inputs


def is_felt(resource: ResourceChange) -> bool:
    """Return True if the change affects somebody, or may do so because it is an upgrade or its effect is unknown."""
    return resource.kind == "added" or resource.is_upgrade or resource.effects[0].kind != "none"


def unfelt(stack: StackChange) -> str:
    """Return how many changed resources of each kind affect nobody; empty if there are none."""
    kinds = Counter(kind_of(resource.type) for resource in stack.resources if not is_felt(resource))
    if not kinds:
        return ""
    counts = [f"{count:,} {kind}" for kind, count in kinds.most_common()]
    return f"without effect on people: {listed(counts, max_names=8)}"


def resource_rows(stack: StackChange, *, felt: bool = False) -> Iterator[tuple[str, str, list[str]]]:
    """Yield, for each changed resource, the kind of change, the resource and its inputs, the most serious first.

    If ``felt``, yield only resources whose change affects or may affect somebody.
    """
    for resource in sorted(stack.resources, key=_gravity):
        if felt and not is_felt(resource):
            continue
        inputs = sorted(resource.inputs, key=lambda change: (not change.forces, EFFECT_KINDS.index(change.effect.kind)))
        lines = [_input_line(change) for change in inputs[:MOST_INPUTS]]
        if len(inputs) > MOST_INPUTS:
            lines.append(f"and {len(inputs) - MOST_INPUTS} more inputs")
        if resource.undecided:
            lines.append("it is not known whether this change replaces a resource of this type")
        yield resource.kind, f"{kind_of(resource.type)} {resource.name}", lines


def _gravity(resource: ResourceChange) -> int:
    return EFFECT_KINDS.index(resource.effects[0].kind)


def _input_line(change: InputChange) -> str:
    old, new = _values(change.old, change.new)
    effect = "" if change.effect.kind == "none" else f", {HEADLINES[change.effect.kind]}"
    return f"{change.path}: {old} → {new}{', replaces it' if change.forces else ''}{effect}"


def _values(old: Any, new: Any) -> tuple[str, str]:
    """Return two values as strings, shortened around their first difference."""
    texts = [_value(old), _value(new)]
    if max(map(len, texts)) <= _LONGEST:
        return texts[0], texts[1]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = max(0, same - _LONGEST // 4)
    cut = [f"{'…' if start else ''}{text[start:]}" for text in texts]
    first, second = (text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in cut)
    return first, second


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(str(text).split())


def quota_row(line: Line) -> ReportRow:
    """Return a row about a quota: location, name with unit, need, limit with request, headroom, and who uses it."""
    name = f"{quota_name(line.key)} ({line.unit})"
    cells = (location(line.key), name, shown(line.used), limit_and_request(line), headroom(line), held_by(line))
    return ReportRow(cells, fullness(line))


def fullness(line: Line) -> Fullness:
    """Return how full a quota is: ``nearly`` if over 80 %; a limit that was not read counts as large enough."""
    if line.limit is None:
        return "fits" if line.unread else "unknown"
    if line.over:
        return "over"
    return "nearly" if not math.isinf(line.limit) and line.used > NEARLY_FULL * line.limit else "fits"


def quota_name(key: QuotaKey) -> str:
    """Return a quota id without its suffix for the location, followed by its dimensions."""
    return " ".join([short_quota_id(key.quota_id), *(value for _, value in key.dimensions)])


def location(key: QuotaKey) -> str:
    """Return the region or zone of a limit."""
    return key.location or "all regions"


def limit(line: Line) -> str:
    """Return a limit as reports show it."""
    return "?" if line.limit is None else shown(line.limit)


def limit_and_request(line: Line) -> str:
    """Return a limit, followed by the requested limit if a larger one is requested and not yet granted."""
    pending = line.open_request
    return limit(line) + ("" if pending is None else f" ({shown(pending)} requested)")


def headroom(line: Line) -> str:
    """Return how much of a limit is left, as reports show it."""
    return "?" if line.headroom is None else shown(line.headroom)


def held_by(line: Line, max_holders: int = 3) -> str:
    """Return the stacks that use the most of a limit, with their amounts."""
    holders = [f"{held.holder.stack}/{held.holder.label} {shown(held.amount)}" for held in line.holders[:max_holders]]
    omitted_count = len(line.holders) - len(holders)
    return ", ".join(holders) + (f" and {omitted_count} more" if omitted_count > 0 else "")


def taken(ledger: ProjectLedger) -> str:
    """Return a phrase with the day on which a project's limits were read."""
    if ledger.snapshot is None:
        return "no snapshot of its limits"
    return f"limits of {ledger.taken}" if ledger.taken else "limits not known yet"


def file_throughput(line: FileLine) -> str | None:
    """Return the maximum MiB/s of an instance for reads and writes, or None if unknown."""
    throughput = line.throughput
    if throughput:
        return f"{throughput.read_mibps:,}/{throughput.write_mibps:,}"
    return "by IOPS" if line.custom else None


def shares_of(line: CapacityLine | FileLine) -> str:
    """Return the teams that have a share of a flavor or an instance; for a flavor, also the amount that is left."""
    shares = [f"{share.holder.label} {shown(share.amount)}" for share in line.shares]
    if isinstance(line, CapacityLine) and line.unpromised:
        shares.append(f"{unpromised_label(line)} {line.unpromised:,}")
    return ", ".join(shares)


def unpromised_label(line: CapacityLine) -> str:
    """Return the label for capacity that is promised to no team: whether it is idle or lent to all."""
    return "lent to all" if line.lends else "idle"
