"""``quota show`` and ``quota plan`` for a person at a terminal, or in a pipeline's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from training_platform.checks.reports.console import PrintableConsole, plain_width
from training_platform.checks.reports.quota.rows import By, Row, Section, all_holders, sections, taken
from training_platform.checks.reports.summary import STYLES as _FULLNESS
from training_platform.checks.reports.text import file_table
from training_platform.checks.reports.wording import (
    counted,
    fullness,
    limit,
    location,
    nobodys,
    quota_name,
    quota_row,
)
from training_platform.quota.keys import shown
from training_platform.quota.ledger import CapacityLine
from training_platform.quota.overview import Overview, may_borrow, may_lend, of_servers
from training_platform.quota.plan import NeededRequest, ProjectPlan, request_lines

WIDE = 110  # columns from which holders have a column of their own
LOG_WIDTH = 120  # columns where no terminal says how wide it is
NO_HOME = "No environment stack has this project: ask for the limits in its console."


def quota_console() -> Console:
    """Return standard output: colours and the terminal's width on a terminal, plain text of fixed width in a pipe."""
    console = PrintableConsole(highlight=False)
    return console if console.is_terminal else PrintableConsole(highlight=False, width=plain_width(LOG_WIDTH))


def print_overview(overview: Overview, by: By, console: Console) -> None:
    """Print who holds what of every limit, then of every flavor, then what nobody can tell from the snapshots."""
    for section in sections(overview, by):
        console.print(_section(section, by, console), Text())
    if overview.capacity:
        console.print(_capacity(overview), Text())
    if overview.files:
        console.print(file_table(overview.files, console.width), Text())
    for sentence in overview.unknown():
        console.print(Text(f"not known: {sentence}.", style="dim"))
    for sentence in overview.not_counted:
        console.print(Text(f"not counted: {sentence}", style="bold red"), soft_wrap=True)


def print_plans(plans: Iterable[ProjectPlan], console: Console) -> None:
    """Print what each project has to ask for, what would do instead, and the lines for the stack file."""
    for plan in plans:
        console.print(Group(*_plan(plan)), Text(), crop=False)  # lines to paste are whole, however long


def _section(section: Section, by: By, console: Console) -> Group:
    wide, owned = console.width >= WIDE, by in ("stack", "team")
    heads = [section_head(by), *(["has"] if owned else []), "needs" if not owned else "all need", "limit", "left"]
    table = _table(*heads, *(["held by"] if wide else []))
    last = None
    for row in section.rows:
        if row.where != last:
            table.add_row(Text(row.where, style="bold" if by != "quota" else ""))
            last = row.where
        table.add_row(*_cells(row, wide=wide, owned=owned))
    note = f"  {section.note}" if section.note else ""
    title = Text.assemble((f"{by} ", ""), (section.title, "bold"), (note, "dim"))
    return Group(Rule(title, align="left", style="dim"), Padding(table, (0, 0, 0, 2), expand=False))


def section_head(by: By) -> str:
    """Return the head of the first column: what the rows of a section are."""
    return "project and quota" if by == "region" else "limit of" if by == "quota" else "place and quota"


def _cells(row: Row, *, wide: bool, owned: bool) -> Iterator[RenderableType]:
    line = row.line
    style = _FULLNESS[fullness(line)]
    quota, *numbers = (Text(cell, style=style) for cell in quota_row(line))
    name = Padding(quota, (0, 0, 0, 2))
    holders = Text(all_holders(line), style="dim")
    yield name if wide else Group(name, Padding(holders, (0, 0, 0, 4)))
    if owned:
        yield Text(shown(row.mine or 0))
    yield from numbers
    if wide:
        yield holders


def _capacity(overview: Overview) -> Group:
    table = _table("flavor and team", "guaranteed", "may borrow", "may lend", "pools hold", "free")
    last = ("", "")
    for line in overview.capacity:
        if (place := (line.environment, line.cluster)) != last:
            table.add_row(Text(" ".join(place), style="bold"))
            last = place
        for cells in _flavor(line, overview):
            table.add_row(*cells)
    note = ("  chips or GPUs; guaranteed is a team's nominal quota", "dim")
    title = Rule(Text.assemble(("capacity of the clusters", ""), note), align="left", style="dim")
    return Group(title, Padding(table, (0, 0, 0, 2), expand=False))


def _flavor(line: CapacityLine, overview: Overview) -> Iterator[tuple[Text, ...]]:
    style = "bold red" if line.over else ""
    numbers = (shown(line.promised), "", "", f"{line.capacity:,}", shown(line.headroom))
    yield (Text(f"  {line.flavor.name}", style=style), *(Text(number, style=style) for number in numbers))
    for share in line.shares:
        borrow, lend = may_borrow(line, share, overview.workspace), may_lend(line, share, overview.workspace)
        cells = (f"    {share.holder.label}", shown(share.amount), shown(borrow), shown(lend), "", "")
        yield tuple(Text(cell, style="dim") for cell in cells)
        if served := of_servers(line, share, overview.workspace):
            cells = ("      of it model servers, at most", shown(served), "", "", "", "")
            yield tuple(Text(cell, style="dim") for cell in cells)
    if line.unpromised:
        cells = (f"    {nobodys(line)}", "", "", shown(line.lent), "", shown(line.unpromised))
        yield tuple(Text(cell, style="dim") for cell in cells)


def _plan(plan: ProjectPlan) -> Iterator[RenderableType]:
    title = Text.assemble("project ", (plan.ledger.project, "bold"), (f"  {taken(plan.ledger)}", "dim"))
    yield Rule(title, align="left", style="dim")
    if plan.ledger.snapshot is None:
        yield Text(f"  no limit is known: training-platform quota pull {plan.ledger.project}", style="bold red")
        return
    for need in plan.needed:
        yield Padding(Group(*_need(need)), (0, 0, 0, 2))
    for line in plan.waiting:
        yield Text(f"  {line.key}: {shown(line.requested or 0)} requested is enough; {limit(line)} today")
    if plan.unknown:
        ids = ", ".join(dict.fromkeys(line.key.quota_id for line in plan.unknown))
        yield Text(f"  nobody can tell: the snapshot does not list {ids}", style="bold red")
    yield Text(f"  {verdict_of(plan)}", style="bold")
    if lines := request_lines(plan):
        assert plan.stack is not None  # whose file the lines are for
        yield Text(f"\n  In {plan.stack.source.file}, in the environment's section, where quota request writes them:\n")
        yield Text("\n".join(f"    {line}" for line in lines), no_wrap=True, overflow="ignore")
    elif plan.needed:
        yield Text(f"  {NO_HOME}")


def verdict_of(plan: ProjectPlan) -> str:
    """Return what a project's plan comes to, as one sentence."""
    if plan.needed:
        return f"{counted(len(plan.needed), 'request')} to make."
    if plan.waiting:
        return "What is requested is enough, once it is granted."
    return "Every limit that is known is enough." if plan.unknown else "Nothing to ask for."


def _need(need: NeededRequest) -> Iterator[Text]:
    line = need.line
    yield Text.assemble(
        (f"{quota_name(line)} in {location(line)}: ", "bold"), f"{limit(line)} -> {need.value:,} {line.unit}"
    )
    yield Text(f"  held by {all_holders(line)}", style="dim")
    for way in need.instead:
        yield Text(f"  or, within today's limits, {way}")


def _table(first: str, *rest: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, overflow="fold")
    for head in rest:
        table.add_column(head, justify="left" if head == "held by" else "right", overflow="fold")
    return table
