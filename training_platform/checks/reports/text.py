"""The report for a terminal or a pipeline's log: a summary that fits one screen, or everything."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text
from rich.tree import Tree

from training_platform.checks.change_report import Comparison, StackChange
from training_platform.checks.outcome import kind_of
from training_platform.checks.report import Report, StackReport, folded, following, ordered
from training_platform.checks.reports.conclusion import more_about
from training_platform.checks.reports.sections import (
    NEARLY_FULL,
    SECTIONS,
    accelerators,
    amounts,
    change_summary,
    effects,
    full_quotas,
    fullness,
    parts,
    quota_row,
    resource_rows,
    stack_title,
    unfelt,
)
from training_platform.checks.reports.terminal_tables import (
    FULLNESS,
    INDENT,
    PrintableConsole,
    fitting_table,
    heading,
    plain_width,
    section_table,
    section_text,
)
from training_platform.checks.reports.wording import conclusion, price, price_note
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import counted, listed
from training_platform.quota.charges import shown

_SEVERITIES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_CHANGES = {"replaced": "bold red", "removed": "red", "changed": "yellow", "added": "green"}
_OF_STACKS = ("accelerators", "cost")  # sections printed with their stack
_WITH_ALL = " (--verbose shows each)"
_LOG_WIDTH = 160  # columns without a terminal
_MOST_QUOTAS = 12  # most rows of a change; above it, rows with a decrease are only counted
_MOST_CHANGES = 12  # most resources of a stack in a summary, the gravest first
_MOST_STACKS = 24  # most lines of stacks; an organisation with more has only counts


def print_report(report: Report, console: Console, *, verbose: bool = True) -> None:
    """Print a summary of a check, or everything if ``verbose``, and then changes, findings and the conclusion."""
    parts = _everything(report, console.width) if verbose else summary(report, console.width)
    for part in parts:
        console.print(part)
    if report.comparison:
        console.print(Group(*_changes(report.comparison, console.width, fold=not verbose)))
    for line in _findings(report, fold=not verbose):
        _print_sentences(line, console)
    for failure in report.failures:
        _print_sentences(Text(f"not checked: {failure}", style="bold red"), console)
    result = conclusion(report)
    if result.state == "clean":
        clean = Text.assemble((f"{result.checked}: clean", "bold green"), f", {result.counts}" if result.counts else "")
        _print_sentences(clean, console)
    else:
        style = "bold yellow" if result.state == "partial" else "bold red"
        _print_sentences(Text(str(result), style=style), console)
    if findings := [finding for finding in ordered(report.all_findings()) if finding.severity != "note"]:
        first = min(findings, key=lambda finding: finding.severity != "error")
        _print_sentences(Text(more_about(first), style="dim"), console)


def _print_sentences(text: Text, console: Console) -> None:
    """Print text. On a terminal it is wrapped between words and indented; in a log it is not wrapped."""
    if not console.is_terminal:
        console.print(text, soft_wrap=True)
        return
    for line in text.split("\n", allow_blank=True):
        indent = len(line.plain) - len(line.plain.lstrip())
        for part in line[indent:].wrap(console, console.width - indent):
            console.print(Text(" " * indent).append_text(part), soft_wrap=True)


def text_report(report: Report, *, verbose: bool = True) -> str:
    """Return the report as text without colours and without wrapping."""
    plain = io.StringIO()
    print_report(report, PrintableConsole(highlight=False, width=plain_width(_LOG_WIDTH), file=plain), verbose=verbose)
    return "\n".join(line.rstrip() for line in plain.getvalue().splitlines())  # tables are padded to their width


def _everything(report: Report, width: int) -> Iterator[RenderableType]:
    for stack in report.stacks:
        yield Group(*_stack(stack, width, report.today), Text())
    for name, sections in SECTIONS.items():
        if name not in _OF_STACKS:
            yield from (Group(section_text(section, width), Text()) for section in sections(report))


def _stack(stack: StackReport, width: int, today: date) -> Iterator[RenderableType]:
    title = Text.assemble((stack.name, "bold"), f"  {stack.kind}")
    if stack.kind == "team":
        title.append(f" in {stack.environment}")
    if stack.project:
        title.append(f"  project {stack.project}", style="dim")
    yield Rule(title, align="left", style="dim", characters="─")
    if stack.kind == "rejected":
        yield Text(f"{stack.file} is rejected; the findings below say why", style="bold red")
        return
    if stack.planned:
        section = parts(stack)
        tree = Tree(Text(section.title.removeprefix(f"{stack.name}: ")), guide_style="dim")
        for name, count, kinds in (row.cells for row in section.rows):
            tree.add(Text.assemble((f"{name} ", "bold"), (f"{count}  ", "cyan"), (kinds, "dim")))
        yield Padding(tree, (0, 0, 0, INDENT), expand=False)
    else:
        yield Padding(Text("not planned: only the model was checked", style="dim"), (0, 0, 0, INDENT), expand=False)
    for section in accelerators((stack,)):
        yield Padding(section_table(section, width - INDENT, skip=1), (1, 0, 0, INDENT), expand=False)
    if stack.cost.maximum or stack.cost.unpriced:
        usd = price(stack.cost)
        note = price_note(stack.cost, today)
        line = Text.assemble((usd, "bold"), "; " if usd else "", (note, "" if usd else "dim"))
        yield Padding(line, (1, 0, 0, INDENT), expand=False)


def summary(report: Report, width: int) -> Iterator[RenderableType]:
    """Yield the summary of a check without its findings: stacks, nearly full quotas, and how much still fits.

    ``width`` is in columns of the terminal.
    """
    if report.stacks:
        yield Group(_stacks(report.stacks, width, report.today), Text())
    if any(not line.unread for ledger in report.ledgers for line in ledger.lines):
        yield Group(*_quotas(report, width), Text())
    if report.capacity:
        yield Group(*_capacity(report, width), Text())


def _stacks(stacks: Sequence[StackReport], width: int, today: date) -> RenderableType:
    if len(stacks) > _MOST_STACKS:
        kinds = [stack.kind for stack in stacks]
        return Text(", ".join(counted(kinds.count(kind), kind) for kind in dict.fromkeys(kinds)))
    rows = []
    for stack in stacks:
        if stack.kind == "rejected":
            rows.append([Text(stack.name, style="bold red"), Text(), Text(), Text("rejected: see below"), Text()])
            continue
        units = {unit: sum(row.maximum for row in stack.accelerators if row.unit == unit) for unit in ("chips", "GPUs")}
        rows.append(
            [
                Text(stack.name, style="bold"),
                Text(stack.project or (f"in {stack.environment}" if stack.environment else ""), style="dim"),
                Text(f"{sum(branch.count for branch in stack.branches):,}" if stack.planned else "not planned"),
                Text(", ".join(f"{count:,} {unit}" for unit, count in units.items() if count)),
                Text(price(stack.cost)),
            ]
        )
    price_column = "price"
    if read := min((stack.cost.read for stack in stacks if stack.cost.read), default=None):
        example = ", example only" if any(stack.cost.is_example(today) for stack in stacks) else ""
        price_column = f"price (oldest of {read}{example})"
    columns = ("stack", "project", ">resources", "at maximum", price_column)
    return fitting_table(columns, rows, width, drop=("project", "at maximum"))


def _quotas(report: Report, width: int) -> Iterator[RenderableType]:
    total = sum(not line.unread for ledger in report.ledgers for line in ledger.lines)
    every = full_quotas(report, requested=False)
    unread = {ledger.project for ledger in report.ledgers if ledger.snapshot is None}
    full = [(project, line) for project, line in every if project not in unread]
    unknown = sum(fullness(line) == "unknown" for _, line in every)
    title = f"{len(every) - unknown:,} of {counted(total, 'quota')} more than {NEARLY_FULL:.0%} full"
    title += f", {unknown:,} without a known limit" if unknown else ""
    title += f" (of {listed(sorted(unread))})" if unread and len(full) == len(every) - unknown else ""
    yield Text(f"{title}{':' if full else ''}")
    if full:
        columns = ("project", "location", "quota", ">needs", ">limit", ">left")
        rows = []
        for project, line in full:
            (place, *cells, _), state = quota_row(line)
            numbers = (Text(cell, style=FULLNESS[state]) for cell in cells)
            rows.append((Text(project, style="dim"), Text(place), *numbers))
        alone = ("project",) if len({project for project, _ in full}) == 1 else ()
        table = fitting_table(columns, rows, width - INDENT, drop=(*alone, ">left"), subject=2)
        yield Padding(table, (0, 0, 0, INDENT), expand=False)


def _capacity(report: Report, width: int) -> Iterator[RenderableType]:
    over = [line for line in report.capacity if line.over]
    clusters = {(line.environment, line.cluster) for line in report.capacity}
    flavors = f"{counted(len(report.capacity), 'flavor')} in {counted(len(clusters), 'cluster')}"
    if not over:
        amounts = Counter[tuple[str, str]]()
        for line in report.capacity:
            amounts[line.unit, " lent to all" if line.lends else ""] += line.unpromised
        unpromised = [f"{amount:,} {unit}{how}" for (unit, how), amount in sorted(amounts.items()) if amount]
        notes = f"; unassigned: {listed(unpromised)}" if unpromised else ""
        if any(line.uncounted for line in report.capacity):
            notes += "; shares in files that are rejected or cannot be read are not counted"
        yield Text(f"{flavors}: no team is promised more than the pools can provide{notes}")
        return
    yield Text(f"{flavors}, {len(over):,} promised more than the pools can provide:")
    rows = [
        (
            Text(line.environment),
            Text(line.cluster),
            Text(line.flavor.name, style="bold red"),
            Text(f"{line.capacity:,}"),
            Text(shown(line.promised)),
        )
        for line in over
    ]
    columns = ("environment", "cluster", "flavor", ">holds", ">promised")
    yield Padding(fitting_table(columns, rows, width - INDENT, subject=2), (0, 0, 0, INDENT), expand=False)


def _changes(comparison: Comparison, width: int, *, fold: bool) -> Iterator[RenderableType]:
    """Yield the effects, each stack with the changes of its resources, and the amounts that differ.

    If ``fold``, resources are only counted by kind if their whole stack is added or removed, or if their change affects
    nobody. If many quotas differ, those that are used less are also only counted.
    """
    yield heading(Text(change_summary(comparison), style="bold"), width)
    if comparison.unknown:
        yield Text(f"  {comparison.unknown}", style="yellow")
    for section in effects(comparison):
        if section.rows:
            yield Padding(section_table(section, width - INDENT), (0, 0, 0, INDENT), expand=False)
        yield Padding(Text(section.note, style="dim"), (0, 0, 0, INDENT), expand=False)
    for stack in comparison.stacks:
        if not stack.empty:
            yield Text(f"  {stack_title(stack)}", style="bold")
            yield from _resources(stack, fold=fold)
    for section in amounts(comparison, max_quotas=_MOST_QUOTAS if fold else None):
        yield Padding(Text(section.title, style="bold"), (1, 0, 0, INDENT), expand=False)
        if section.rows:
            yield Padding(section_table(section, width - INDENT), (0, 0, 0, INDENT), expand=False)
        if section.note:
            yield Padding(Text(f"{section.note}{_WITH_ALL}", style="dim"), (0, 0, 0, INDENT), expand=False)
    yield Text()


def _resources(stack: StackChange, *, fold: bool) -> Iterator[RenderableType]:
    """Yield the changes of a stack's resources, the most serious first."""
    if fold and stack.resources and stack.kind in ("added", "removed", "left"):
        kinds = Counter(kind_of(resource.type) for resource in stack.resources).most_common()
        parts_of = [f"{count:,} {kind}" for kind, count in kinds]
        counts = f"{counted(len(stack.resources), 'resource')}: {listed(parts_of, max_names=8)}{_WITH_ALL}"
        yield Padding(Text(counts), (0, 0, 0, 4), expand=False)
        return
    rows = list(resource_rows(stack, felt=fold))
    shown_rows = rows[:_MOST_CHANGES] if fold else rows
    for kind, name, inputs in shown_rows:
        yield Padding(Text.assemble((f"{kind:<8}", _CHANGES[kind]), f" {name}"), (0, 0, 0, 4), expand=False)
        for line in inputs:
            yield Padding(Text(line, style="dim"), (0, 0, 0, 15), expand=False)
    if not fold:
        return
    more = [f"and {len(rows) - _MOST_CHANGES:,} more"] if len(rows) > _MOST_CHANGES else []
    if unfelt_changes := unfelt(stack):
        more.append(unfelt_changes)
    if more:
        yield Padding(Text(f"{'; '.join(more)}{_WITH_ALL}", style="dim"), (0, 0, 0, 4), expand=False)


