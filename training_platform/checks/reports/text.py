"""The report for a terminal or a pipeline's log: a summary of one screen, or everything."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from training_platform.checks.comparison.comparison import Comparison, StackChange
from training_platform.checks.outcome import kind_of
from training_platform.checks.report import Report, StackReport, folded, ordered
from training_platform.checks.reports.conclusion import counted, more_about
from training_platform.checks.reports.sections import (
    NEARLY_FULL,
    SECTIONS,
    ReportSection,
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
from training_platform.checks.reports.wording import conclusion, following, price, price_note
from training_platform.config.reading.finding import Finding, printable
from training_platform.config.reading.section import listed
from training_platform.quota.charges import shown

FULLNESS = {"over": "bold red", "unknown": "bold red", "nearly": "yellow", "fits": ""}
"""The style of a row, by how full its quota is."""
_SEVERITIES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_CHANGES = {"replaced": "bold red", "removed": "red", "changed": "yellow", "added": "green"}
_OF_STACKS = ("accelerators", "cost")  # sections printed with their stack
_WITH_ALL = " (--verbose shows each)"
_LOG_WIDTH = 160  # columns without a terminal
_INDENT = 2  # columns before a table
_GAP = 2  # columns between two cells
_MOST_QUOTAS = 12  # most rows of a change; above it, rows with a decrease are only counted
_MOST_CHANGES = 12  # most resources of a stack in a summary, the gravest first
_MOST_STACKS = 24  # most lines of stacks; an organisation with more has only counts


class PrintableConsole(Console):
    """A console that prints only printable text, whatever files contain, and keeps its own colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the rendered segments with printable text, since layout may start a line anywhere in a string."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def plain_width(otherwise: int) -> int:
    """Return the width of text outside a terminal: the variable COLUMNS, or ``otherwise``."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isascii() and columns.isdecimal() and int(columns) else otherwise


def print_report(report: Report, console: Console, *, verbose: bool = True) -> None:
    """Print a check: a summary of one screen, or everything if ``verbose``; then changes, findings, the conclusion."""
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
        _print_sentences(Text(str(result), style="bold red"), console)
    if findings := [finding for finding in ordered(report.all_findings()) if finding.severity != "note"]:
        first = min(findings, key=lambda finding: finding.severity != "error")
        _print_sentences(Text(more_about(first), style="dim"), console)


def _print_sentences(text: Text, console: Console) -> None:
    """Print text: on a terminal folded between words with its indentation, in a log unfolded."""
    if not console.is_terminal:
        console.print(text, soft_wrap=True)
        return
    for line in text.split("\n", allow_blank=True):
        indent = len(line.plain) - len(line.plain.lstrip())
        for part in line[indent:].wrap(console, console.width - indent):
            console.print(Text(" " * indent).append_text(part), soft_wrap=True)


def text_report(report: Report, *, verbose: bool = True) -> str:
    """Return a console without a terminal: no colours, and no folding."""
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
        yield Padding(tree, (0, 0, 0, _INDENT), expand=False)
    else:
        yield Padding(Text("not planned: only the model was checked", style="dim"), (0, 0, 0, _INDENT), expand=False)
    for section in accelerators((stack,)):
        yield Padding(section_table(section, width - _INDENT, skip=1), (1, 0, 0, _INDENT), expand=False)
    if stack.cost.most or stack.cost.unpriced:
        usd = price(stack.cost)
        note = price_note(stack.cost, today)
        line = Text.assemble((usd, "bold"), "; " if usd else "", (note, "" if usd else "dim"))
        yield Padding(line, (1, 0, 0, _INDENT), expand=False)


def section_text(section: ReportSection, width: int) -> Group:
    """Return a section with its title in a horizontal rule, and its note below."""
    title = Text.assemble(section.title, (f"  {section.unit}" if section.unit else "", "dim"))
    inner: list[RenderableType] = [section_table(section, width - _INDENT)]
    if section.note:
        inner.append(Text(section.note, style="dim"))
    return Group(heading(title, width), Padding(Group(*inner), (0, 0, 0, _INDENT), expand=False))


def section_lines(section: ReportSection, width: int) -> str:
    """Return a section as lines without colours."""
    plain = io.StringIO()
    PrintableConsole(highlight=False, width=width, file=plain).print(section_text(section, width))
    return "\n".join(line.rstrip() for line in plain.getvalue().splitlines()) + "\n"


def heading(title: Text, width: int) -> RenderableType:
    """Return a title with a rule beside it, or without one if the rule would cut it."""
    return Rule(title, align="left", style="dim") if title.cell_len + 3 <= width else title


def section_table(section: ReportSection, width: int, *, skip: int = 0) -> Table:
    """Return a section's rows as a table, without its first ``skip`` columns."""
    columns = section.columns[skip:]
    subject = section.subject - skip
    rows: list[list[Text]] = []
    last: Sequence[str] = ()
    for cells, state in section.rows:
        row = [Text(cell, style=FULLNESS[state]) for cell in cells]
        for column in range(section.subject):
            repeated = section.grouped and cells[: column + 1] == last[: column + 1]
            row[column] = Text("" if repeated else cells[column])
        if section.noted:
            row[-1].style = "dim"
        rows.append(row[skip:])
        last = cells
    if section.noted:
        return noted_table(columns, rows, width, below=subject)
    return fitting_table(columns, rows, width, subject=subject)


