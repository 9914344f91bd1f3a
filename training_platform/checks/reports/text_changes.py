"""What a change does, as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from training_platform.checks.comparison.comparison import Comparison, StackChange
from training_platform.checks.reports.changes import resource_rows, stack_title, summary, tables

_STYLES = {"replaced": "bold red", "removed": "red", "changed": "yellow", "added": "green"}


def changes_text(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield each stack with what happens to its resources, then the amounts that differ."""
    yield Rule(Text(summary(comparison), style="bold"), align="left", style="dim")
    if comparison.unknown:
        yield Text(f"  {comparison.unknown}", style="yellow")
    for stack in comparison.stacks:
        if not stack.empty:
            yield from _stack(stack)
    for table in tables(comparison):
        grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), title_justify="left")
        for column in table.columns:
            grid.add_column(column, overflow="fold")
        for row in table.rows:
            grid.add_row(*map(Text, row))
        yield Padding(Text(table.title, style="bold"), (1, 0, 0, 2), expand=False)
        yield Padding(grid, (0, 0, 0, 2), expand=False)
    yield Text()


def _stack(stack: StackChange) -> Iterator[RenderableType]:
    yield Text(f"  {stack_title(stack)}", style="bold")
    for kind, name, inputs in resource_rows(stack):
        yield Text.assemble("    ", (f"{kind:<8}", _STYLES[kind]), f" {name}")
        for line in inputs:
            yield Padding(Text(line, style="dim"), (0, 0, 0, 15), expand=False)
