"""Tables and escaped text in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from training_platform.checks.reports.tables import ReportSection
from training_platform.config.reading.finding import printable

_ESCAPES = {character: f"\\{character}" for character in "\\`*_[]|~"}
# An @ outside an address would mention somebody; a comment after it ends the name.
_ESCAPES |= {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@<!-- -->", "\n": "<br>", "\r": ""}
_ESCAPE = str.maketrans(_ESCAPES)


def escaped(text: str) -> str:
    """Return plain text escaped so that it cannot contain markup, mention anybody, or end a table cell."""
    return printable(text).translate(_ESCAPE)


def section_table(section: ReportSection) -> str:
    """Return a section's rows as a table in which amounts over their limit are bold."""
    rows = []
    for cells, state in section.rows:
        row = list(map(escaped, cells))
        if state == "over" and section.stressed is not None:
            row[section.stressed] = f"**{row[section.stressed]}**"
        rows.append(row)
    return _table(section.columns, rows)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of strings; a column whose title starts with ``>`` is right-aligned."""
    return _table(columns, [[*map(escaped, row)] for row in rows])


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    heads = [column.removeprefix(">") for column in columns]
    rules = ["---:" if column.startswith(">") else "---" for column in columns]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rules, *rows))