def fitting_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Text]],
    width: int,
    *,
    drop: Sequence[str] = (),
    subject: int | None = None,
) -> Table:
    """Return a table of at most ``width`` columns, if possible.

    Columns named in ``drop`` are left out first, in that order: none by which rows are told apart. Then columns are
    folded between words, the widest first and the ``subject`` last. Where even single words are too wide, the cells
    before the subject are a line above it. Of words only those of the subject, else of the widest column, are broken. A
    title that begins with ``>`` is aligned to the right.
    """
    left = list(range(len(columns)))
    wide = _widths(columns, rows)
    words = _widths(columns, rows, str.split)
    for name in drop:
        if _total(wide[column] for column in left) <= width:
            break
        left.remove(columns.index(name))
    if subject and left[0] < subject and _total(words[column] for column in left) > width:
        places = [Text(" ").join(row[column] for column in left if column < subject) for row in rows]
        below = [
            [Text("\n").join((place, row[subject])), *row[subject + 1 :]]
            for place, row in zip(places, rows, strict=True)
        ]
        rest = columns[subject:]
        return fitting_table(rest, below, width, drop=[name for name in drop if name in rest], subject=0)
    excess = _total(wide[column] for column in left) - width
    while excess > 0 and (able := [column for column in left if wide[column] > words[column]]):
        wide[max(able, key=lambda column: (column != subject, wide[column]))] -= 1
        excess -= 1
    if excess > 0:
        broken = max(left, key=wide.__getitem__) if subject is None else subject
        wide[broken] = max(1, wide[broken] - excess)
    return _table(
        [columns[column] for column in left],
        [[row[column] for column in left] for row in rows],
        [wide[column] for column in left],
    )


def noted_table(columns: Sequence[str], rows: Sequence[Sequence[Text]], width: int, *, below: int) -> Table:
    """Return a table with a note as last column, or below column ``below`` if the note's words would be broken."""
    last = len(columns) - 1
    wide = _widths(columns, rows)
    words = _widths(columns, rows, str.split)
    if _total(words[column] if column in (below, last) else wide[column] for column in range(last + 1)) <= width:
        return fitting_table(columns, rows, width, subject=below)
    noted = [(*row[:below], Text("\n").join((row[below], row[last])), *row[below + 1 : last]) for row in rows]
    return fitting_table(columns[:last], noted, width)


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[Text]], split: Callable[[str], Sequence[str]] = str.splitlines
) -> list[int]:
    """Return the width of the longest part of each column: a line, or a word."""
    cells = ((title.removeprefix(">"), *(row[column].plain for row in rows)) for column, title in enumerate(columns))
    return [max(cell_len(part) for cell in column for part in (split(cell) or [""])) for column in cells]


def _total(wide: Iterable[int]) -> int:
    widths = list(wide)
    return sum(widths) + _GAP * (len(widths) - 1)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Text]], widths: Sequence[int | None]) -> Table:
    """Return a table with these column widths; columns without one share the remaining width."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    for title, width in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if title.startswith(">") else "left"
        table.add_column(title.removeprefix(">"), justify=justify, overflow="fold", width=width)
    for row in rows:
        table.add_row(*row)
    return table


def table_text(table: Table, width: int) -> str:
    """Return a table as text without colours, and without the blanks that fill its lines."""
    plain = io.StringIO()
    PrintableConsole(highlight=False, width=width, file=plain).print(table)
    return "\n".join(line.rstrip() for line in plain.getvalue().splitlines())


def summary(report: Report, width: int) -> Iterator[RenderableType]:
    """Yield the summary of a check beside its findings: stacks, nearly full quotas, and how much fits.

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
        units = {unit: sum(row.most for row in stack.accelerators if row.unit == unit) for unit in ("chips", "GPUs")}
        rows.append(
            [
                Text(stack.name, style="bold"),
                Text(stack.project or (f"in {stack.environment}" if stack.environment else ""), style="dim"),
                Text(f"{sum(branch.count for branch in stack.branches):,}" if stack.planned else "not planned"),
                Text(", ".join(f"{count:,} {unit}" for unit, count in units.items() if count)),
                Text(price(stack.cost)),
            ]
        )
    price_column = f"price{' (example)' if any(stack.cost.is_example(today) for stack in stacks) else ''}"
    columns = ("stack", "project", ">resources", "at the most", price_column)
    return fitting_table(columns, rows, width, drop=("project", "at the most"))


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
        table = fitting_table(columns, rows, width - _INDENT, drop=(*alone, ">left"), subject=2)
        yield Padding(table, (0, 0, 0, _INDENT), expand=False)


