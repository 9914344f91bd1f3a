"""The report that a person reads in a terminal or a pipeline's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from training_platform.catalog.prices import Cost
from training_platform.checks.report import Report, StackReport, folded, ordered
from training_platform.checks.reports.summary import STYLES as _FULLNESS
from training_platform.checks.reports.summary import noted_table, summary
from training_platform.checks.reports.text_changes import changes_text
from training_platform.checks.reports.wording import (
    FILE_COLUMNS,
    FILE_NOTE,
    counted,
    file_row,
    following,
    fullness,
    held_by,
    location,
    more_about,
    price,
    price_note,
    quota_row,
    shares_of,
    verdict,
)
from training_platform.config.reading.finding import Finding
from training_platform.quota.keys import shown
from training_platform.quota.ledger import CapacityLine, FileLine, ProjectLedger

_INDENT = 2  # columns before a table
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def print_report(report: Report, console: Console, *, verbose: bool = True) -> None:
    """Print a check: what it found out, in one screen unless ``verbose``, then changes, findings, and the verdict."""
    for part in (_everything if verbose else summary)(report, console.width):
        console.print(part)
    if report.comparison:
        console.print(Group(*changes_text(report.comparison)))
    for line in _findings(report, fold=not verbose):
        console.print(line, soft_wrap=True)
    for failure in report.failures:
        console.print(Text(f"not checked: {failure}", style="bold red"), soft_wrap=True)
    console.print(_verdict(report), soft_wrap=True)
    if first := next(iter(ordered(report.all_findings())), None):
        console.print(Text(more_about(first), style="dim"), soft_wrap=True)


def _everything(report: Report, width: int) -> Iterator[RenderableType]:
    for stack in report.stacks:
        yield Group(*_stack(stack), Text())
    for ledger in report.ledgers:
        yield Group(_quota_table(ledger, width), Text())
    if report.capacity:
        yield Group(_capacity_table(report.capacity, width), Text())
    if report.files:
        yield Group(file_table(report.files, width), Text())


def _stack(stack: StackReport) -> Iterator[RenderableType]:
    title = Text.assemble((stack.name, "bold"), f"  {stack.kind}")
    if stack.kind == "team":
        title.append(f" in {stack.environment}")
    if stack.project:
        title.append(f"  project {stack.project}", style="dim")
    yield Rule(title, align="left", style="dim", characters="─")
    if stack.kind == "rejected":
        yield Text(f"{stack.file} is rejected; the findings below say why", style="bold red")
        return
    yield Padding(_tree(stack), (0, 0, 0, 2), expand=False)
    if stack.accelerators:
        yield Padding(_accelerators(stack), (1, 0, 0, 2), expand=False)
    if stack.cost.most or stack.cost.unpriced:
        yield Padding(cost_line(stack.cost), (1, 0, 0, 2), expand=False)


def _tree(stack: StackReport) -> RenderableType:
    if not stack.planned:
        return Text("not planned: the model alone was checked", style="dim")
    tree = Tree(Text(f"{counted(sum(branch.count for branch in stack.branches), 'resource')}"), guide_style="dim")
    for branch in stack.branches:
        kinds = ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in sorted(branch.kinds.items()))
        tree.add(Text.assemble((f"{branch.name} ", "bold"), (f"{branch.count}  ", "cyan"), (kinds, "dim")))
    return tree


def _accelerators(stack: StackReport) -> Table:
    table = _table("region", "accelerators", "min", "max", "")
    last = None
    for row in stack.accelerators:
        region = row.region if row.region != last else ""
        table.add_row(region, row.flavor, f"{row.least:,}", f"{row.most:,}", row.unit)
        last = row.region
    return table


def cost_line(cost: Cost) -> Text:
    """Return a stack's cost as a sentence that says what is not in it."""
    usd, note = price(cost), price_note(cost)
    return Text.assemble((usd, "bold"), " " if usd else "", (note, "" if usd else "dim"))


def _quota_table(ledger: ProjectLedger, width: int) -> Group:
    taken = f"limits of {ledger.snapshot.taken}" if ledger.snapshot else "no snapshot of its limits"
    title = Text.assemble(("quota of ", ""), (ledger.project, "bold"), (f"  {taken}", "dim"))
    rows = []
    for line in sorted(ledger.lines, key=lambda each: (each.key.location or "~", each.key)):
        style = _FULLNESS[fullness(line)]
        cells = (Text(cell, style=style) for cell in quota_row(line))
        rows.append((Text(location(line)), *cells, Text(held_by(line), style="dim")))
    columns = ("location", "quota", ">needs", ">limit", ">left", "held by")
    return _titled(title, noted_table(columns, rows, width - _INDENT, below="quota"))


def _capacity_table(lines: tuple[CapacityLine, ...], width: int) -> Group:
    rows = []
    last = ("", "")
    for line in lines:
        place = (line.environment, line.cluster)
        style = "bold red" if line.over else ""
        cells = (line.flavor.name, f"{line.capacity:,}", shown(line.promised), shown(line.headroom))
        environment = line.environment if line.environment != last[0] else ""
        cluster = line.cluster if place != last else ""
        numbers = (Text(cell, style=style) for cell in cells)
        rows.append((Text(environment), Text(cluster), *numbers, Text(shares_of(line))))
        last = place
    title = Text.assemble("capacity of the clusters", ("  chips or GPUs, whole slices, at the most machines", "dim"))
    columns = ("environment", "cluster", "flavor", ">holds", ">promised", ">free", "teams")
    return _titled(title, noted_table(columns, rows, width - _INDENT, below="flavor"))


def file_table(lines: Iterable[FileLine], width: int) -> Group:
    """Return the ledger of files: what instances hold, and what of it directories and homes are promised."""
    rows = [[Text(cell, style="bold red" if line.over else "") for cell in file_row(line)] for line in lines]
    table = noted_table(FILE_COLUMNS, rows, width - _INDENT, below=FILE_COLUMNS[0])
    return _titled(Text("file capacity"), table, Text(FILE_NOTE, style="dim"))


def _titled(title: Text, *parts: RenderableType) -> Group:
    return Group(Rule(title, align="left", style="dim"), Padding(Group(*parts), (0, 0, 0, _INDENT), expand=False))


def _findings(report: Report, *, fold: bool) -> Iterator[Text]:
    """Yield all findings; where ``fold``, what follows from another is a line below it."""
    if fold:
        for finding, more in folded(report.all_findings()):
            yield finding_text(finding)
            if more:
                yield Text(f"  {following(more)}", style="dim")
    else:
        yield from map(finding_text, ordered(report.all_findings()))
    for exempted in report.all_exempted():
        yield Text.assemble(("exempt ", "dim"), finding_text(exempted.finding), (f"\n  {exempted}", "dim"))
    for known in report.all_known():
        yield Text(f"known {finding_text(known.finding).plain}\n  {known}", style="dim")


def finding_text(finding: Finding) -> Text:
    """Return a finding: place, what is wrong, its rule; what is allowed on the next line."""
    first, _, rest = str(finding).partition("\n")
    text = Text.assemble((finding.severity, _STYLES[finding.severity]), " ", first, (f"  [{finding.rule}]", "dim"))
    if rest:
        text.append(f"\n{rest}", style="dim")
    return text


def _verdict(report: Report) -> Text:
    found = verdict(report)
    if found.state != "clean":
        return Text(str(found), style="bold red")
    return Text.assemble((f"{found.stacks}: clean", "bold green"), (f", {found.said}" if found.said else ""))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        right = column in {"min", "max"}
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    return table