def _findings(report: Report, *, fold: bool) -> Iterator[Text]:
    """Yield all findings. If ``fold``, a consequence is only a line below its cause."""
    if fold:
        for finding, more in folded(report.all_findings()):
            yield finding_text(finding)
            if more:
                yield Text(f"  {following(more)}{_WITH_ALL if len(more) > 1 else ''}", style="dim")
    else:
        yield from map(finding_text, ordered(report.all_findings()))
    for exempted in report.all_exempted():
        yield Text.assemble(("exempt ", "dim"), finding_text(exempted.finding), (f"\n  {exempted}", "dim"))
    if fold:
        whys = Counter(row.why for row in report.all_known())
        for why, count in whys.items():
            yield Text(f"{counted(count, 'known finding')}: {why}{_WITH_ALL}", style="dim")
        return
    for row in report.all_known():
        yield Text(f"known {finding_text(row.finding).plain}\n  {row}", style="dim")


def finding_text(finding: Finding) -> Text:
    """Return a finding: place, problem and rule, and on the next line the allowed values."""
    first, _, details = str(finding).partition("\n")
    text = Text.assemble((finding.severity, _SEVERITIES[finding.severity]), " ", first, (f"  [{finding.rule}]", "dim"))
    if details:
        text.append(f"\n{details}", style="dim")
    return text