def _capacity(report: Report, width: int) -> Iterator[RenderableType]:
    over = [line for line in report.capacity if line.over]
    clusters = {(line.environment, line.cluster) for line in report.capacity}
    flavors = f"{counted(len(report.capacity), 'flavor')} in {counted(len(clusters), 'cluster')}"
    if not over:
        amounts = Counter[tuple[str, str]]()
        for line in report.capacity:
            amounts[line.unit, " lent to all" if line.lends else ""] += line.unpromised
        unpromised = [f"{amount:,} {unit}{how}" for (unit, how), amount in sorted(amounts.items()) if amount]
        rest = f"; unassigned: {listed(unpromised)}" if unpromised else ""
        if any(line.uncounted for line in report.capacity):
            rest += "; shares in files that are rejected or cannot be read are not counted"
        yield Text(f"{flavors}: no team is promised more than the pools hold{rest}")
        return
    yield Text(f"{flavors}, {len(over):,} promised beyond what the pools hold:")
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
    yield Padding(fitting_table(columns, rows, width - _INDENT, subject=2), (0, 0, 0, _INDENT), expand=False)


def _changes(comparison: Comparison, width: int, *, fold: bool) -> Iterator[RenderableType]:
    """Yield the effects, each stack with what happens to its resources, then the amounts that differ.

    Where ``fold``, a stack that is new or removed as a whole has its resources counted by kind, and so has any other
    those that nobody feels; of many quotas those are counted of which less is needed.
    """
    yield heading(Text(change_summary(comparison), style="bold"), width)
    if comparison.unknown:
        yield Text(f"  {comparison.unknown}", style="yellow")
    for section in effects(comparison):
        if section.rows:
            yield Padding(section_table(section, width - _INDENT), (0, 0, 0, _INDENT), expand=False)
        yield Padding(Text(section.note, style="dim"), (0, 0, 0, _INDENT), expand=False)
    for stack in comparison.stacks:
        if not stack.empty:
            yield Text(f"  {stack_title(stack)}", style="bold")
            yield from _resources(stack, fold=fold)
    for section in amounts(comparison, most=_MOST_QUOTAS if fold else None):
        yield Padding(Text(section.title, style="bold"), (1, 0, 0, _INDENT), expand=False)
        if section.rows:
            yield Padding(section_table(section, width - _INDENT), (0, 0, 0, _INDENT), expand=False)
        if section.note:
            yield Padding(Text(f"{section.note}{_WITH_ALL}", style="dim"), (0, 0, 0, _INDENT), expand=False)
    yield Text()


def _resources(stack: StackChange, *, fold: bool) -> Iterator[RenderableType]:
    """Yield the changes of a stack's resources, the gravest first."""
    if fold and stack.resources and stack.kind in ("added", "removed", "left"):
        kinds = Counter(kind_of(resource.type) for resource in stack.resources).most_common()
        parts_of = [f"{count:,} {kind}" for kind, count in kinds]
        counts = f"{counted(len(stack.resources), 'resource')}: {listed(parts_of, most=8)}{_WITH_ALL}"
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
    if rest := unfelt(stack):
        more.append(rest)
    if more:
        yield Padding(Text(f"{'; '.join(more)}{_WITH_ALL}", style="dim"), (0, 0, 0, 4), expand=False)


def _findings(report: Report, *, fold: bool) -> Iterator[Text]:
    """Yield all findings; with ``fold``, a consequence is a line below its cause."""
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
    """Return a finding: position, problem and rule, and on the next line what is allowed."""
    first, _, rest = str(finding).partition("\n")
    text = Text.assemble((finding.severity, _SEVERITIES[finding.severity]), " ", first, (f"  [{finding.rule}]", "dim"))
    if rest:
        text.append(f"\n{rest}", style="dim")
    return text
