"""The report that a person reads in a terminal or a pipeline's log."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from checks.cost import Cost
from checks.report import Report, StackReport, ordered
from modules.config.finding import Finding
from modules.quota.ledger import CapacityLine, Line, ProjectLedger, shown

_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_NEARLY_FULL = 0.8


def print_report(report: Report, console: Console) -> None:
    """Print a whole check: each stack, the quotas and the capacity that they share, findings, and the verdict."""
    for stack in report.stacks:
        console.print(Group(*_stack(stack)), Text())
    for ledger in report.ledgers:
        console.print(_quota_table(ledger), Text())
    if report.capacity:
        console.print(_capacity_table(report.capacity), Text())
    for line in _findings(report):
        console.print(line, soft_wrap=True)
    for failure in report.failures:
        console.print(Text(f"not checked: {failure}", style="bold red"), soft_wrap=True)
    console.print(_verdict(report), soft_wrap=True)


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
    tree = Tree(Text(f"{_counted(sum(branch.count for branch in stack.branches), 'resource')}"), guide_style="dim")
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
    text = Text()
    if cost.read:
        text.append(f"${cost.least:,.2f} to ${cost.most:,.2f} per hour", style="bold")
        text.append(f" for machines, at list prices of {cost.read}")
    if cost.unpriced:
        text.append(f"{'; ' if cost.read else ''}no price known: {', '.join(cost.unpriced)}", style="dim")
    return text


def _quota_table(ledger: ProjectLedger) -> Group:
    taken = f"limits of {ledger.snapshot.taken}" if ledger.snapshot else "no snapshot of its limits"
    title = Text.assemble(("quota of ", ""), (ledger.project, "bold"), (f"  {taken}", "dim"))
    table = _table("location", "quota", "needs", "limit", "left", "held by")
    for column in (2, 3, 4):
        table.columns[column].justify = "right"
    for line in sorted(ledger.lines, key=lambda each: (each.key.location or "~", each.key)):
        style = _fullness(line)
        left = "?" if line.headroom is None else shown(line.headroom)
        limit = "?" if line.limit is None else shown(line.limit)
        name = Text(_quota_name(line), style=style)
        cells = (shown(line.used), limit, left)
        table.add_row(
            line.key.location or "all regions", name, *(Text(cell, style=style) for cell in cells), _held(line)
        )
    return Group(Rule(title, align="left", style="dim"), Padding(table, (0, 0, 0, 2), expand=False))


def _quota_name(line: Line) -> str:
    """Return a quota id without what the location column says, its dimensions beside it."""
    name = line.key.quota_id
    for suffix in ("-per-project-region", "-per-project-zone", "-per-project", "PerProjectPerRegion", "PerRegion"):
        name = name.removesuffix(suffix)
    values = " ".join(value for _, value in line.key.dimensions)
    return f"{name} {values}".strip() + f" ({line.unit})"


def _held(line: Line) -> Text:
    parts = [f"{held.holder.stack}/{held.holder.label} {shown(held.amount)}" for held in line.holders[:3]]
    rest = len(line.holders) - len(parts)
    return Text(", ".join(parts) + (f" and {rest} more" if rest > 0 else ""), style="dim")


def _fullness(line: Line) -> str:
    if line.limit is None or line.over:
        return "bold red"
    return "yellow" if not math.isinf(line.limit) and line.used > _NEARLY_FULL * line.limit else ""


def _capacity_table(lines: tuple[CapacityLine, ...]) -> Group:
    table = _table("environment", "cluster", "flavor", "holds", "promised", "free", "teams")
    for column in (3, 4, 5):
        table.columns[column].justify = "right"
    last = ("", "")
    for line in lines:
        place = (line.environment, line.cluster)
        style = "bold red" if line.over else ""
        teams = ", ".join(f"{share.holder.label} {shown(share.amount)}" for share in line.shares)
        cells = (f"{line.capacity:,}", shown(line.promised), shown(line.headroom))
        environment = line.environment if line.environment != last[0] else ""
        cluster = line.cluster if place != last else ""
        table.add_row(
            environment,
            cluster,
            Text(line.flavor.name, style=style),
            *(Text(cell, style=style) for cell in cells),
            teams,
        )
        last = place
    title = Text.assemble("capacity of the clusters", ("  chips or GPUs, whole slices, at the most machines", "dim"))
    return Group(Rule(title, align="left", style="dim"), Padding(table, (0, 0, 0, 2), expand=False))


def _findings(report: Report) -> Iterator[Text]:
    for finding in ordered(report.all_findings()):
        yield finding_text(finding)


def finding_text(finding: Finding) -> Text:
    """Return a finding: place, what is wrong, its rule; what is allowed on the next line."""
    first, _, rest = str(finding).partition("\n")
    text = Text.assemble((finding.severity, _STYLES[finding.severity]), " ", first, (f"  [{finding.rule}]", "dim"))
    if rest:
        text.append(f"\n{rest}", style="dim")
    return text


def _verdict(report: Report) -> Text:
    counts = dict.fromkeys(_STYLES, 0)
    for finding in report.all_findings():
        counts[finding.severity] += 1
    said = ", ".join(_counted(count, severity) for severity, count in counts.items() if count)
    stacks = _counted(len(report.stacks), "stack")
    if report.failures:
        return Text(f"{stacks}; {_counted(len(report.failures), 'thing')} not checked", style="bold red")
    if counts["error"]:
        return Text(f"{stacks}: {said}", style="bold red")
    return Text.assemble((f"{stacks}: clean", "bold green"), (f", {said}" if said else ""))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        right = column in {"min", "max"}
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    return table
