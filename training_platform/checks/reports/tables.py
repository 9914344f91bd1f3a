"""A table of a report: a title, columns and rows of strings, which each format renders in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Fullness = Literal["over", "unknown", "nearly", "fits"]


class ReportRow(NamedTuple):
    """A row of a section. Formats highlight it according to its ``state``."""

    cells: tuple[str, ...]
    state: Fullness = "fits"


@dataclass(frozen=True, kw_only=True)
class ReportSection:
    """A table. If a column contains numbers, its title begins with ``>``.

    - ``subject`` is the column that says what a row is about. If ``grouped``, the text format leaves out
      cells before it that repeat the row above.
    - ``stressed`` is the column that Markdown sets in bold if a row is over its limit.
    - ``noted`` says that the last column is a sentence or a list.
    - ``unit`` is shown next to the title, and ``note`` below the table.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[ReportRow]
    subject: int = 0
    grouped: bool = False
    stressed: int | None = None
    noted: bool = False
    unit: str = ""
    note: str = ""
