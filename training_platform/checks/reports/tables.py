"""A table of a report: a title, columns and rows of strings, which each format renders in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Fullness = Literal["over", "unknown", "nearly", "fits"]


class ReportRow(NamedTuple):
    """A row of a section; formats highlight it by ``state``."""

    cells: tuple[str, ...]
    state: Fullness = "fits"


@dataclass(frozen=True, kw_only=True)
class ReportSection:
    """A table; the title of a column of numbers begins with ``>``.

    ``subject`` is the column of what a row is about; text leaves out what repeats before it, if ``grouped``.
    ``stressed`` is the column that Markdown sets in bold where a row is over. Where ``noted``, the last column is a
    sentence or a list. ``unit`` belongs beside the title, ``note`` below the table.
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
