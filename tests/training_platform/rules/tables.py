"""Rows of the rule tests: one rule, what is changed of views that break none, and what is found then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Alone = tuple[str, str, dict[str, Any], int]  # rule, builder of the one view, changed fields, findings
AloneNearest = tuple[str, str, dict[str, Any], str]
Changes = dict[str, dict[str, Any]]
Together = tuple[str, Changes, tuple[str, ...], int]  # rule, changed fields by part, parts left out, findings
TogetherNearest = tuple[str, Changes, str]
Holds = Callable[..., None]  # asserts what a row says


def spoiled(rows: Sequence[Alone]) -> list[Alone]:
    """Return the rows of which something is found."""
    return [row for row in rows if row[3]]


def row_ids(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return what the tests of rows are called after."""
    return [f"{row[0]}-{index}" for index, row in enumerate(rows)]
