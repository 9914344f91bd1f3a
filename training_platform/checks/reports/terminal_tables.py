"""Tables for a terminal or a log, fitted to its width."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from training_platform.checks.reports.tables import ReportSection
from training_platform.config.reading.finding import printable

FULLNESS = {"over": "bold red", "unknown": "bold red", "nearly": "yellow", "fits": ""}
"""The style of a row, keyed by how full its quota is."""
INDENT = 2  # columns before a table
_GAP = 2  # columns between two cells


class PrintableConsole(Console):
    """A console that prints only printable characters, whatever files contain, but does use its own colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the rendered segments without unprintable text. The layout may have split strings anywhere."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def plain_width(otherwise: int) -> int:
    """Return the width for text that is not printed on a terminal: the variable COLUMNS, or ``otherwise``."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isascii() and columns.isdecimal() and int(columns) else otherwise


def section_text(section: ReportSection, width: int) -> Group:
    """Return a section with its title in a horizontal rule and its note below the table."""
    title = Text.assemble(section.title, (f"  {section.unit}" if section.unit else "", "dim"))
    inner: list[RenderableType] = [section_table(section, width - INDENT)]
    if section.note:
        inner.append(Text(section.note, style="dim"))
    return Group(heading(title, width), Padding(Group(*inner), (0, 0, 0, INDENT), expand=False))


def section_lines(section: ReportSection, width: int) -> str:
    """Return a section as lines without colours."""
    return table_text(section_text(section, width), width) + "\n"


def heading(title: Text, width: int) -> RenderableType:
    """Return a title in a horizontal rule, or without the rule if the title would be truncated."""
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

    The table is made narrower in these steps until it fits:

    - Columns named in ``drop`` are left out in that order. They must not be columns that distinguish rows.
    - Columns are wrapped between words, the widest first and the ``subject`` last.
    - If single words are still too wide, the cells before the subject become a line above it.
    - Words are broken in the subject, or in the widest column if there is no subject.

    A column whose title begins with ``>`` is right-aligned.
    """
    shown = _undropped(columns, rows, width, drop)
    words = _widths(columns, rows, str.split)
    if subject and shown[0] < subject and _total(words[column] for column in shown) > width:
        before = [column for column in shown if column < subject]
        below = [[_with_line_above(row, before, subject), *row[subject + 1 :]] for row in rows]
        columns = columns[subject:]
        return fitting_table(columns, below, width, drop=[name for name in drop if name in columns], subject=0)
    shown_columns = [columns[column] for column in shown]
    shown_rows = [[row[column] for column in shown] for row in rows]
    shown_subject = None if subject is None else shown.index(subject)
    return _table(shown_columns, shown_rows, _folded(shown_columns, shown_rows, width, shown_subject))


def _undropped(columns: Sequence[str], rows: Sequence[Sequence[Text]], width: int, drop: Sequence[str]) -> list[int]:
    """Return the columns that remain. Those named in ``drop`` are left out, in order, until the others fit."""
    widths = _widths(columns, rows)
    shown = list(range(len(columns)))
    for name in drop:
        if _total(widths[column] for column in shown) <= width:
            break
        shown.remove(columns.index(name))
    return shown


def _with_line_above(row: Sequence[Text], columns: Sequence[int], subject: int) -> Text:
    """Return a row's subject below a line with the cells of some columns."""
    return Text("\n").join((Text(" ").join(row[column] for column in columns), row[subject]))


def _folded(columns: Sequence[str], rows: Sequence[Sequence[Text]], width: int, subject: int | None) -> Sequence[int]:
    """Return column widths that fit. Columns are wrapped between words or, if that is not enough, within words."""
    widths = _widths(columns, rows)
    words = _widths(columns, rows, str.split)
    excess = _total(widths) - width
    while excess > 0:
        foldable = [column for column in range(len(columns)) if widths[column] > words[column]]
        if not foldable:
            break
        widths[max(foldable, key=lambda column: (column != subject, widths[column]))] -= 1
        excess -= 1
    if excess > 0:
        broken = widths.index(max(widths)) if subject is None else subject
        widths[broken] = max(1, widths[broken] - excess)
    return widths


def noted_table(columns: Sequence[str], rows: Sequence[Sequence[Text]], width: int, *, below: int) -> Table:
    """Return a table with a note as the last column, or below column ``below`` if the note's words would be broken."""
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
    """Return the width of the longest piece in each column; ``split`` divides cells into lines or words."""
    cells = ((title.removeprefix(">"), *(row[column].plain for row in rows)) for column, title in enumerate(columns))
    return [max(cell_len(part) for cell in column for part in (split(cell) or [""])) for column in cells]


def _total(wide: Iterable[int]) -> int:
    widths = list(wide)
    return sum(widths) + _GAP * (len(widths) - 1)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Text]], widths: Sequence[int | None]) -> Table:
    """Return a table with these column widths; columns whose width is None share the remaining width."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    for title, width in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if title.startswith(">") else "left"
        table.add_column(title.removeprefix(">"), justify=justify, overflow="fold", width=width)
    for row in rows:
        table.add_row(*row)
    return table


def table_text(table: RenderableType, width: int) -> str:
    """Return a table as text without colours and without trailing blanks."""
    plain = io.StringIO()
    PrintableConsole(highlight=False, width=width, file=plain).print(table)
    return "\n".join(line.rstrip() for line in plain.getvalue().splitlines())
